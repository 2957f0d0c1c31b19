/*
 * API keys: their format and their stored form.
 *
 * A key is "iw_live_" and 43 base62 characters, which hold 256 random bits.  The
 * database has its SHA-256 and a prefix by which its owner recognises it.  The
 * key is shown once, at its creation.  Must not know the database or HTTP.
 */
#ifndef DOMAIN_ACCOUNTS_KEY_H
#define DOMAIN_ACCOUNTS_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

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

/* True when a text has the format of a key; the key may not exist. */
bool key_is_well_formed(const char *text, size_t length);

/*
 * The fault of a text that is not a key; NULL when it is well formed.  A clause
 * without a full stop: "the key has 49 characters".  Never quotes the text.
 */
const char *key_form_fault(struct arena *arena, const char *text);

/* SHA-256 of a well-formed key, by which the database finds it. */
void key_digest(const char *key, uint8_t digest[32]);

/* The prefix that may be shown and stored in clear text. */
void key_prefix(const char *key, char prefix[key_prefix_size]);

#endif
