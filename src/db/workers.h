/*
 * The table workers, with one row per running worker, and the switch that pauses the queue.
 *
 * Times are the database's, so workers need no common clock.
 */
#ifndef DB_WORKERS_H
#define DB_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "db/db.h"

struct worker_row {
    const char *owner;
    const char *host;
    int64_t pid;
    const char *version;
    int64_t places;
    int64_t busy;
    const char *metrics; /* samples of the worker, one per line */
    int64_t started_ms;
    int64_t silent_s; /* since its last heartbeat */

    /* Reasons are bytes as the failure reported them; NULL if the time is 0. */
    int64_t image_ready;
    int64_t image_failing_ms; /* since when starts of image processes fail; 0 if they succeed */
    const char *image_reason;
    int64_t store_failed_ms; /* the last failed access to the file store; 0 if there is none */
    const char *store_reason;
    int64_t mail_sent_ms; /* 0 if there is none */
    int64_t mail_failed_ms;
    const char *mail_reason;
};

/* Inserts or updates the row of a worker, without its mails. */
enum iw_error workers_note(const struct db *db, const struct worker_row *row) IW_MUST_USE;

/* Records that a worker sent a mail, or, with a reason, that a mail failed. */
enum iw_error workers_mail_note(const struct db *db, const char *owner, const char *reason) IW_MUST_USE;

/* Deletes the row of a worker that ends, and rows without a heartbeat for an hour. */
enum iw_error workers_forget(const struct db *db, const char *owner) IW_MUST_USE;

/* All workers by host and pid; the array is the arena's. */
enum iw_error workers_list(const struct db *db, struct worker_row **rows, unsigned *count) IW_MUST_USE;

/*
 * While the queue is paused, workers lease no jobs. *is_changed is false if the switch already had this
 * state.
 */
enum iw_error workers_paused(const struct db *db, bool *is_paused) IW_MUST_USE;
enum iw_error workers_pause(const struct db *db, bool is_paused, bool *is_changed) IW_MUST_USE;

#endif
