/* Who asks: an account as authentication finds it through one of its keys. */
#ifndef DOMAIN_ACCOUNT_H
#define DOMAIN_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "domain/domain.h"

struct account {
    int64_t id;
    int64_t key_id;
    unsigned requests_per_minute; /* of the plan, or the account's own */
    bool is_suspended;
    int64_t key_expires_ms;   /* 0: never */
    int64_t key_revoked_ms;   /* 0: never; a revoked key has no caller */
    int64_t key_last_used_ms; /* 0: never; as it was when the key was looked up */
};

/*
 * The account behind a key by the key's SHA-256, and notes the key's use, once a
 * minute at most.  AUTH_TOKEN_INVALID for an unknown key, and for a revoked one with the time; whether it
 * has expired or its account is suspended, the caller says himself.
 */
enum iw_error account_authenticate(struct domain *domain, const uint8_t digest[32],
                                   struct account *account) IW_MUST_USE;

#endif
