/*
 * The table account_usage: an account's counters and its own limits.
 *
 * The counters change in the transactions that use them, always after the order's rows: no two transactions
 * wait for each other.  Deletions of files are not counted here but by quotas_reconcile.
 */
#ifndef DB_QUOTAS_H
#define DB_QUOTAS_H

#include <stdint.h>

#include "base/context.h"
#include "db/query.h"
#include "model/quota.h"

/* What one creation uses, and the limits that it must keep. */
struct quota_claim {
    int64_t account_id;
    struct quota_amounts amounts; /* of the creation */
    int64_t texts;                /* new ones */
    bool is_covered;              /* by the reserve: only the texts are claimed */
    struct quota_reserve reserve; /* not covered: taken, and deducted from the claim */
    int64_t ahead;                /* claimed, too, for as many more creations of the same amounts */
    int64_t upload_max_bytes;
    int64_t now_ms;
    const struct quota_numbers *limits;
};

/* A claim ahead leaves a quarter of each limit to claims of one creation. */
enum { quota_ahead_quarters = 3 };

/*
 * True if the reserve covers the creation exactly: there is nothing to count.  The statement below would
 * change no row, which means that a limit is reached.
 */
bool quotas_claim_is_empty(const struct quota_claim *claim);

/*
 * Adds the statement that counts a creation.  It changes no row if a limit is reached, or the account has no
 * row.
 */
void quotas_claim_add(struct query *query, const struct quota_claim *claim);

/* An order started: its uploads are no longer pending. */
enum iw_error quotas_order_started(const struct db *db, int64_t order_id) IW_MUST_USE;

/* An order ends. Call this before the status changes. */
enum iw_error quotas_order_ended(const struct db *db, int64_t order_id) IW_MUST_USE;

/* All files of an order are deleted from the file store. Call this before the rows forget the keys. */
enum iw_error quotas_order_erased(const struct db *db, int64_t order_id) IW_MUST_USE;

/* Bytes were added to the file store. */
enum iw_error quotas_stored(const struct db *db, int64_t account_id, int64_t bytes) IW_MUST_USE;

/*
 * A reserve is unusable: its files no longer count among the files of the day. quotas_reconcile corrects
 * the other counters.
 */
enum iw_error quotas_reserve_removed(const struct db *db, int64_t account_id,
                                     const struct quota_reserve *reserve, int64_t now_ms) IW_MUST_USE;

/* Creates the account's row if it has none, to be reconciled at once. */
enum iw_error quotas_open(const struct db *db, int64_t account_id) IW_MUST_USE;

/*
 * The counters; promised bytes in uploads.  day: the UTC day of the counters a day ("YYYY-MM-DD").
 */
enum iw_error quotas_used(const struct db *db, int64_t account_id, const char *day,
                          struct quota_numbers *used, bool *is_found) IW_MUST_USE;

/* Locks the account's row until the transaction ends. */
enum iw_error quotas_lock(const struct db *db, int64_t account_id, bool *is_found) IW_MUST_USE;

/* The account's own limits, as columns of account_usage u in the order of enum quota. */
#define QUOTA_LIMIT_COLUMNS                                                                                  \
    "u.orders_pending_max, u.files_pending_max, u.promised_bytes_max, u.stored_bytes_max, "                  \
    "u.files_day_max, u.texts_day_max, u.webhooks_max"

/* Reads these columns; NULL is quota_of_plan. */
struct quota_numbers quotas_limits_of(struct db_row *columns);

/* The account's counters without webhooks, as columns of account_usage u in the order of enum quota. */
#define QUOTA_USE_COLUMNS                                                                                    \
    "u.orders_pending, u.files_pending, u.uploads_pending, u.stored_bytes, IF(u.day = UTC_DATE(), "          \
    "u.files_day, 0), IF(u.day = UTC_DATE(), u.texts_day, 0)"

/* Reads these columns. */
struct quota_numbers quotas_use_of(struct db_row *columns);

/* Sets one limit of an account; quota_of_plan removes it. */
enum iw_error quotas_limit_set(const struct db *db, int64_t account_id, enum quota quota,
                               int64_t limit) IW_MUST_USE;

/* When the first pending or the first complete order loses its files; 0 if no order will. */
enum iw_error quotas_frees_ms(const struct db *db, int64_t account_id, bool is_pending,
                              int64_t *at_ms) IW_MUST_USE;

/* An account that is due for reconciliation, with its limits and the bits of its warnings. */
struct quota_due {
    int64_t account_id;
    const char *plan;
    struct quota_numbers limits; /* its own */
    int64_t warned;
};

/* The account that was reconciled first, before a time; claims it. */
enum iw_error quotas_due(const struct db *db, int64_t before_ms, int64_t now_ms, struct quota_due *due,
                         bool *is_found) IW_MUST_USE;

/*
 * Adds to each counter its difference from the rows and the reserve, read in one snapshot: a use that is
 * counted meanwhile stays counted.
 */
enum iw_error quotas_reconcile(const struct db *db, int64_t account_id,
                               const struct quota_amounts *reserve) IW_MUST_USE;

enum iw_error quotas_warned_write(const struct db *db, int64_t account_id, int64_t warned) IW_MUST_USE;

#endif
