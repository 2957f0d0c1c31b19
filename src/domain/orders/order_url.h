/* Presigned URLs of an order's files.  All texts are the arena's. */
#ifndef DOMAIN_ORDERS_ORDER_URL_H
#define DOMAIN_ORDERS_ORDER_URL_H

#include <stdint.h>

#include "db/orders.h"
#include "domain/domain.h"
#include "model/order.h"
#include "model/result.h"

/* The upload URL of a file; *expires_ms gets its expiry. */
const char *order_upload_url(const struct domain *domain, struct arena *arena, int64_t order_id,
                             const struct order_file *file, int64_t *expires_ms);

/* The file key of an upload: fileKey of the contract. */
const char *order_upload_key(struct arena *arena, int64_t order_id, const struct order_file *file);

const char *order_result_url(const struct domain *domain, struct arena *arena, int64_t order_id,
                             const struct order_result *result);

/* name: that of the archive for its client. */
const char *order_archive_url(const struct domain *domain, struct arena *arena, const struct order *order,
                              const char *name);

/* NULL when the order has no thumbnail, or has expired. */
const char *order_thumbnail_url(const struct domain *domain, struct arena *arena, const struct order *order);

#endif
