/*
 * The table jobs: queued, leased, recorded.  Leases are in leases.h, states in model/job.h.
 *
 * The database's clock decides which jobs are due. A worker records an outcome with its attempt as the
 * fencing token, so it changes nothing after its lease was lost.
 */
#ifndef DB_JOBS_H
#define DB_JOBS_H

#include <stdint.h>

#include "base/context.h"
#include "db/query.h"
#include "model/job.h"

/* The most jobs of one lease. */
enum { jobs_lease_max = 8 };

/*
 * Writes the jobs of an order that starts, inside that transaction: a fetch for a file with a source URL,
 * otherwise one job per file, or per watermark text of the file. The jobs carry context->request_id.
 */
enum iw_error jobs_insert_for_order(const struct db *db, int64_t order_id) IW_MUST_USE;

/* Adds the same to a statement that is put together. */
void jobs_insert_for_order_add(struct query *query, const char *request_id, int64_t order_id);

/* The same for one file after its fetch. */
enum iw_error jobs_insert_for_file(const struct db *db, int64_t order_id, int64_t file_id) IW_MUST_USE;

/* Writes the archive job of an order, once. */
enum iw_error jobs_insert_archive(const struct db *db, int64_t order_id) IW_MUST_USE;

/* Writes the job that pushes the result of a file to its output target. */
enum iw_error jobs_insert_push(const struct db *db, const struct job *job) IW_MUST_USE;

/* The number of queued and leased jobs of a file.  Lock the order first. */
enum iw_error jobs_left(const struct db *db, int64_t order_id, int64_t file_id, int64_t *count) IW_MUST_USE;

struct jobs_wish {
    const char *owner;
    enum job_class class;
    int64_t lease_s;
    unsigned account_most; /* jobs of the class that one account may have at this owner */
    int64_t *cursor;       /* 0 at first; then jobs_lease writes the account of the last turn */
};

/*
 * Leases up to most due jobs of a class, at most jobs_lease_max. Skips jobs that another worker is leasing.
 * Sets their files to processing.
 *
 * Fair between accounts: each place goes to the account with the fewest leased jobs of the class; equal
 * accounts take turns; the longest wait decides within an account. So a large order delays no other account.
 * If jobs may take long, account_most leaves places for other accounts.
 */
enum iw_error jobs_lease(const struct db *db, const struct jobs_wish *wish, unsigned most, struct job *jobs,
                         unsigned *count) IW_MUST_USE;

/*
 * Applies an event of its worker to a leased job, with the counts of the verdict.  *is_fenced: a
 * later attempt holds the lease, and nothing was written.  reason is a short constant word, or NULL.
 */
enum iw_error jobs_move(const struct db *db, const struct job *job, const struct job_verdict *verdict,
                        const char *reason, bool *is_fenced) IW_MUST_USE;

/* Makes the queued jobs of an order due now, resets their failures, and sets count to their number. */
enum iw_error jobs_hurry(const struct db *db, int64_t order_id, int64_t *count) IW_MUST_USE;

/*
 * Requeues the failed jobs of an order, resets their failures, and sets count to their number. Leaves out
 * pushes, because their results were deleted. Lock the order first.
 */
enum iw_error jobs_reopen(const struct db *db, int64_t order_id, int64_t *count) IW_MUST_USE;

/* The number of failed pushes of an order. */
enum iw_error jobs_lost(const struct db *db, int64_t order_id, int64_t *count) IW_MUST_USE;

/* Cancels the queued jobs of an order that ends. The outcome of a leased job finds the ended order. */
enum iw_error jobs_cancel(const struct db *db, int64_t order_id) IW_MUST_USE;

/* Deletes the ended jobs of an order whose files were deleted, so that the table stays small. */
enum iw_error jobs_forget(const struct db *db, int64_t order_id) IW_MUST_USE;

/* ---- For operators and monitoring; read only ---- */

struct jobs_count {
    enum job_kind kind;
    enum job_state state;
    int64_t count;
    int64_t oldest_s; /* since the oldest was due; 0 for ended jobs */
};

/* Queued and leased jobs, and those that ended within a day, by kind and state; the array is in the arena. */
enum iw_error jobs_counts(const struct db *db, struct jobs_count **counts, unsigned *count) IW_MUST_USE;

/* The owners of leases, with their jobs and the seconds until the first lease ends. */
enum iw_error jobs_inspect_owners(const struct db *db, struct query_table *table) IW_MUST_USE;

/* At most most failed jobs, newest first. */
enum iw_error jobs_inspect_failed(const struct db *db, int64_t most, struct query_table *table) IW_MUST_USE;

struct jobs_failed {
    int64_t id;
    const char *kind;
    int64_t order_id;
    int64_t account_id;
    int64_t attempts;
    const char *reason; /* NULL if there is none */
    int64_t updated_ms;
    bool is_retryable; /* its order is in progress */
};

/* One page of the failed jobs, newest first; the array is in the arena. */
enum iw_error jobs_failed_page(const struct db *db, int64_t limit, int64_t offset, struct jobs_failed **jobs,
                               size_t *count, int64_t *total) IW_MUST_USE;

/* Finds the order of a failed job while the order is in progress; otherwise *order_id is 0. */
enum iw_error jobs_failed_order(const struct db *db, int64_t id, int64_t *order_id) IW_MUST_USE;

/* Retries that an operator requested in the console, in the table job_retries; the worker executes them. */
enum iw_error jobs_retry_request(const struct db *db, int64_t id, int64_t now_ms) IW_MUST_USE;
enum iw_error jobs_retry_take(const struct db *db, struct query_ids *ids) IW_MUST_USE;
enum iw_error jobs_retry_done(const struct db *db, int64_t id) IW_MUST_USE;

/* Jobs, orders and deliveries of the last minute and hour. */
enum iw_error jobs_inspect_rates(const struct db *db, struct query_table *table) IW_MUST_USE;

#endif
