/* The account of a request, found through one of its API keys. */
#ifndef DOMAIN_ACCOUNTS_ACCOUNT_H
#define DOMAIN_ACCOUNTS_ACCOUNT_H

#include <stdint.h>

#include "domain/domain.h"
#include "model/account.h"

/*
 * Finds an account by the SHA-256 of a key, and records the key's use at most
 * once a minute.  AUTH_TOKEN_INVALID for an unknown or revoked key.  The caller
 * checks whether the key has expired and whether the account is suspended.
 */
enum iw_error account_authenticate(struct domain *domain, const uint8_t digest[32],
                                   struct account *account) IW_MUST_USE;

/* AUTH_TOKEN_INVALID for a key that was revoked at revoked_ms, or that is unknown (0). */
enum iw_error account_key_refuse(struct context *context, int64_t revoked_ms) IW_MUST_USE;

#endif
