/* Pieces of JSON that several endpoints answer, in one shape each. */
#ifndef API_VIEWS_H
#define API_VIEWS_H

#include "base/render.h"
#include "domain/order.h"

/*
 * uploadUrl, fileKey, uploadUrlExpiresAt of a file: fresh while its order is
 * pending, a null URL once it has started.
 */
void view_upload(struct render *render, const struct domain *domain, const struct order *order,
                 const struct order_file *file);

/* The members that a list and a detail have in common; scratch holds texts until the caller is done. */
void view_order(struct render *render, const struct domain *domain, struct arena *scratch,
                const struct order *order);

/* "fileId" as the order's own creation told it: an integer of an anti-AI order, a string of the others
 * (contract 3). */
void view_file_id(struct render *render, const struct order *order, int64_t id);

/* {"code", "message"} under the key; null when there is no code. */
void view_reason(struct render *render, const char *key, const char *code, const char *message);

#endif
