/*
 * API keys: how they look and what of them is stored.
 *
 * A key is "iw_live_" and 43 base62 characters, which hold 256 random bits.  The
 * database keeps its SHA-256 and the first characters to recognise it by; the
 * key itself is shown once, when it is made.  Knows no database and no HTTP.
 */
#ifndef DOMAIN_KEY_H
#define DOMAIN_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/arena.h>

enum {
    key_length = 51,        /* "iw_live_" and 43 characters */
    key_size = 52,          /* with the closing zero */
    key_prefix_length = 16, /* what is kept to recognise a key: "iw_live_" and 8 characters, 48 bits */
    key_prefix_size = 17
};

/* Writes a new key from the system's random source. */
void key_make(char key[key_size]);

/* Writes the key that 32 given bytes make: the big-endian integer in base 62, most significant digit first.
 */
void key_from_bytes(const uint8_t bytes[32], char key[key_size]);

/* True when text of length bytes looks like a key; says nothing about whether it exists. */
bool key_is_well_formed(const char *text, size_t length);

/*
 * Why a text is not a key, as a clause without a full stop ("the key has 49
 * characters"); NULL when it is well formed.  Nothing of the text is in it.
 */
const char *key_form_fault(struct arena *arena, const char *text);

/* SHA-256 of a well-formed key: what the database knows it by. */
void key_digest(const char *key, uint8_t digest[32]);

/* The part that may be shown and stored in clear. */
void key_prefix(const char *key, char prefix[key_prefix_size]);

#endif
