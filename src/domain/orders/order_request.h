/*
 * A client's request for an order, and the rows that it becomes (contract 3).
 *
 * The client's values arrive as structs that src/api has checked.  Must not know HTTP or JSON.
 */
#ifndef DOMAIN_ORDERS_ORDER_REQUEST_H
#define DOMAIN_ORDERS_ORDER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "domain/domain.h"
#include "domain/orders/order_query.h"
#include "model/order.h"
#include "model/quota.h"

enum {
    order_files_max = 100,
    order_texts_max = 10, /* per file */
    order_text_code_points_max = 1000,
    order_name_code_points_max = 64,
    order_suffix_bytes_max = 20,
    order_key_code_points_max = 255,
    /* Keys and values as at Stripe (https://docs.stripe.com/api/metadata); 20 pairs of four-byte characters
       take 43 kB, which a BLOB holds. */
    order_metadata_pairs_max = 20,
    order_metadata_key_code_points_max = 40,
    order_metadata_value_code_points_max = 500
};

/* A watermark text, stored byte for byte. */
struct order_request_text {
    const char *text;
    size_t length;
};

struct order_request_file {
    const char *name;
    const char *source_url; /* NULL if the client uploads the file */
    const char *target_url; /* zero copy only, as the next three */
    const char *target_key;
    int64_t target_expires_ms;
    const char *target_headers;             /* JSON text for store and worker; NULL if there is none */
    const struct order_request_text *texts; /* embedding only */
    unsigned text_count;
};

/* A client's request for an order.  Borrows all texts until the order is created. */
struct order_request {
    const struct account *account; /* its quotas bound the creation */
    enum order_type type;
    const char *name;          /* NULL: made from type and date */
    const char *result_suffix; /* in the names of results; NULL if there is none */
    const char *key;           /* idempotency key */
    size_t key_length;
    uint8_t body_digest[32];
    const char *metadata; /* see struct order */
    enum order_strength strength;
    bool is_zero_copy;
    struct order_request_file *files;
    unsigned file_count;
    const char *original_name; /* extraction: the unmarked original; NULL if there is none */
};

/* What the order uses of the account's quotas. */
struct quota_amounts order_request_amounts(const struct order_request *requested);

/* True if the URL of an output target has expired. */
bool order_request_is_expired(const struct order_request *requested);

/* Adds a detail for each output target whose URL has expired. */
void order_request_targets_check(struct context *context, const struct order_request *requested);

/* The rows of the order with a new id, without the ids of watermark texts.  Borrows the texts of the request.
 */
void order_request_row(const struct domain *domain, const struct order_request *requested,
                       struct order_row *row);

/*
 * In the transaction that creates the order: sets the ids of the files' watermark texts.  Each different
 * text is found or inserted once, in the order of the digests. So concurrent orders do not wait for each
 * other in a circle.  *new_count gets the number of inserted texts.
 */
enum iw_error order_request_texts(const struct domain *domain, const struct order_request *requested,
                                  struct order_row *row, int64_t *new_count) IW_MUST_USE;

/* The view of an order that was just written, without a query. */
void order_request_view(struct arena *arena, const struct order_row *row, const int64_t *file_ids,
                        struct order_view *view);

#endif
