/*
 * The numbers of /metrics that would require reading whole tables.
 *
 * A census reads a table in slices by its primary key; the sums are published in the table census.  Until a
 * number reaches census_live_max, /metrics reads it directly and exactly.
 */
#ifndef DB_CENSUS_H
#define DB_CENSUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "db/db.h"

enum census_source {
    CENSUS_JOBS,       /* queued and leased jobs, and jobs that ended within a day; by kind and status */
    CENSUS_ORDERS,     /* by status */
    CENSUS_DELIVERIES, /* by status in lower case */
    CENSUS_ACCOUNTS,   /* near_limit counts accounts that use 80 % of a limit */
    CENSUS_INPUTS,     /* bytes */
    CENSUS_RESULTS,    /* bytes */
    CENSUS_ARCHIVES,   /* bytes */
    CENSUS_SOURCE_COUNT
};

enum {
    census_sums_max = 64,
    census_live_max = 1000 /* rows that census_read reads of a state */
};

/* A census in progress, in a worker's memory. If it is zero-initialized, it begins with the first source. */
struct census {
    enum census_source source;
    int64_t after_id;
    unsigned count;
    struct {
        char kind[20], state[20];
        int64_t number, oldest_ms;
    } sums[census_sums_max];
};

struct census_row {
    enum census_source source;
    const char *kind; /* "" for sources other than jobs */
    const char *state;
    int64_t number;
    int64_t oldest_ms; /* 0 if none waits */
};

/* Rows in the arena. */
struct census_rows {
    struct census_row *items;
    unsigned count;
};

/*
 * Counts a slice, which takes some milliseconds, and publishes the sums after the last slice of a source.
 * *is_round is set after the last source.
 */
enum iw_error census_step(const struct db *db, struct census *census, bool *is_round) IW_MUST_USE;

/*
 * The current numbers. Bytes and numbers above census_live_max come from the last census, which is seconds
 * to minutes old. Only orders that have not ended are counted.
 */
enum iw_error census_read(const struct db *db, struct census_rows *rows) IW_MUST_USE;

#endif
