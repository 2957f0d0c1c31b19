/*
 * Creation of orders (contract 3).
 *
 * The client's values arrive as structs that src/api has checked.  Must not know
 * HTTP or JSON.
 */
#ifndef DOMAIN_ORDERS_ORDER_CREATE_H
#define DOMAIN_ORDERS_ORDER_CREATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "domain/domain.h"
#include "domain/orders/order_query.h"
#include "model/order.h"

struct admission;

enum {
    order_files_max = 100,
    order_texts_max = 10, /* per file */
    order_text_code_points_max = 1000,
    order_name_code_points_max = 64,
    order_key_code_points_max = 255
};

/* A watermark text, stored byte for byte. */
struct order_request_text {
    const char *text;
    size_t length;
};

struct order_request_file {
    const char *name;
    const char *source_url; /* NULL: the client uploads the file */
    const char *target_url; /* zero copy only, as the next three */
    const char *target_key;
    int64_t target_expires_ms;
    const char *target_headers;             /* JSON text for store and worker; NULL: none */
    const struct order_request_text *texts; /* embedding only */
    unsigned text_count;
};

/* A client's request for an order.  Borrows all texts until the order is created. */
struct order_request {
    const struct account *account; /* its quotas bound the creation */
    enum order_type type;
    const char *name; /* NULL: made from type and date */
    const char *key;  /* idempotency key */
    size_t key_length;
    uint8_t body_digest[32];
    enum order_strength strength;
    bool is_zero_copy;
    struct order_request_file *files;
    unsigned file_count;
    const char *original_name; /* extraction: the unmarked original; NULL: none */
};

/* Adds a detail for each output target whose URL has expired. */
void order_targets_check(struct context *context, const struct order_request *requested);

/*
 * Admits the request and creates the order, or finds the one that the same key
 * created before (is_replay).  While a concurrent creation holds the key's lock,
 * waits for it, at most as long as a lock lives.  RATE_LIMIT_EXCEEDED;
 * IDEMPOTENCY_KEY_REUSED when the body differs; VALIDATION_FAILED when a target's
 * URL has expired and there is no replay.  VALIDATION_FAILED also when the request
 * exceeds a limit of an account without use; USAGE_LIMIT_EXCEEDED, with
 * view->refusal, when a quota of the account is used up.  An error releases the lock.
 */
enum iw_error order_create(struct domain *domain, struct admission *admission,
                           const struct order_request *requested, struct order_view *view) IW_MUST_USE;

#endif
