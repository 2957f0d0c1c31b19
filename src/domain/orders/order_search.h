/*
 * The lists of orders (contract 6), and the index that they read (src/search/README.md).
 *
 * Creating an order does not write the index: imgward-worker adds orders in batches, some seconds after their
 * commit.  Lists read the younger orders from the tables orders and files.  So the work grows with the number
 * of segments, not with the number of orders that match.
 */
#ifndef DOMAIN_ORDERS_ORDER_SEARCH_H
#define DOMAIN_ORDERS_ORDER_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/orders.h"
#include "domain/domain.h"

/* A page, newest first; the array is in the arena. */
struct order_page {
    struct order *orders;
    size_t count;
    int64_t total; /* of the filter */
};

/*
 * At most limit orders (100 at most) after the first offset ones.  VALIDATION_FAILED if there are too many
 * words.
 */
enum iw_error order_search_page(struct domain *domain, const struct order_filter *filter, int64_t limit,
                                int64_t offset, struct order_page *page) IW_MUST_USE;

/* All orders of a filter, newest first (orders_stream).  VALIDATION_FAILED if there are too many words. */
enum iw_error order_search_stream(struct domain *domain, const struct order_filter *filter,
                                  bool (*take)(void *user, const struct order *order),
                                  void *user) IW_MUST_USE;

/*
 * One step of building the index: builds a segment that is due. If no segment is due, looks for accounts
 * with new orders after *after_id and builds a segment for one of these accounts. Advances *after_id; 0
 * after the last account. *is_changed is true if a segment was built.
 */
enum iw_error order_search_index(struct domain *domain, int64_t *after_id, bool *is_changed) IW_MUST_USE;

#endif
