/* The number of orders of a filter, with a cache for large accounts. */
#ifndef DOMAIN_ORDER_COUNT_H
#define DOMAIN_ORDER_COUNT_H

#include <stdint.h>

#include "domain/domain.h"
#include "store/orders.h"

/* Counts the orders of a filter.  A cached count may lack orders that commit late (order_count.c). */
enum iw_error order_count(struct domain *domain, const struct order_filter *filter,
                          int64_t *count) IW_MUST_USE;

#endif
