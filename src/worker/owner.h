/*
 * The name of a worker as the owner of leases, and whether an owner is dead.
 *
 * The name is "machine:boot:pid:start": digests of the ids of the machine and of this boot,
 * the process id, and the tick of its start.  No two processes have the same name.
 * So a worker releases the leases of dead workers of its machine without waiting for their end.
 */
#ifndef WORKER_OWNER_H
#define WORKER_OWNER_H

#include "db/leases.h"

enum { owner_size = 81 /* the database has room for 80 characters */ };

/* Writes the name of this process. */
void owner_self(char owner[owner_size]);

/* The part of the name that all workers of this machine share ("machine:"). */
void owner_machine(char prefix[owner_size]);

/*
 * Releases the leases of dead workers of this machine (owner_machine), and leases of any machine that
 * ended.  A worker is dead if it belongs to an earlier boot, or its process ended.  *released gets the
 * number of rows, after an error too.
 */
enum iw_error owner_leases_release(const struct db *db, enum leases_table table, const char *machine,
                                   int64_t *released) IW_MUST_USE;

#endif
