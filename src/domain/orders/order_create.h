/* Creation of orders (contract 3). */
#ifndef DOMAIN_ORDERS_ORDER_CREATE_H
#define DOMAIN_ORDERS_ORDER_CREATE_H

#include "domain/domain.h"
#include "domain/orders/order_query.h"
#include "domain/orders/order_request.h"

struct admission;

/*
 * Admits the request and creates the order, or finds the one that the same key created before (is_replay).
 * While a concurrent creation holds the key's lock, waits for it, at most as long as a lock lives.
 * RATE_LIMIT_EXCEEDED; IDEMPOTENCY_KEY_REUSED if the body differs; VALIDATION_FAILED if a target's URL has
 * expired and there is no replay.  VALIDATION_FAILED also if the request would exceed a limit in an unused
 * account; USAGE_LIMIT_EXCEEDED, with view->refusal, if a quota of the account is used up.  An error
 * releases the lock.
 */
enum iw_error order_create(struct domain *domain, struct admission *admission,
                           const struct order_request *requested, struct order_view *view) IW_MUST_USE;

#endif
