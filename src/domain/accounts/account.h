/*
 * Accounts and their API keys, as users change them in the console.  imgwardctl does the same with the
 * functions of src/db.  The key of another account is RESOURCE_NOT_FOUND.
 */
#ifndef DOMAIN_ACCOUNTS_ACCOUNT_H
#define DOMAIN_ACCOUNTS_ACCOUNT_H

#include <stdint.h>

#include "db/accounts.h"
#include "db/audit.h"
#include "db/users.h"
#include "domain/accounts/key.h"
#include "domain/domain.h"
#include "domain/people/session.h"

/* RESOURCE_NOT_FOUND. */
enum iw_error account_find(struct domain *domain, int64_t id, struct account_row *account) IW_MUST_USE;

/* The account of a row, for limits and uses. */
struct account account_of_row(const struct account_row *row);

struct account_rows {
    struct account_row *items;
    size_t count;
    int64_t total;
};
enum iw_error account_list(struct domain *domain, const struct accounts_page *page,
                           struct account_rows *rows) IW_MUST_USE;

/* VALIDATION_FAILED if the plan does not exist, or the name is in use. */
enum iw_error account_create(struct domain *domain, const char *name, const char *plan,
                             const struct audit_actor *actor, struct account_row *account) IW_MUST_USE;

enum { account_keep = -2 }; /* a number that stays as it is */

/* NULL and account_keep leave the field as it is. */
struct account_change {
    const char *name;
    const char *plan;
    int64_t requests_per_minute; /* 0 means the plan's */
    int status;                  /* enum account_status */
    struct quota_numbers quotas; /* quota_of_plan: the plan's */
};

/* Makes all changes in one transaction. RESOURCE_NOT_FOUND, VALIDATION_FAILED. account gets the new row. */
enum iw_error account_change(struct domain *domain, int64_t id, const struct account_change *change,
                             const struct audit_actor *actor, struct account_row *account) IW_MUST_USE;

enum iw_error account_audit(struct domain *domain, const struct audit_page *page,
                            struct audit_rows *rows) IW_MUST_USE;

/* Users of all accounts. */
struct account_users {
    struct user *items;
    size_t count;
    int64_t total;
};
enum iw_error account_users(struct domain *domain, const struct users_page *page,
                            struct account_users *users) IW_MUST_USE;

/* Creates the link that sets a user's password, and mails it. *link is NULL if the link was mailed. */
enum iw_error account_reset(struct domain *domain, const struct user *user, const struct audit_actor *actor,
                            const char **link) IW_MUST_USE;

/* ---- API keys ---- */

enum { account_key_valid_max = 100, account_key_name_code_points_max = 100 };

struct account_key_rows {
    struct account_key *items;
    size_t count;
    int64_t total;
};
enum iw_error account_key_list(struct domain *domain, int64_t account_id, int64_t limit, int64_t offset,
                               struct account_key_rows *rows) IW_MUST_USE;

struct account_key_wish {
    const char *name;
    unsigned scopes;    /* bits of enum key_scope; 0 means everything */
    int64_t expires_ms; /* 0 means never */
};

/*
 * Creates a key and returns its value, once. VALIDATION_FAILED if the account has 100 valid keys,
 * USAGE_LIMIT_EXCEEDED if it created 100 keys in a day.
 */
enum iw_error account_key_create(struct domain *domain, const struct session *session,
                                 const struct account_key_wish *wish, const struct audit_client *client,
                                 char value[key_size], struct account_key *key) IW_MUST_USE;

/* A second revocation keeps the time of the first. */
enum iw_error account_key_revoke(struct domain *domain, const struct session *session, int64_t id,
                                 const struct audit_client *client, struct account_key *key) IW_MUST_USE;

#endif
