/*
 * The secret that an account's webhook signs with.
 *
 * "whsec_" and the base64 of 32 random bytes, shown once; encrypted in the
 * database, bound to its account.  Signatures as Standard Webhooks 1.0 says
 * (https://github.com/standard-webhooks/standard-webhooks, symmetric "v1"):
 * HMAC-SHA256 over id, timestamp in seconds and body with dots in between,
 * keyed with the bytes that the base64 stands for.
 */
#ifndef DOMAIN_WEBHOOK_SECRET_H
#define DOMAIN_WEBHOOK_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/arena.h>

struct secret_box;

enum {
    webhook_secret_bytes = 32, /* of the ones we make; the standard wants 24 to 64 */
    webhook_secret_sealed_bytes = 60
};

struct webhook_secret {
    uint8_t bytes[webhook_secret_bytes];
};

void webhook_secret_make(struct webhook_secret *secret);

/* "whsec_...": for the client, once.  The arena's. */
const char *webhook_secret_text(struct arena *arena, const struct webhook_secret *secret);

void webhook_secret_seal(const struct webhook_secret *secret, const struct secret_box *secret_box,
                         int64_t account_id, uint8_t sealed[webhook_secret_sealed_bytes]);

/* False when the bytes were not sealed with this key for this account. */
bool webhook_secret_open(struct webhook_secret *secret, const struct secret_box *secret_box,
                         int64_t account_id, const void *sealed, size_t size)
    __attribute__((warn_unused_result));

/* "v1,<base64>" of a message, keyed with any number of bytes; the arena's. */
const char *webhook_secret_sign(struct arena *arena, const void *key, size_t key_size, const char *id,
                                int64_t timestamp_s, const char *body, size_t body_size);

#endif
