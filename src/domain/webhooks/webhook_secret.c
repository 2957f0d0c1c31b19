#include "domain/webhooks/webhook_secret.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/crypto.h"
#include "service/secret/secret_box.h"

_Static_assert(webhook_secret_sealed_bytes == webhook_secret_bytes + crypto_seal_bytes, "size of a seal");

enum { about_size = 64 };

/* The associated data of the seal: a secret in another account's row does not open. */
static void about_print(int64_t account_id, char about[about_size])
{
    snprintf(about, about_size, "imgward-webhook-1:%" PRId64, account_id);
}

void webhook_secret_make(struct webhook_secret *secret)
{
    crypto_random(secret->bytes, sizeof secret->bytes);
}

const char *webhook_secret_text(struct arena *arena, const struct webhook_secret *secret)
{
    return arena_printf(arena, "whsec_%s", crypto_base64(arena, secret->bytes, sizeof secret->bytes));
}

void webhook_secret_seal(const struct webhook_secret *secret, const struct secret_box *secret_box,
                         int64_t account_id, uint8_t sealed[webhook_secret_sealed_bytes])
{
    char about[about_size];
    about_print(account_id, about);
    crypto_seal(secret_box->key, about, secret->bytes, sizeof secret->bytes, sealed);
}

bool webhook_secret_open(struct webhook_secret *secret, const struct secret_box *secret_box,
                         int64_t account_id, const void *sealed, size_t size)
{
    char about[about_size];
    about_print(account_id, about);
    return size == webhook_secret_sealed_bytes &&
           crypto_open(secret_box->key, about, sealed, size, secret->bytes);
}

const char *webhook_secret_sign(struct arena *arena, const void *key, size_t key_size, const char *id,
                                int64_t timestamp_s, const struct text *body)
{
    struct text signed_text;
    uint8_t digest[sha256_bytes];
    text_init(&signed_text, arena);
    text_printf(&signed_text, "%s.%" PRId64 ".", id, timestamp_s);
    text_add(&signed_text, body->data, body->length);
    struct crypto_mac *mac = crypto_mac_new(key, key_size);
    crypto_mac_sign(mac, signed_text.data, signed_text.length, digest);
    crypto_mac_free(mac);
    return arena_printf(arena, "v1,%s", crypto_base64(arena, digest, sizeof digest));
}
