/*
 * The table account_usage: the counters of an account and the limits that override its plan.
 *
 * The counters change in the transactions that use them, always after the order's rows, so that no two
 * transactions wait for each other. Deletions of files are counted by quotas_reconcile.
 */
#ifndef DB_QUOTAS_H
#define DB_QUOTAS_H

#include <stdint.h>

#include "base/context.h"
#include "db/query.h"
#include "model/quota.h"

/* The amounts that one creation uses, and the limits that it must keep. */
struct quota_claim {
    int64_t account_id;
    struct quota_amounts amounts; /* of the creation */
    int64_t texts;                /* new ones */
    bool is_covered;              /* covered by the reserve, so only the texts are claimed */
    struct quota_reserve
        reserve;   /* if not covered, the reserve that was taken, which is deducted from the claim */
    int64_t ahead; /* number of further creations of the same amounts that are also claimed */
    int64_t upload_max_bytes;
    int64_t now_ms;
    const struct quota_numbers *limits;
};

/* A claim ahead leaves a quarter of each limit for claims of single creations. */
enum { quota_ahead_quarters = 3 };

/*
 * Returns true if the reserve covers the creation exactly, so that there is nothing to count. The statement
 * below would then change no row, which means that a limit is reached.
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

/* Creates the account's row if there is none, to be reconciled immediately. */
enum iw_error quotas_open(const struct db *db, int64_t account_id) IW_MUST_USE;

/*
 * Reads the counters, with promised bytes in uploads. The text day is the UTC day of the daily counters
 * ("YYYY-MM-DD").
 */
enum iw_error quotas_used(const struct db *db, int64_t account_id, const char *day,
                          struct quota_numbers *used, bool *is_found) IW_MUST_USE;

/* Locks the account's row until the transaction ends. */
enum iw_error quotas_lock(const struct db *db, int64_t account_id, bool *is_found) IW_MUST_USE;

/* The limits that override the plan, as columns of account_usage u in the order of enum quota. */
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

/* Claims the account whose last reconciliation is the oldest, if it was before a time. */
enum iw_error quotas_due(const struct db *db, int64_t before_ms, int64_t now_ms, struct quota_due *due,
                         bool *is_found) IW_MUST_USE;

/*
 * Adds to each counter its difference from the rows and the reserve, which are read in one snapshot, so that
 * concurrent usage stays counted.
 */
enum iw_error quotas_reconcile(const struct db *db, int64_t account_id,
                               const struct quota_amounts *reserve) IW_MUST_USE;

enum iw_error quotas_warned_write(const struct db *db, int64_t account_id, int64_t warned) IW_MUST_USE;

#endif
