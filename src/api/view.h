/* JSON members that several endpoints render. */
#ifndef API_VIEW_H
#define API_VIEW_H

#include "base/render.h"
#include "domain/orders/order_query.h"

/*
 * uploadUrl, fileKey and uploadUrlExpiresAt of a file.  The URL is fresh while
 * the order is pending, and null once it has started.
 */
void view_upload(struct render *render, const struct domain *domain, const struct order *order,
                 const struct order_file *file);

/* The common members of list and detail.  scratch holds texts until the body is sent. */
void view_order(struct render *render, const struct domain *domain, struct arena *scratch,
                const struct order *order);

/*
 * fileId, in the type that the creation returned: an integer for anti-AI orders, else a string (contract
 * 3).
 */
void view_file_id(struct render *render, const struct order *order, int64_t id);

/* {"code", "message"} under the key; null without a code. */
void view_reason(struct render *render, const char *key, const char *code, const char *message);

/* A number of bytes under the key; null for 0. */
void view_size(struct render *render, const char *key, int64_t bytes);

/* "protection" of a file: {"share", "word"}; null for -1. */
void view_protection(struct render *render, int percent);

#endif
