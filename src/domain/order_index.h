/*
 * Builds and checks the segments of orders that lists read (store/segments.h).
 *
 * Creating an order does not write them: imgward-worker adds orders in batches, some seconds after their
 * commit.  Lists read younger orders from the tables orders and files.
 */
#ifndef DOMAIN_ORDER_INDEX_H
#define DOMAIN_ORDER_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "domain/domain.h"

/*
 * One step.  Compares a segment that is due with its orders.  When none is due, looks for accounts with new
 * orders after *after_id, and builds a segment for one of them.  Advances *after_id; 0 after the last
 * account. is_changed: a segment was built or compared.
 */
enum iw_error order_index_step(struct domain *domain, int64_t *after_id, bool *is_changed) IW_MUST_USE;

#endif
