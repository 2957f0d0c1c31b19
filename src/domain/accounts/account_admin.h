/*
 * Accounts, as their owners and the operator's users see and change them in the console.  imgwardctl account
 * does the same with the functions of src/db.
 */
#ifndef DOMAIN_ACCOUNTS_ACCOUNT_ADMIN_H
#define DOMAIN_ACCOUNTS_ACCOUNT_ADMIN_H

#include "db/accounts.h"
#include "db/audit.h"
#include "db/users.h"
#include "domain/people/session.h"

/* RESOURCE_NOT_FOUND. */
enum iw_error account_admin_find(struct domain *domain, int64_t id, struct account_row *account) IW_MUST_USE;

/* The account of a row, for its limits and uses. */
struct account account_admin_account(const struct account_row *row);

struct account_admin_rows {
    struct account_row *items;
    size_t count;
    int64_t total;
};
enum iw_error account_admin_list(struct domain *domain, const struct accounts_page *page,
                                 struct account_admin_rows *rows) IW_MUST_USE;

/* VALIDATION_FAILED: the plan does not exist, or the name is in use. */
enum iw_error account_admin_create(struct domain *domain, const char *name, const char *plan,
                                   const struct audit_actor *actor, struct account_row *account) IW_MUST_USE;

enum { account_admin_keep = -2 }; /* a number that stays as it is */

/* NULL and account_admin_keep: the field stays. */
struct account_admin_change {
    const char *name;
    const char *plan;
    int64_t requests_per_minute; /* 0: the plan's */
    int status;                  /* enum account_status */
    struct quota_numbers quotas; /* quota_of_plan: the plan's */
};

/* All changes in one transaction.  RESOURCE_NOT_FOUND, VALIDATION_FAILED.  account gets the new row. */
enum iw_error account_admin_change(struct domain *domain, int64_t id,
                                   const struct account_admin_change *change, const struct audit_actor *actor,
                                   struct account_row *account) IW_MUST_USE;

enum iw_error account_admin_audit(struct domain *domain, const struct audit_page *page,
                                  struct audit_rows *rows) IW_MUST_USE;

/* Users of all accounts. */
struct account_admin_users {
    struct user *items;
    size_t count;
    int64_t total;
};
enum iw_error account_admin_users(struct domain *domain, const struct users_page *page,
                                  struct account_admin_users *users) IW_MUST_USE;
enum iw_error account_admin_user(struct domain *domain, int64_t id, struct user *user) IW_MUST_USE;

/* Makes the link that sets a user's password, and mails it.  *link is NULL when the mail has it. */
enum iw_error account_admin_reset(struct domain *domain, const struct user *user,
                                  const struct audit_actor *actor, const char **link) IW_MUST_USE;

#endif
