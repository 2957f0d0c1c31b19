/*
 * What time does to orders: pending ones that nobody started fail, complete
 * ones lose their files, inputs of ended ones are cleared away.
 *
 * Small bounded steps, each its own transaction, each safe to be cut off and
 * done again.
 */
#ifndef DOMAIN_RETENTION_H
#define DOMAIN_RETENTION_H

#include "domain/domain.h"
#include "service/storage.h"
#include "store/orders.h"

/* Fails pending orders whose time is over (UPLOAD_EXPIRED), at most most of them; count gets how many. */
enum iw_error retention_abandon(const struct domain *domain, struct storage *storage, unsigned most,
                                unsigned *count) IW_MUST_USE;

/*
 * Deletes the files of complete orders whose time is over and makes them
 * expired, at most most of them; count gets how many.
 */
enum iw_error retention_expire(const struct domain *domain, struct storage *storage, unsigned most,
                               unsigned *count) IW_MUST_USE;

/*
 * Ends an order that has no result yet, at an operator's word: pending or in
 * progress it becomes failed with ORDER_CANCELLED, its webhooks are told, its
 * inputs are deleted.
 * VALIDATION_FAILED, with a sentence, for an order that has ended or has results.
 */
enum iw_error retention_cancel(const struct domain *domain, struct storage *storage,
                               int64_t order_id) IW_MUST_USE;

/* Deletes what of an ended order no longer counts: its inputs, and results of attempts that lost. */
enum iw_error retention_order_clear(const struct domain *domain, struct storage *storage,
                                    int64_t order_id) IW_MUST_USE;

/* The same in steps, for several orders at once. */
enum { retention_orders_max = orders_batch_max };

/* Keeps those of the orders that have ended; they may have been opened anew. */
enum iw_error retention_ended(const struct domain *domain, int64_t *order_ids, unsigned *count) IW_MUST_USE;

/* First the files, */
enum iw_error retention_inputs_delete(const struct domain *domain, struct storage *storage,
                                      int64_t order_id) IW_MUST_USE;

/* then the rows that name them: whoever dies in between leaves a trace. */
enum iw_error retention_inputs_forget(const struct domain *domain, const int64_t *order_ids,
                                      unsigned count) IW_MUST_USE;

/*
 * Looks for inputs that outlived their order and clears them: at once those that
 * its rows still name, because somebody died between its end and
 * retention_order_clear; those that no row names once the order is too old to be
 * pending.  Walks all inputs of the store.
 */
enum iw_error retention_reclaim(const struct domain *domain, struct storage *storage,
                                unsigned *count) IW_MUST_USE;

/*
 * Looks for results, archives and thumbnails that no row names, of orders that have ended, and deletes those
 * older than an hour: a worker put them that died when another had ended the order already.  Of orders that
 * are under way nothing is touched, nor of orders that the database does not know: it may be the wrong one.
 *
 * A walk goes in steps: from *part (0 at first) on until the step has seen keys_enough keys or is at the end
 * of the store, where *part becomes 0 again.  count gets how many files were deleted.
 */
enum iw_error retention_orphans(const struct domain *domain, struct storage *storage, unsigned *part,
                                unsigned keys_enough, unsigned *count) IW_MUST_USE;

#endif
