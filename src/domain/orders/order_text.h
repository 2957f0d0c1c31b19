/* The registration of a new order's watermark texts, inside the transaction that creates the order. */
#ifndef DOMAIN_ORDERS_ORDER_TEXT_H
#define DOMAIN_ORDERS_ORDER_TEXT_H

#include "domain/orders/order_create.h"

/*
 * Sets the text ids of the files.  Each different text is found or inserted once, in the order of the
 * digests: so concurrent orders do not wait for each other in a circle.  *new_count gets the number of
 * inserted texts.
 */
enum iw_error order_text_resolve(const struct domain *domain, int64_t account_id,
                                 const struct order_request *requested, struct order_row_file *files,
                                 int64_t *new_count) IW_MUST_USE;

#endif
