/*
 * Pending orders: upload URLs, confirmation and start (contract 3.3 and 6).
 *
 * If uploads go straight to an object store, a worker looks for those of embedding and extraction orders,
 * which start with their last upload: at growing intervals, and at once after a notification of the store.
 */
#ifndef DOMAIN_ORDERS_ORDER_CONFIRM_H
#define DOMAIN_ORDERS_ORDER_CONFIRM_H

#include <stdbool.h>
#include <stdint.h>

#include "domain/domain.h"
#include "domain/orders/order_query.h"
#include "model/order.h"

/*
 * Starts an order whose files are all uploaded, in one transaction with its jobs, and sends the wake-up.  A
 * started order stays as it is; status gets the order's status. ORDER_NOT_FOUND; ORDER_NOT_PENDING for a
 * failed or expired order; ORDER_FILE_NOT_UPLOADED with a detail for each missing file.
 */
enum iw_error order_confirm(struct domain *domain, int64_t account_id, int64_t id,
                            enum order_status *status) IW_MUST_USE;

/*
 * Starts a pending order inside the caller's transaction, which has locked its
 * row: status and jobs.  ORDER_NOT_PENDING.
 */
enum iw_error order_start(const struct domain *domain, const struct order *order,
                          enum order_status *status) IW_MUST_USE;

/* Finds a pending order, for fresh upload URLs.  ORDER_NOT_FOUND, ORDER_NOT_PENDING. */
enum iw_error order_refresh(struct domain *domain, int64_t account_id, int64_t id,
                            struct order_view *view) IW_MUST_USE;

/* The presigned upload URL of a file, in the arena; *expires_ms gets its expiry. */
const char *order_upload_url(const struct domain *domain, struct arena *arena, int64_t order_id,
                             const struct order_file *file, int64_t *expires_ms);

/* The file key of an upload: fileKey of the contract. */
const char *order_upload_key(struct arena *arena, int64_t order_id, const struct order_file *file);

/* ---- orders that start with their last upload ---- */

/*
 * Looks at a few due orders and starts those that are complete. *is_more is true if other orders may be
 * due.
 */
enum iw_error order_upload_checks_run(struct domain *domain, bool *is_more) IW_MUST_USE;

/*
 * The store has a new object with this name: the order is looked at next. Names of other objects are
 * ignored.
 */
enum iw_error order_upload_check_hasten(struct domain *domain, const char *object_name) IW_MUST_USE;

#endif
