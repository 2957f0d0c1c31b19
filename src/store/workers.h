/*
 * The workers as they tell of themselves, a row each, and the switch that keeps
 * them from taking new jobs.  Times are the database's, so that the clocks of
 * workers do not matter.
 */
#ifndef STORE_WORKERS_H
#define STORE_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/context.h>

#include "store/db.h"

struct worker_row {
    const char *owner;
    const char *host;
    int64_t pid;
    const char *version;
    int64_t places;
    int64_t busy;
    const char *metrics; /* samples, a line each */
    int64_t started_ms;
    int64_t silent_s; /* since its last sign of life */
};

/* Writes a worker's row anew. */
enum iw_error workers_note(const struct store *store, const struct worker_row *row) IW_MUST_USE;

/* Takes the row of a worker that ends, and those that have been silent for an hour. */
enum iw_error workers_forget(const struct store *store, const char *owner) IW_MUST_USE;

/* All of them by host and pid; the array is the arena's. */
enum iw_error workers_list(const struct store *store, struct worker_row **rows, unsigned *count) IW_MUST_USE;

/* Whether workers are to take no new jobs; and switching it.  Changed says whether it was otherwise before.
 */
enum iw_error workers_paused(const struct store *store, bool *is_paused) IW_MUST_USE;
enum iw_error workers_pause(const struct store *store, bool is_paused, bool *is_changed) IW_MUST_USE;

#endif
