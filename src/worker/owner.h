/*
 * The name under which a supervisor owns its leases, and whether the owner of a
 * lease on this machine is still alive.
 *
 * "machine:boot:pid:start" - digests of the machine's id and of the id of this
 * boot, the process and the tick it started at.  No two processes ever have the same name, and a
 * supervisor that finds leases of a dead one of its own machine takes them over
 * at once instead of waiting for the lease to end.
 */
#ifndef WORKER_OWNER_H
#define WORKER_OWNER_H

#include <stdbool.h>

enum { owner_size = 81 /* the database has room for 80 characters */ };

/* Writes the name of this process. */
void owner_self(char owner[owner_size]);

/*
 * The part of a name that all supervisors of this machine share ("machine:"),
 * to find their leases by.
 */
void owner_machine(char prefix[owner_size]);

/* True when the owner is certainly dead: of this machine, and of an earlier boot or a process that is gone.
 */
bool owner_is_dead(const char *owner);

#endif
