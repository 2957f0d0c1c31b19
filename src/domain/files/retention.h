/*
 * Retention: the changes of orders by time.  A pending order that is not started fails, a complete order
 * loses its files, and the inputs of a finished order are deleted.
 *
 * The work is a series of small transactions.  Each can be interrupted and repeated.
 */
#ifndef DOMAIN_FILES_RETENTION_H
#define DOMAIN_FILES_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "db/orders.h"
#include "domain/domain.h"
#include "service/files/storage.h"

/* Fails at most max pending orders after their time (UPLOAD_EXPIRED); *count gets their number. */
enum iw_error retention_abandon(const struct domain *domain, struct storage *storage, unsigned max,
                                unsigned *count) IW_MUST_USE;

/* Expires at most max complete orders after their time: deletes their files.  *count gets their number. */
enum iw_error retention_expire(const struct domain *domain, struct storage *storage, unsigned max,
                               unsigned *count) IW_MUST_USE;

/*
 * Cancels an order without results, on an operator's command.  A pending order or an order in progress
 * fails with ORDER_CANCELLED, webhooks are notified and the inputs deleted. With is_forced also an order
 * with results, which are deleted. VALIDATION_FAILED, with a sentence, for a finished order, or one with
 * results.
 */
enum iw_error retention_cancel(const struct domain *domain, struct storage *storage, int64_t order_id,
                               bool is_forced) IW_MUST_USE;

/*
 * Deletes all files of an order, on a client's command. An order that has not ended fails with
 * ORDER_CANCELLED, a complete order expires.  The row stays. Without effect on an order without files.
 * *status gets the new status. ORDER_NOT_FOUND; SERVICE_UNAVAILABLE without the file store.
 */
enum iw_error retention_delete(struct domain *domain, int64_t account_id, int64_t order_id,
                               enum order_status *status) IW_MUST_USE;

/*
 * Fails orders that are older than orders.stuck_s and have a job that was retried twenty times or more,
 * because the input or result vanished from the store.  Looks at max orders after *after_id, which advances
 * and is 0 again at the end.  *count gets the number of orders that failed.
 */
enum iw_error retention_stuck(const struct domain *domain, struct storage *storage, unsigned max,
                              int64_t *after_id, unsigned *count) IW_MUST_USE;

/*
 * Deletes the rows of orders that ended more than orders.rows_kept_days ago and have no files. Watermark
 * texts stay, because marks in pictures refer to them. Looks at max orders after *after_id, as
 * retention_stuck.
 */
enum iw_error retention_forget(const struct domain *domain, unsigned max, int64_t *after_id,
                               unsigned *count) IW_MUST_USE;

/*
 * A step of the deletion of an account whose time has come (imgwardctl account delete): at most max orders
 * with their files, then the other rows of the account, texts included. *is_busy is true if there was such
 * an account.
 */
enum iw_error retention_account_delete(const struct domain *domain, struct storage *storage, unsigned max,
                                       bool *is_busy) IW_MUST_USE;

/* Deletes the inputs of a finished order, and results that no row names. */
enum iw_error retention_order_clear(const struct domain *domain, struct storage *storage,
                                    int64_t order_id) IW_MUST_USE;

/* The same in steps, for several orders at once. */
enum { retention_orders_max = orders_batch_max };

/* Step 1: keeps the finished ones of the orders; an order may have been reopened. */
enum iw_error retention_ended(const struct domain *domain, int64_t *order_ids, unsigned *count) IW_MUST_USE;

/* Step 2: deletes the files of one order. */
enum iw_error retention_inputs_delete(const struct domain *domain, struct storage *storage,
                                      int64_t order_id) IW_MUST_USE;

/* Step 3: clears the rows.  They go last, so that an interrupted run finds the files again. */
enum iw_error retention_inputs_forget(const struct domain *domain, const int64_t *order_ids,
                                      unsigned count) IW_MUST_USE;

/* True if a key is one of the kept texts (orders_store_keys). */
bool retention_is_kept(struct arena *arena, const struct query_texts *kept, const struct storage_key *key);

/* ---- a batch of work on many orders ---- */

struct retention_batch {
    const struct domain *caller; /* its context gets the first error */
    struct domain domain;        /* the same handles, with the context below: for the work on each order */
    struct context context;
    unsigned stuck; /* orders that the file store refused */
};

void retention_batch_begin(struct retention_batch *batch, const struct domain *caller);

/*
 * After an order, or after a query (order_id 0): clears the context.  IW_OK if
 * the batch may continue, which includes a refusal of the file store.
 */
enum iw_error retention_batch_next(struct retention_batch *batch, enum iw_error error,
                                   int64_t order_id) IW_MUST_USE;

/* The error that ended the batch, else the first error of the file store. */
enum iw_error retention_batch_end(const struct retention_batch *batch, enum iw_error error) IW_MUST_USE;

#endif
