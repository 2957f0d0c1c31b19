/*
 * The numbers of /metrics that would need whole tables.
 *
 * A census reads a table in slices by its primary key; the sums are published in the table census.  Until a
 * number reaches census_live_max, /metrics reads it directly and exactly.
 */
#ifndef STORE_CENSUS_H
#define STORE_CENSUS_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/context.h>

#include "store/db.h"

enum census_source {
    CENSUS_JOBS,       /* queued and leased ones, and those that ended within a day; by kind and status */
    CENSUS_ORDERS,     /* by status; archives: bytes */
    CENSUS_DELIVERIES, /* by status in lower case */
    CENSUS_ACCOUNTS,   /* near_limit: accounts that use 80 per cent of a limit */
    CENSUS_FILES,      /* inputs: bytes */
    CENSUS_RESULTS,    /* results: bytes */
    CENSUS_SOURCE_COUNT
};

struct census_row {
    enum census_source source;
    const char *kind; /* "" for sources other than jobs */
    const char *state;
    int64_t number;
    int64_t oldest_ms; /* 0: none waits */
    bool is_partial;   /* of census_live: the state has more rows than were read */
};

/* Rows in the arena. */
struct census_rows {
    struct census_row *items;
    unsigned count;
};

/* True for rows of one source and state. */
bool census_is_same(const struct census_row *one, const struct census_row *other);

/* Counts the next rows of a source after *after_id.  Advances *after_id; 0 at the end. */
enum iw_error census_slice(const struct store *store, enum census_source source, int64_t *after_id,
                           struct census_rows *rows) IW_MUST_USE;

/* In a transaction: replaces the numbers of a source. */
enum iw_error census_publish(const struct store *store, enum census_source source,
                             const struct census_row *rows, unsigned count) IW_MUST_USE;

/* The published numbers. */
enum iw_error census_read(const struct store *store, struct census_rows *rows) IW_MUST_USE;

/* Rows that census_live reads of a status. */
enum { census_live_max = 1000 };

/* The numbers of jobs, orders that have not ended, deliveries and accounts now. */
enum iw_error census_live(const struct store *store, struct census_rows *rows) IW_MUST_USE;

#endif
