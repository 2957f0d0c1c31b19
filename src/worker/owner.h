/*
 * The name of a worker as the owner of leases, and whether an owner is dead.
 *
 * The name is "machine:boot:pid:start": digests of the ids of the machine and of this boot,
 * the process id, and the tick of its start.  No two processes have the same name.
 * So a worker releases the leases of dead workers of its machine without waiting for their end.
 */
#ifndef WORKER_OWNER_H
#define WORKER_OWNER_H

#include <stdbool.h>

enum { owner_size = 81 /* the database has room for 80 characters */ };

/* Writes the name of this process. */
void owner_self(char owner[owner_size]);

/* The part of the name that all workers of this machine share ("machine:"). */
void owner_machine(char prefix[owner_size]);

/* True when the owner is surely dead: of this machine, and of an earlier boot or a process that ended. */
bool owner_is_dead(const char *owner);

#endif
