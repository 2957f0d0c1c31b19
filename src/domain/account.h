/* An account, as authentication finds it by one of its keys. */
#ifndef DOMAIN_ACCOUNT_H
#define DOMAIN_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "domain/domain.h"

struct account {
    int64_t id;
    int64_t key_id;
    unsigned requests_per_minute; /* of the plan, or the account's override */
    bool is_suspended;
    int64_t key_expires_ms;   /* 0: never */
    int64_t key_revoked_ms;   /* 0: never; account_authenticate refuses a revoked key */
    int64_t key_last_used_ms; /* 0: never; the value before this use */
};

/*
 * Finds an account by the SHA-256 of a key, and records the key's use at most
 * once a minute.  AUTH_TOKEN_INVALID for an unknown or revoked key.  The caller
 * checks whether the key has expired and whether the account is suspended.
 */
enum iw_error account_authenticate(struct domain *domain, const uint8_t digest[32],
                                   struct account *account) IW_MUST_USE;

#endif
