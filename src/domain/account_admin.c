#include "domain/account_admin.h"

#include <stdio.h>

#include "base/clock.h"
#include "domain/mail.h"
#include "domain/token.h"
#include "domain/user.h"
#include "store/quotas.h"

static enum iw_error missing(struct context *context, enum iw_error error, const char *what)
{
    if (error != IW_NOT_FOUND)
        return error;
    context_clear(context);
    return context_fail(context, IW_RESOURCE_NOT_FOUND, "There is no %s with this id.", what);
}

enum iw_error account_admin_find(struct domain *domain, int64_t id, struct account_row *account)
{
    return missing(domain->context, accounts_get(&domain->store, id, account), "account");
}

struct account account_admin_account(const struct account_row *row)
{
    struct account account = {.id = row->id, .quotas = row->quotas};
    snprintf(account.plan, sizeof account.plan, "%s", row->plan);
    return account;
}

enum iw_error account_admin_list(struct domain *domain, const struct accounts_page *page,
                                 struct account_admin_rows *rows)
{
    return accounts_page(&domain->store, page, &rows->items, &rows->count, &rows->total);
}

/* A name in use becomes a detail of its field. */
static enum iw_error name_taken(struct context *context, enum iw_error error)
{
    if (error != IW_TWIN_EXISTS)
        return error;
    context_clear(context);
    context_detail(context, "name", "is in use; choose another name");
    return context_validated(context);
}

/* The argument of the transactions. */
struct admin_work {
    const struct domain *domain;
    int64_t id;
    const struct account_admin_change *change;
    struct audit_actor actor;
    struct account_row *account;
};

static enum iw_error create_run(const struct store *store, void *argument)
{
    struct admin_work *work = argument;
    enum iw_error error =
        accounts_create(store, work->change->name, work->change->plan, clock_now_ms(), &work->id);
    if (error == IW_OK)
        error = accounts_get(store, work->id, work->account);
    work->actor.account_id = work->id;
    return error == IW_OK ? audit_add(store, &work->actor, "accountCreated", "name", work->change->name,
                                      "plan", work->change->plan, NULL)
                          : name_taken(store->context, error);
}

enum iw_error account_admin_create(struct domain *domain, const char *name, const char *plan,
                                   const struct audit_actor *actor, struct account_row *account)
{
    const struct account_admin_change change = {.name = name, .plan = plan};
    struct admin_work work = {domain, 0, &change, *actor, account};
    return db_transaction(&domain->store, create_run, &work);
}

static enum iw_error plan_change(const struct store *store, const struct admin_work *work)
{
    const struct account_admin_change *change = work->change;
    const struct account_row *row = work->account;
    int64_t own = row->is_overridden ? row->requests_per_minute : 0;
    if (change->plan == NULL && change->requests_per_minute == account_admin_keep)
        return IW_OK;
    if (change->requests_per_minute != account_admin_keep)
        own = change->requests_per_minute;
    const char *plan = change->plan != NULL ? change->plan : row->plan;
    enum iw_error error = accounts_plan_set(store, row->id, plan, own);
    return error == IW_OK ? audit_add(store, &work->actor, "planChanged", "plan", plan, "requestsPerMinute",
                                      arena_printf(store->context->arena, "%lld", (long long)own), NULL)
                          : error;
}

static enum iw_error status_change(const struct store *store, const struct admin_work *work)
{
    const struct account_row *row = work->account;
    if (work->change->status == account_admin_keep || work->change->status == (int)row->status)
        return IW_OK;
    bool is_suspended = work->change->status == ACCOUNT_SUSPENDED;
    enum iw_error error =
        is_suspended
            ? accounts_suspend(store, row->id)
            : accounts_resume(store, row->id, clock_now_ms() + work->domain->config->orders_pending_s * 1000);
    return error == IW_OK
               ? audit_add(store, &work->actor, is_suspended ? "accountSuspended" : "accountResumed", NULL)
               : error;
}

static enum iw_error quotas_change(const struct store *store, const struct admin_work *work)
{
    enum iw_error error = IW_OK;
    for (int i = 0; error == IW_OK && i < QUOTA_COUNT; i++) {
        int64_t limit = work->change->quotas.of[i];
        if (limit == account_admin_keep || limit == work->account->quotas.of[i])
            continue;
        error = quotas_limit_set(store, work->account->id, (enum quota)i, limit);
        const char *text =
            limit == quota_of_plan ? "plan" : arena_printf(store->context->arena, "%lld", (long long)limit);
        if (error == IW_OK)
            error = audit_add(store, &work->actor, "quotaChanged", "name", quota_name((enum quota)i), "limit",
                              text, NULL);
    }
    return error;
}

static enum iw_error change_run(const struct store *store, void *argument)
{
    struct admin_work *work = argument;
    const char *name = work->change->name;
    enum iw_error error = missing(store->context, accounts_get(store, work->id, work->account), "account");
    if (error == IW_OK && name != NULL)
        error = name_taken(store->context, accounts_rename(store, work->id, name));
    if (error == IW_OK && name != NULL)
        error = audit_add(store, &work->actor, "accountRenamed", "name", name, NULL);
    if (error == IW_OK)
        error = plan_change(store, work);
    if (error == IW_OK)
        error = status_change(store, work);
    if (error == IW_OK)
        error = quotas_change(store, work);
    return error == IW_OK ? accounts_get(store, work->id, work->account) : error;
}

enum iw_error account_admin_change(struct domain *domain, int64_t id,
                                   const struct account_admin_change *change, const struct audit_actor *actor,
                                   struct account_row *account)
{
    struct admin_work work = {domain, id, change, *actor, account};
    work.actor.account_id = id;
    return db_transaction(&domain->store, change_run, &work);
}

enum iw_error account_admin_audit(struct domain *domain, const struct audit_page *page,
                                  struct audit_rows *rows)
{
    return audit_page(&domain->store, page, rows);
}

enum iw_error account_admin_users(struct domain *domain, const struct users_page *page,
                                  struct account_admin_users *users)
{
    return users_page(&domain->store, page, &users->items, &users->count, &users->total);
}

enum iw_error account_admin_user(struct domain *domain, int64_t id, struct user *user)
{
    return missing(domain->context, users_find(&domain->store, id, user), "user");
}

enum iw_error account_admin_reset(struct domain *domain, const struct user *user,
                                  const struct audit_actor *actor, const char **link)
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
    error = mail_queue(domain, &domain->store, &mail);
    if (mail_is_on(domain->config))
        *link = NULL;
    return error == IW_OK
               ? audit_add(&domain->store, &of_account, "resetLinkMade", "email", user->email, NULL)
               : error;
}
