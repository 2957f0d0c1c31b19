#include "domain/accounts/account.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/message.h"
#include "db/keys.h"
#include "db/quotas.h"
#include "db/transaction.h"
#include "domain/people/mail.h"
#include "domain/people/throttle.h"
#include "domain/people/token.h"
#include "domain/people/user.h"

enum iw_error account_find(struct domain *domain, int64_t id, struct account_row *account)
{
    bool is_found = false;
    enum iw_error error = accounts_get(&domain->db, id, account, &is_found);
    return error == IW_OK && !is_found
               ? context_fail(domain->context, IW_RESOURCE_NOT_FOUND, "No account has this id.")
               : error;
}

struct account account_of_row(const struct account_row *row)
{
    struct account account = {.id = row->id, .quotas = row->quotas};
    snprintf(account.plan, sizeof account.plan, "%s", row->plan);
    return account;
}

enum iw_error account_list(struct domain *domain, const struct accounts_page *page, struct account_rows *rows)
{
    return accounts_page(&domain->db, page, &rows->items, &rows->count, &rows->total);
}

/* Turns a name that is in use into a detail of the field. */
static enum iw_error name_taken(struct context *context, enum iw_error error)
{
    if (error != IW_TWIN_EXISTS)
        return error;
    context_clear(context);
    context_detail(context, "name", message_name_in_use);
    return context_validated(context);
}

enum iw_error account_create(struct domain *domain, const char *name, const char *plan,
                             const struct audit_actor *actor, struct account_row *account)
{
    enum iw_error error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        struct audit_actor of_account = *actor;
        error = accounts_create(&domain->db, name, plan, clock_now_ms(), &of_account.account_id);
        if (error == IW_OK)
            error = account_find(domain, of_account.account_id, account);
        if (error == IW_OK)
            error = audit_add(domain, &of_account, "accountCreated", "name", name, "plan", plan, NULL);
        else
            error = name_taken(domain->context, error);
    }
    return error;
}

/* A change of an account that the transaction has locked. */
struct admin_change {
    const struct account_change *wanted;
    const struct audit_actor *actor;
    const struct account_row *row; /* before the change */
};

static enum iw_error plan_change(struct domain *domain, const struct admin_change *change)
{
    const struct account_change *wanted = change->wanted;
    const struct account_row *row = change->row;
    int64_t own = row->requests_per_minute;
    if (wanted->plan == NULL && wanted->requests_per_minute == account_keep)
        return IW_OK;
    if (wanted->requests_per_minute != account_keep)
        own = wanted->requests_per_minute;
    const char *plan = wanted->plan != NULL ? wanted->plan : row->plan;
    enum iw_error error = accounts_plan_set(&domain->db, row->id, plan, own);
    return error == IW_OK ? audit_add(domain, change->actor, "planChanged", "plan", plan, "requestsPerMinute",
                                      arena_printf(domain->context->arena, "%lld", (long long)own), NULL)
                          : error;
}

static enum iw_error status_change(struct domain *domain, const struct admin_change *change)
{
    const struct account_row *row = change->row;
    if (change->wanted->status == account_keep || change->wanted->status == (int)row->status)
        return IW_OK;
    bool is_suspended = change->wanted->status == ACCOUNT_SUSPENDED;
    enum iw_error error =
        is_suspended
            ? accounts_suspend(&domain->db, row->id)
            : accounts_resume(&domain->db, row->id, clock_now_ms() + domain->config->orders_pending_s * 1000);
    return error == IW_OK
               ? audit_add(domain, change->actor, is_suspended ? "accountSuspended" : "accountResumed", NULL)
               : error;
}

static enum iw_error quotas_change(struct domain *domain, const struct admin_change *change)
{
    enum iw_error error = IW_OK;
    for (int i = 0; error == IW_OK && i < QUOTA_COUNT; i++) {
        int64_t limit = change->wanted->quotas.of[i];
        if (limit == account_keep || limit == change->row->quotas.of[i])
            continue;
        error = quotas_limit_set(&domain->db, change->row->id, (enum quota)i, limit);
        const char *text =
            limit == quota_of_plan ? "plan" : arena_printf(domain->context->arena, "%lld", (long long)limit);
        if (error == IW_OK)
            error = audit_add(domain, change->actor, "quotaChanged", "name", quota_name((enum quota)i),
                              "limit", text, NULL);
    }
    return error;
}

static enum iw_error change_write(struct domain *domain, int64_t id, const struct admin_change *change,
                                  struct account_row *account)
{
    const char *name = change->wanted->name;
    enum iw_error error = account_find(domain, id, account);
    if (error == IW_OK && name != NULL)
        error = name_taken(domain->context, accounts_rename(&domain->db, id, name));
    if (error == IW_OK && name != NULL)
        error = audit_add(domain, change->actor, "accountRenamed", "name", name, NULL);
    if (error == IW_OK)
        error = plan_change(domain, change);
    if (error == IW_OK)
        error = status_change(domain, change);
    if (error == IW_OK)
        error = quotas_change(domain, change);
    return error == IW_OK ? account_find(domain, id, account) : error;
}

enum iw_error account_change(struct domain *domain, int64_t id, const struct account_change *wanted,
                             const struct audit_actor *actor, struct account_row *account)
{
    enum iw_error error;
    struct audit_actor of_account = *actor;
    of_account.account_id = id;
    const struct admin_change change = {wanted, &of_account, account};
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = change_write(domain, id, &change, account);
    }
    return error;
}

