/*
 * The handles that the parts of the worker share, and the flags by which one part asks another one
 * for something.  Knows no part.
 *
 * The worker is one thread.  It does no work on pixels, and no step takes longer than
 * copying one file: heartbeats must be on time.
 */
#ifndef WORKER_SHARED_H
#define WORKER_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/metrics.h"
#include "domain/domain.h"
#include "model/job.h"
#include "worker/owner.h"

struct shared {
    struct domain domain; /* the context is of one turn of the loop; a reload changes the config in place */
    const struct config *start; /* as at the start: no reload changes it, and drivers borrow it */
    struct metrics *metrics;
    char owner[owner_size];
    char machine[owner_size]; /* the part of owner that all workers of this machine share */

    bool is_lease_wanted[JOB_CLASS_COUNT]; /* there may be jobs of the class */
    bool is_delivery_wanted;               /* there may be due deliveries */
    bool is_reclaim_wanted;                /* files that no row names may be left */
    bool is_paused;                        /* an operator paused the queue */
    bool is_keyring_unchecked;             /* the database could not say whether the keys belong to it */
    bool is_keyring_refused;               /* they do not: the worker must end */
    bool is_database_away;
    int64_t stop_at_ms; /* monotonic: end of the time to finish jobs; 0 unless the worker stops */
};

/* Asks lease.c to look for jobs of every class. */
void shared_lease_want(struct shared *shared);

/* True if no job may start: the queue is paused, or the worker stops. */
bool shared_is_draining(const struct shared *shared);

/*
 * Takes the result of a call to the database in the context of the turn; true for IW_OK.  Logs a
 * failure as event and clears the context.  While the database is away, logs it only once.
 */
bool shared_database_report(struct shared *shared, enum iw_error error, const char *event);

#endif
