/*
 * API keys, as their account's users manage them in the console.  key.h has their format.
 *
 * The key of another account is RESOURCE_NOT_FOUND, like one that does not exist.
 */
#ifndef DOMAIN_ACCOUNTS_ACCOUNT_KEY_H
#define DOMAIN_ACCOUNTS_ACCOUNT_KEY_H

#include "domain/accounts/key.h"
#include "domain/people/session.h"

enum { account_key_valid_max = 100, account_key_name_code_points_max = 100 };

struct account_key_rows {
    struct account_key *items;
    size_t count;
    int64_t total;
};
enum iw_error account_key_list(struct domain *domain, int64_t account_id, int64_t limit, int64_t offset,
                               struct account_key_rows *rows) IW_MUST_USE;

/* Makes a key; value gets it, once.  expires_ms 0: never.  VALIDATION_FAILED: the account has 100 valid keys.
 * USAGE_LIMIT_EXCEEDED: it made 100 in a day.
 */
struct account_key_wish {
    const char *name;
    int64_t expires_ms;
};
enum iw_error account_key_create(struct domain *domain, const struct session *session,
                                 const struct account_key_wish *wish, const struct audit_place *place,
                                 char value[key_size], struct account_key *key) IW_MUST_USE;

/* A second revocation keeps the first time. */
enum iw_error account_key_revoke(struct domain *domain, const struct session *session, int64_t id,
                                 const struct audit_place *place, struct account_key *key) IW_MUST_USE;

#endif
