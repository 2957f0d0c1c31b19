/*
 * The second factor: time-based one-time codes (RFC 6238: SHA-1, 6 digits, steps of 30 s) by liboath, which
 * only these two files use.
 */
#ifndef SERVICE_SECRET_TOTP_H
#define SERVICE_SECRET_TOTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum { totp_secret_bytes = 20 }; /* RFC 4226, 4: 160 bits are recommended */

/* Checks a code at a time; a clock may differ by one step. Sets *step to the step of the code. */
bool totp_verify(const uint8_t secret[totp_secret_bytes], const char *code, int64_t now_ms, int64_t *step)
    __attribute__((warn_unused_result));

/* Returns the secret in base 32 without padding, as authenticator programs accept it, in the arena. */
const char *totp_secret_text(struct arena *arena, const uint8_t secret[totp_secret_bytes]);

#endif
