/*
 * The signing secret of a webhook.
 *
 * The client sees "whsec_" and the base64 of 32 random bytes, once.  The database
 * has it encrypted and bound to its account.  Signatures follow Standard Webhooks
 * 1.0 (https://github.com/standard-webhooks/standard-webhooks, symmetric "v1"):
 * HMAC-SHA256, keyed with the decoded bytes, over id, timestamp in seconds and
 * body, joined by dots.
 */
#ifndef DOMAIN_WEBHOOKS_WEBHOOK_SECRET_H
#define DOMAIN_WEBHOOKS_WEBHOOK_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct secret_box;

enum {
    webhook_secret_bytes = 32, /* of new secrets; the standard allows 24 to 64 */
    webhook_secret_sealed_bytes = 60
};

struct webhook_secret {
    uint8_t bytes[webhook_secret_bytes];
};

void webhook_secret_make(struct webhook_secret *secret);

/* "whsec_...", for the client.  Allocated in the arena. */
const char *webhook_secret_text(struct arena *arena, const struct webhook_secret *secret);

void webhook_secret_seal(const struct webhook_secret *secret, const struct secret_box *secret_box,
                         int64_t account_id, uint8_t sealed[webhook_secret_sealed_bytes]);

/* False if the bytes were not sealed with this key for this account. */
bool webhook_secret_open(struct webhook_secret *secret, const struct secret_box *secret_box,
                         int64_t account_id, const void *sealed, size_t size)
    __attribute__((warn_unused_result));

/* The signature "v1,<base64>" of a message.  The key may have any length.  Allocated in the arena. */
const char *webhook_secret_sign(struct arena *arena, const void *key, size_t key_size, const char *id,
                                int64_t timestamp_s, const struct text *body);

#endif
