/* Queries for orders and the errors of their files (contract 6). */
#ifndef DOMAIN_ORDERS_ORDER_QUERY_H
#define DOMAIN_ORDERS_ORDER_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/orders.h"
#include "db/texts.h"
#include "domain/accounts/quota.h"
#include "domain/domain.h"
#include "model/order.h"

/* An order with its files, as a client sees it. */
struct order_view {
    struct order order;
    struct order_file *files;   /* order.file_count files, then the original; order.file_rows in all */
    bool is_replay;             /* order_create found it */
    struct quota_state refusal; /* of USAGE_LIMIT_EXCEEDED; limit 0 if the quota has room again */
};

/* ORDER_NOT_FOUND, also for an order of another account. */
enum iw_error order_find(struct domain *domain, int64_t account_id, int64_t id,
                         struct order_view *view) IW_MUST_USE;

/* Reads only the type of an order.  ORDER_NOT_FOUND as above. */
enum iw_error order_type_find(struct domain *domain, int64_t account_id, int64_t id,
                              enum order_type *type) IW_MUST_USE;

/* The texts of an embedding order; none for other types. */
enum iw_error order_texts(struct domain *domain, const struct order *order, struct order_text **texts,
                          size_t *count) IW_MUST_USE;

/* The copies that an extraction found, the newest order first. */
enum iw_error order_findings(struct domain *domain, const struct order *order, struct text_finding **findings,
                             size_t *count) IW_MUST_USE;

/* True if a file still waits for an upload. */
bool order_file_is_missing(const struct order_file *file);

/* The name of the file at index; a name that occurs twice gets " (position N, fileId ID)". */
const char *order_file_label(struct arena *arena, const struct order_view *view, unsigned index);

/* The error of a file. */
struct order_failure {
    const char *code; /* "IMAGE_CORRUPT" */
    const char *sentence;
};

/* The error of a file, or of the whole order; false if the file did not fail. */
bool order_file_failure(const struct order *order, const struct order_file *file,
                        struct order_failure *failure);

/*
 * The field errors of responses and webhook events: "label: CODE: sentence" of
 * each failed file, one per line.  NULL if none failed.  Allocated in the arena.
 */
const char *order_errors(struct arena *arena, const struct order_view *view);

#endif
