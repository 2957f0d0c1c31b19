/*
 * The common parts of all creations: reading the request body, creating the
 * order and rendering the new order.
 */
#ifndef API_CREATION_H
#define API_CREATION_H

#include "api/field.h"
#include "domain/orders/order_create.h"
#include "http/request.h"

/* Reads idempotencyKey; adds a detail if it is invalid. */
void creation_key_read(const struct field_scope *body, struct order_request *requested);

/* Reads idempotencyKey, orderName and metadata, and computes the digest of the whole body. */
void creation_common_read(const struct field_scope *body, struct order_request *requested);

/* Reads resultSuffix, which orders with results may have. */
void creation_suffix_read(const struct field_scope *body, struct order_request *requested);

/* The array that decides the size of a creation with several files. */
extern const struct request_array creation_files;

/* The field of a file's source URL. */
struct creation_source {
    const char *name;
    bool is_required;
};

/*
 * Reads files[]: fileName and source URL of each.  item, unless NULL, reads the
 * other fields of a file.
 */
void creation_files_read(struct request *request, const struct field_scope *body,
                         const struct creation_source *source,
                         void (*item)(const struct field_scope *scope, struct order_request_file *file),
                         struct order_request *requested);

/* Validates the request, creates the order (order_create admits it) and sets status and headers. */
enum iw_error creation_make(struct request *request, struct order_request *requested,
                            struct order_view *view) IW_MUST_USE;

/* Sets the headers UsageLimit-Name, -Limit, -Used and -Reset: which limit refused the request. */
void creation_usage_headers(struct request *request, const struct quota_state *refusal);

/* Begins the response: orderName, orderId and status.  The object under "data" stays open. */
struct render *creation_begin(struct request *request, const struct order_view *view);

/* Renders fileName, and originalFileUrl or the fields of the upload. */
void creation_file_render(struct render *render, const struct domain *domain, const struct order *order,
                          const struct order_file *file);

/* Renders fileFormat, by the extension, and fileType. */
void creation_format_render(struct render *render, const char *file_name);

#endif
