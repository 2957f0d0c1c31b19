/*
 * Leases of jobs and deliveries: the exclusive, time-limited right of a worker to a row.
 *
 * Both tables have the columns status, attempt, lease_owner, lease_until and available_at. A lease increments
 * attempt, the fencing token, and a worker can write a row only with the token of the current lease. The
 * database's clock limits leases, so workers need no common clock.
 */
#ifndef DB_LEASES_H
#define DB_LEASES_H

#include <stdint.h>

#include "base/context.h"
#include "db/query.h"

enum leases_table { LEASES_JOBS, LEASES_DELIVERIES, LEASES_TABLE_COUNT };

/* The most rows of one lease. */
enum { leases_rows_max = 8 };

struct leases_request {
    const char *owner;
    int64_t lease_s;
    int64_t now_ms; /* for updated_at; 0 for the database's time */
};

/* Leases rows that the transaction has locked. */
enum iw_error leases_take(const struct db *db, enum leases_table table, const struct leases_request *request,
                          const int64_t *ids, unsigned count) IW_MUST_USE;

/* Renews an owner's leases of the rows whose ids are in a list with commas, and sets count to their number.
 */
enum iw_error leases_renew(const struct db *db, enum leases_table table, const char *owner, const char *ids,
                           int64_t lease_s, int64_t *count) IW_MUST_USE;

/* Requeues the rows of an owner that died and sets count to their number. */
enum iw_error leases_release_owner(const struct db *db, enum leases_table table, const char *owner,
                                   int64_t *count) IW_MUST_USE;

/* Requeues rows whose lease ended, a limited number per call, and sets count to their number. */
enum iw_error leases_release_silent(const struct db *db, enum leases_table table, int64_t *count) IW_MUST_USE;

/*
 * Makes rows due whose time is further ahead than any backoff or lease, because a clock was set back. Changes
 * a limited number per call and sets count to it. Deliveries are due by the time now_ms.
 */
enum iw_error leases_hasten_stranded(const struct db *db, enum leases_table table, int64_t now_ms,
                                     int64_t *count) IW_MUST_USE;

/* The owners of leases whose names begin with a prefix. */
enum iw_error leases_owners(const struct db *db, enum leases_table table, const char *prefix,
                            struct query_texts *owners) IW_MUST_USE;

#endif
