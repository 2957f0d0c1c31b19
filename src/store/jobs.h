/*
 * The job table: what there is to do, who does it, and until when.
 *
 * A job is leased for a time counted by the database's clock, so that the
 * clocks of workers do not matter.  Every lease counts the attempt up, and
 * whatever a worker writes afterwards names its attempt: a worker that lost its
 * lease changes nothing any more.
 */
#ifndef STORE_JOBS_H
#define STORE_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/context.h>

#include "model/job.h"
#include "model/order.h"
#include "store/db.h"

/* Most jobs that one call leases. */
enum { jobs_lease_max = 8 };

/*
 * Writes the jobs of an order that starts inside the transaction that makes it
 * inProgress: a fetch for a file that comes by URL, otherwise one for each file,
 * and for each watermark text of it.  They carry context->request_id.
 */
enum iw_error jobs_insert_for_order(const struct store *store, int64_t order_id) IW_MUST_USE;

/* The statement of the above, for a compound one; question marks: request id, order id. */
extern const char jobs_insert_for_order_sql[];

/* The same for one file that has just been fetched. */
enum iw_error jobs_insert_for_file(const struct store *store, int64_t order_id, int64_t file_id) IW_MUST_USE;

/* Writes the archive job of an order; there is never more than one. */
enum iw_error jobs_insert_archive(const struct store *store, int64_t order_id) IW_MUST_USE;

/* Writes the job that pushes the result of a file to its target. */
enum iw_error jobs_insert_push(const struct store *store, const struct job *job) IW_MUST_USE;

/* How many jobs of a file are not done yet.  Lock the order's row first. */
enum iw_error jobs_left(const struct store *store, int64_t order_id, int64_t file_id,
                        int64_t *count) IW_MUST_USE;

/* For whom and how jobs are leased. */
struct jobs_place {
    const char *owner;
    enum job_class class;
    int64_t lease_s;
    unsigned account_most; /* jobs of the class that one account has at this owner */
    int64_t *cursor;       /* 0 at first, then jobs_lease's own: whose turn was last */
};

/*
 * Leases up to most jobs (at most jobs_lease_max) of a class whose time has come,
 * passing over those that another worker is just leasing.  Marks their files as
 * in processing.
 *
 * Fair between accounts: each place goes to the account with the fewest jobs of
 * the class in work; among equals they take turns; and of an account the job that
 * waited longest comes first.  So an order of a hundred files holds back nobody
 * else's single one.  account_most keeps room for others where jobs may take long.
 */
enum iw_error jobs_lease(const struct store *store, const struct jobs_place *place, unsigned most,
                         struct job *jobs, unsigned *count) IW_MUST_USE;

/* Renews every lease of the owner; count gets how many there are. */
enum iw_error jobs_renew(const struct store *store, const char *owner, int64_t lease_s,
                         int64_t *count) IW_MUST_USE;

/*
 * Moves a leased job on by an event of its worker (finish, retry, fail, give
 * back), with the counts of a verdict, if the attempt is still the one that
 * holds the lease; NOT_FOUND with the reason "fenced" otherwise.  reason is a
 * short constant word or NULL.
 */
enum iw_error jobs_move(const struct store *store, const struct job *job, const struct job_verdict *verdict,
                        const char *reason) IW_MUST_USE;

/* Queues again what was leased to an owner who is dead; count gets how many. */
enum iw_error jobs_release_owner(const struct store *store, const char *owner, int64_t *count) IW_MUST_USE;

/* Queues again what nobody renewed in time, some at a time; count gets how many. */
enum iw_error jobs_release_silent(const struct store *store, int64_t *count) IW_MUST_USE;

/*
 * Queues at once what no wait and no lease of ours can have set so far ahead:
 * the database's clock was set back since.  Some at a time; count gets how many.
 */
enum iw_error jobs_hasten_stranded(const struct store *store, int64_t *count) IW_MUST_USE;

/* The owners of leases whose names begin with a prefix; the array is the arena's. */
enum iw_error jobs_owners(const struct store *store, const char *prefix, const char ***owners,
                          unsigned *count) IW_MUST_USE;

/* Lets the waiting jobs of an order begin at once, with their troubles forgotten; count gets how many. */
enum iw_error jobs_hurry(const struct store *store, int64_t order_id, int64_t *count) IW_MUST_USE;

/*
 * Queues the failed jobs of an order on files anew, with their troubles forgotten; count gets how
 * many.  A push is left alone: what it was to push is gone.  Lock the order first.
 */
enum iw_error jobs_reopen(const struct store *store, int64_t order_id, int64_t *count) IW_MUST_USE;

/* How many pushes of an order have failed. */
enum iw_error jobs_lost(const struct store *store, int64_t order_id, int64_t *count) IW_MUST_USE;

/* Cancels the queued jobs of an order that ends without them; leased ones find out when they are recorded. */
enum iw_error jobs_cancel(const struct store *store, int64_t order_id) IW_MUST_USE;

/* Deletes the ended jobs of an order whose files are gone: nothing asks for them any more, and the table
 * stays as long as the orders that live. */
enum iw_error jobs_forget(const struct store *store, int64_t order_id) IW_MUST_USE;

/* How many jobs of each kind and state there are, and how long the oldest has waited. */
struct jobs_count {
    enum job_kind kind;
    enum job_state state;
    int64_t count;
    int64_t oldest_s; /* since it could first have been leased; 0 for ended ones */
};

/* Of queued and leased jobs and of those that ended within a day; the array is the arena's. */
enum iw_error jobs_counts(const struct store *store, struct jobs_count **counts, unsigned *count) IW_MUST_USE;

#endif
