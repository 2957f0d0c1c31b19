/*
 * The worker's flags: one file asks for something, another one does it.
 * Calls nothing of this room, so that every file may set and read them.
 */
#ifndef WORKER_FLAGS_H
#define WORKER_FLAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "model/job.h"

struct flags {
    bool is_lease_wanted[JOB_CLASS_COUNT]; /* there may be jobs of the class */
    bool is_reclaim_wanted;                /* files that no row names may be left */
    bool is_paused;                        /* an operator paused the queue */
    bool is_keyring_unchecked;             /* the database could not say whether the keys belong to it */
    bool is_keyring_refused;               /* they do not: the worker must end */
    bool is_database_away;
    int64_t stop_at_ms; /* monotonic: end of the time to finish jobs; 0: not stopping */
};

/* Asks for a look for jobs of every class. */
void flags_lease_want(struct flags *flags);

/* True when no job may start: the queue is paused, or the worker stops. */
bool flags_is_draining(const struct flags *flags);

/*
 * Takes the result of a call to the database; true for IW_OK.  Logs a failure as
 * event and clears the context.  While the database is away, logs it only once.
 */
bool flags_database_report(struct flags *flags, struct context *context, enum iw_error error,
                           const char *event);

#endif
