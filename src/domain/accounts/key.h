/*
 * API keys: their format, their stored form, and the account of a request.
 *
 * A key consists of "iw_live_" and 43 base62 characters with 256 random bits. The database has the SHA-256 of
 * the key and a prefix by which the owner recognises it. The key is shown only once, at its creation.
 */
#ifndef DOMAIN_ACCOUNTS_KEY_H
#define DOMAIN_ACCOUNTS_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "domain/domain.h"
#include "model/account.h"

enum {
    key_length = 51,        /* "iw_live_" and 43 characters */
    key_size = 52,          /* with the closing zero */
    key_prefix_length = 16, /* stored and shown: "iw_live_" and 8 characters, 48 bits */
    key_prefix_size = 17
};

/* Writes a new key from the system's random source. */
void key_make(char key[key_size]);

/* Writes the key of 32 bytes: their big-endian integer in base 62, most significant digit first. */
void key_from_bytes(const uint8_t bytes[32], char key[key_size]);

/* True if a text has the format of a key; the key may not exist. */
bool key_is_well_formed(const char *text, size_t length);

/*
 * Returns the fault of a text that is not a key, as a clause without a full stop ("the key has 49
 * characters"); NULL if the text is well formed. Never quotes the text.
 */
const char *key_form_fault(struct arena *arena, const char *text);

/* SHA-256 of a well-formed key, by which the database finds it. */
void key_digest(const char *key, uint8_t digest[32]);

/* The prefix that may be shown and stored in clear text. */
void key_prefix(const char *key, char prefix[key_prefix_size]);

/* ---- authentication ---- */

/*
 * Finds an account by the SHA-256 of a key, and records the key's use at most
 * once a minute.  AUTH_TOKEN_INVALID for an unknown or revoked key.  The caller
 * checks whether the key has expired and whether the account is suspended.
 */
enum iw_error key_authenticate(struct domain *domain, const uint8_t digest[32],
                               struct account *account) IW_MUST_USE;

/* AUTH_TOKEN_INVALID for a key that was revoked at revoked_ms, or that is unknown (0). */
enum iw_error key_refused(struct context *context, int64_t revoked_ms) IW_MUST_USE;

#endif
