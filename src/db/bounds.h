/*
 * Bounds of the tables that grow with requests: request_log, request_bodies and audit_events.
 *
 * The newest rows of an account are kept, and the newest rows of the table. Ids grow with time.
 */
#ifndef DB_BOUNDS_H
#define DB_BOUNDS_H

#include <stdint.h>

#include "base/context.h"
#include "db/query.h"

enum bounds_table { BOUNDS_REQUESTS, BOUNDS_BODIES, BOUNDS_EVENTS, BOUNDS_COUNT };

enum {
    /* A row of the request log takes 420 bytes with the index: 42 MB an account, 4.2 GB in all. */
    bounds_account_rows = 100000,
    bounds_table_rows = 10000000,
    /* A row of bodies takes up to 8.3 kB, usually 2 kB: 83 MB an account, 4.2 GB in all. */
    bounds_account_bodies = 10000,
    bounds_table_bodies = 500000,
    bounds_step = 5000
};

/*
 * Deletes at most bounds_step rows beyond each of the two bounds and sets *count to their number. Checks the
 * account of the newest row, so an account is checked as often as it writes.
 */
enum iw_error bounds_trim(const struct db *db, enum bounds_table table, int64_t *count) IW_MUST_USE;

/* As bounds_trim, for bodies of deliveries, up to 9 kB a row: bounds_table_bodies is their only bound. */
enum iw_error bounds_trim_deliveries(const struct db *db, int64_t *count) IW_MUST_USE;

#endif
