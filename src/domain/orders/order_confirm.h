/* Pending orders: confirmation, start and fresh upload URLs (contract 3.3 and 6). */
#ifndef DOMAIN_ORDERS_ORDER_CONFIRM_H
#define DOMAIN_ORDERS_ORDER_CONFIRM_H

#include <stdint.h>

#include "domain/domain.h"
#include "domain/orders/order_query.h"
#include "model/order.h"

/*
 * Starts an order whose files are all uploaded, in one transaction with its jobs,
 * and sends the wake-up.  A started order stays as it is; status gets its status.
 * ORDER_NOT_FOUND; ORDER_NOT_PENDING for a failed or expired order;
 * ORDER_FILE_NOT_UPLOADED with a detail for each missing file.
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

#endif
