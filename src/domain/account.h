/* The account of a request, found through one of its API keys. */
#ifndef DOMAIN_ACCOUNT_H
#define DOMAIN_ACCOUNT_H

#include <stdint.h>

#include "domain/domain.h"
#include "model/account.h"

/*
 * The account behind a key by the key's SHA-256, and notes the key's use, once a
 * minute at most.  AUTH_TOKEN_INVALID for an unknown key, and for a revoked one with the time; whether it
 * has expired or its account is suspended, the caller says himself.
 */
enum iw_error account_authenticate(struct domain *domain, const uint8_t digest[32],
                                   struct account *account) IW_MUST_USE;

#endif
