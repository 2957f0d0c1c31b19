/* The lists of orders (contract 6): one page, or all orders one by one. */
#ifndef DOMAIN_ORDER_LIST_H
#define DOMAIN_ORDER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "domain/domain.h"
#include "store/orders.h"

/* A page, newest first; the arrays are the arena's. */
struct order_list {
    struct order *orders;
    size_t count;
    int64_t total; /* of the filter; may lack orders that commit late (order_count.c) */
};

/* At most limit orders (100 at most) after the first offset ones. */
enum iw_error order_list(struct domain *domain, const struct order_filter *filter, int64_t limit,
                         int64_t offset, struct order_list *list) IW_MUST_USE;

/* All orders of a filter, newest first (orders_stream). */
enum iw_error order_list_stream(struct domain *domain, const struct order_filter *filter,
                                bool (*take)(void *user, const struct order *order), void *user) IW_MUST_USE;

#endif
