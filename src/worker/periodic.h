/*
 * Periodic work on jobs and orders of all workers: leases of dead workers, jobs behind a clock that
 * stepped back, orders that are due, files that no row names.  Also checks the keys if the database was
 * away at the start.
 */
#ifndef WORKER_PERIODIC_H
#define WORKER_PERIODIC_H

#include <stdint.h>

#include "db/census.h"
#include "service/files/storage.h"
#include "worker/loop.h"

struct keyring;
struct mailer;
struct shared;

enum periodic_kind {
    PERIODIC_SWEEP,
    PERIODIC_HASTEN,
    PERIODIC_RETENTION,
    PERIODIC_RECLAIM,
    PERIODIC_ORPHANS,
    PERIODIC_QUOTAS,
    PERIODIC_KEYRING,
    PERIODIC_INDEX,
    PERIODIC_CENSUS,
    PERIODIC_UPLOADS,
    PERIODIC_MAILS,
    PERIODIC_RETRIES,
    PERIODIC_USERS,
    PERIODIC_COUNT
};

struct periodic {
    struct shared *shared;
    const struct keyring *keyring; /* of the keys in use */
    struct mailer *mailer;
    int64_t at_ms[PERIODIC_COUNT]; /* monotonic */
    enum periodic_kind last;       /* the kind that ran last */
    int64_t forget_after_id;       /* where the next look for rows of old orders begins */
    int64_t stuck_after_id;        /* where the next look for stuck orders begins */
    int64_t index_after_id;        /* the account after which the next look for new orders begins */
    struct census census;
    struct storage_cursor orphans; /* of the store: where the next step begins */
};

/* With the file store open. */
void periodic_open(struct periodic *periodic);

extern const struct loop_timer periodic_timer; /* one due piece of work, each kind in turn */

#endif
