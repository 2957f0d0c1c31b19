/*
 * What all creations have in common: how a wanted is read from a body, how it
 * becomes an order, and how the new order is shown.
 */
#ifndef API_CREATION_H
#define API_CREATION_H

#include "api/field.h"
#include "domain/order.h"
#include "http/request.h"

/* idempotencyKey; what is wrong is a detail. */
void creation_key_read(const struct field_place *body, struct order_request *wanted);

/* idempotencyKey, orderName, and the digest of the whole body. */
void creation_common_read(const struct field_place *body, struct order_request *wanted);

/* Where a file's URL stands, if it may have one. */
struct creation_source {
    const char *name;
    bool is_required;
};

/*
 * files[]: fileName and source of each; item, if it is not NULL, reads what else
 * the file of a type has.
 */
void creation_files_read(struct request *request, const struct field_place *body,
                         const struct creation_source *source,
                         void (*item)(const struct field_place *place, struct order_request_file *file),
                         struct order_request *wanted);

/* Validates the request, creates the order (order_create admits it) and sets status and headers. */
enum iw_error creation_make(struct request *request, struct order_request *wanted,
                            struct order_view *view) IW_MUST_USE;

/* "orderName", "orderId", "status": how every answer to a creation begins; data is left open. */
struct render *creation_begin(struct request *request, const struct order_view *view);

/* fileName and either its URL (under that name) or the fields of its upload. */
void creation_file_render(struct render *render, const struct domain *domain, const struct order *order,
                          const struct order_file *file);

/* "fileFormat" and "fileType" of a file name. */
void creation_format_render(struct render *render, const char *file_name);

#endif