enum iw_error account_audit(struct domain *domain, const struct audit_page *page, struct audit_rows *rows)
{
    return audit_page(&domain->db, page, rows);
}

enum iw_error account_users(struct domain *domain, const struct users_page *page, struct account_users *users)
{
    return users_page(&domain->db, page, &users->items, &users->count, &users->total);
}

enum iw_error account_reset(struct domain *domain, const struct user *user, const struct audit_actor *actor,
                            const char **link)
{
    const char *token;
    struct audit_actor of_account = *actor;
    of_account.account_id = user->account.id;
    enum iw_error error = user_reset_token(domain, user, &token);
    if (error != IW_OK)
        return error;
    *link = token_link(domain->context->arena, domain->config, "reset", token);
    const struct mail mail = {.kind = MAIL_RESET,
                              .language = user->language,
                              .recipient = user->email,
                              .values = {*link},
                              .is_known = true};
    error = mail_queue(domain, &mail);
    if (mail_is_on(domain->config))
        *link = NULL;
    return error == IW_OK ? audit_add(domain, &of_account, "resetLinkMade", "email", user->email, NULL)
                          : error;
}

/* ---- API keys ---- */

enum { day_s = 24 * 60 * 60 };

enum iw_error account_key_list(struct domain *domain, int64_t account_id, int64_t limit, int64_t offset,
                               struct account_key_rows *rows)
{
    int64_t valid;
    const struct keys_page page = {limit, offset};
    enum iw_error error = keys_count(&domain->db, account_id, clock_now_ms(), &rows->total, &valid);
    return error == IW_OK ? keys_page(&domain->db, account_id, &page, &rows->items, &rows->count) : error;
}

static enum iw_error key_find(struct domain *domain, int64_t account_id, int64_t id, struct account_key *key)
{
    bool is_found = false;
    enum iw_error error = keys_get(&domain->db, account_id, id, key, &is_found);
    return error == IW_OK && !is_found
               ? context_fail(domain->context, IW_RESOURCE_NOT_FOUND, "Your account has no key with this id.")
               : error;
}

/* Revoked keys stay in the table, so the keys of a day are limited, too. The row of the count is locked. */
static enum iw_error create_check(struct domain *domain, int64_t account_id)
{
    int64_t total, valid = 0;
    unsigned wait_s = 0;
    const char *name = arena_printf(domain->context->arena, "keys:%lld", (long long)account_id);
    enum iw_error error = throttle_spend(domain, name, account_key_valid_max, day_s, &wait_s);
    if (error == IW_OK && wait_s == 0)
        error = keys_count(&domain->db, account_id, clock_now_ms(), &total, &valid);
    if (error == IW_OK && valid >= account_key_valid_max)
        return context_fail(domain->context, IW_VALIDATION_FAILED,
                            "The account has %d valid keys, the maximum; revoke a key that is not used.",
                            account_key_valid_max);
    if (error != IW_OK || wait_s == 0)
        return error;
    domain->context->retry_after_s = wait_s;
    domain->context->reason = "keys";
    return context_fail(domain->context, IW_USAGE_LIMIT_EXCEEDED,
                        "The account created %d keys today; it can create more in %u s.",
                        account_key_valid_max, wait_s);
}

enum iw_error account_key_create(struct domain *domain, const struct session *session,
                                 const struct account_key_wish *wish, const struct audit_client *client,
                                 char value[key_size], struct account_key *key)
{
    uint8_t digest[32];
    char prefix[key_prefix_size];
    enum iw_error error;
    key_make(value);
    key_digest(value, digest);
    key_prefix(value, prefix);
    const struct audit_actor actor = audit_actor_of(&session->user, client);
    const char *scopes = key_scopes_text(domain->context->arena, wish->scopes, ", ");
    const struct keys_row row = {.account_id = session->account.id,
                                 .name = wish->name,
                                 .digest = digest,
                                 .prefix = prefix,
                                 .scopes = wish->scopes,
                                 .created_ms = clock_now_ms(),
                                 .expires_ms = wish->expires_ms,
                                 .user_id = session->user.id,
                                 .user_email = session->user.email};
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        int64_t id = 0;
        error = create_check(domain, row.account_id);
        if (error == IW_OK)
            error = keys_insert(&domain->db, &row, &id);
        if (error == IW_OK)
            error = key_find(domain, row.account_id, id, key);
        if (error == IW_OK)
            error = audit_add(domain, &actor, "keyCreated", "name", row.name, "prefix", prefix, "scopes",
                              scopes, NULL);
    }
    return error;
}

/* RESOURCE_NOT_FOUND.  A key that was revoked before stays as it is. */
static enum iw_error revoke_write(struct domain *domain, const struct session *session, int64_t id,
                                  const struct audit_client *client, struct account_key *key)
{
    int64_t account_id = session->account.id;
    const struct audit_actor actor = audit_actor_of(&session->user, client);
    enum iw_error error = key_find(domain, account_id, id, key);
    if (error != IW_OK || key->revoked_at_ms != 0)
        return error;
    error = keys_revoke(&domain->db, id, clock_now_ms());
    if (error == IW_OK)
        error = key_find(domain, account_id, id, key);
    return error == IW_OK
               ? audit_add(domain, &actor, "keyRevoked", "name", key->name, "prefix", key->prefix, NULL)
               : error;
}

enum iw_error account_key_revoke(struct domain *domain, const struct session *session, int64_t id,
                                 const struct audit_client *client, struct account_key *key)
{
    enum iw_error error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = revoke_write(domain, session, id, client, key);
    }
    return error;
}
