/* Accounts and users of all accounts, for users of the operator. */
#include <string.h>

#include "api/page.h"
#include "api/usage.h"
#include "base/message.h"
#include "base/text.h"
#include "console/gate.h"
#include "console/tables.h"
#include "console/view.h"
#include "domain/accounts/account.h"
#include "domain/people/member.h"
#include "http/response.h"
#include "model/plan.h"

enum { name_code_points_max = 100, plan_code_points_max = 16, requests_per_minute_max = 1000000 };

static struct audit_actor actor_of(const struct request *request, const struct audit_client *client)
{
    return audit_actor_of(&request->session->user, client);
}

static int64_t limit_of(const struct page *page)
{
    return page->limit < 0 ? INT64_MAX : page->limit;
}

/* ---- accounts ---- */

static void account_render(struct render *render, const struct config *config,
                           const struct account_row *account)
{
    render_id(render, "id", account->id);
    render_string(render, "name", account->name);
    render_string(render, "plan", account->plan);
    render_string(render, "status", account_status_name(account->status));
    render_integer(render, "requestsPerMinute",
                   plan_rate(config, account->plan, account->requests_per_minute));
    render_time(render, "createdAt", account->created_at_ms);
    render_integer(render, "users", account->user_count);
    render_integer(render, "keys", account->key_count);
}

static enum iw_error accounts_show(struct request *request)
{
    struct page page;
    struct account_rows rows;
    enum account_status status;
    page_read(request, &page);
    const char *word = request_query(request, "status");
    if (word != NULL && strcmp(word, "all") == 0)
        word = NULL;
    if (word != NULL && !account_status_read(word, &status))
        context_detail(request->context, "status", "must be active, suspended or all");
    const struct accounts_page range = {page.keyword, word, limit_of(&page), page_offset(&page)};
    enum iw_error error = context_validated(request->context);
    if (error == IW_OK)
        error = account_list(request->domain, &range, &rows);
    if (error != IW_OK)
        return error;
    struct render *render = page_begin(request, "accounts");
    for (size_t i = 0; i < rows.count; i++) {
        render_object_begin(render, NULL);
        account_render(render, request->config, &rows.items[i]);
        render_object_end(render);
    }
    page_end(render, &page, rows.total);
    return IW_OK;
}

/* Answers with the account, its usage and its limits. */
static enum iw_error account_answer(struct request *request, const struct account_row *row)
{
    const struct account account = account_of_row(row);
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    account_render(render, request->config, row);
    render_object_begin(render, "usage");
    enum iw_error error = usage_render(request, render, &account);
    render_object_end(render);
    render_object_end(render);
    return error;
}

static enum iw_error account_post(struct request *request)
{
    struct field_scope body;
    struct account_row account;
    int64_t id;
    const char *link = NULL, *email = NULL;
    const struct audit_client client = gate_client(request);
    struct audit_actor actor = actor_of(request, &client);
    enum iw_error error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    const char *name = view_text(&body, "name", name_code_points_max);
    const char *plan = view_text(&body, "plan", plan_code_points_max);
    if (!json_is_absent(json_member(body.object, "ownerEmail")))
        email = view_email(&body, "ownerEmail");
    error = context_validated(request->context);
    if (error == IW_OK)
        error = account_create(request->domain, name, plan, &actor, &account);
    actor.account_id = account.id;
    const struct member_invitation owner = {.account_id = account.id,
                                            .account_name = account.name,
                                            .email = email,
                                            .role = USER_OWNER,
                                            .language = request->session->user.language,
                                            .actor = &actor,
                                            .is_unlimited = true};
    if (error == IW_OK && email != NULL)
        error = member_invite(request->domain, &owner, &id, &link);
    if (error != IW_OK)
        return error;
    response_status(request, 201);
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    account_render(render, request->config, &account);
    if (link != NULL)
        render_string(render, "link", link);
    render_object_end(render);
    return IW_OK;
}

static enum iw_error account_show(struct request *request)
{
    int64_t id;
    struct account_row account;
    enum iw_error error = view_id(request, "accountId", &id);
    if (error == IW_OK)
        error = account_find(request->domain, id, &account);
    return error == IW_OK ? account_answer(request, &account) : error;
}

/*
 * Reads an integer from least to most. Returns fallback if the member is absent or invalid, when_null if it
 * is null.
 */
static int64_t integer_read(const struct field_scope *scope, const char *name, int64_t most,
                            int64_t when_null)
{
    const struct json *member = json_member(scope->object, name);
    if (member == NULL)
        return account_keep;
    if (json_is(member, JSON_KIND_NULL))
        return when_null;
    int64_t number = json_integer_of(member);
    if (json_is(member, JSON_KIND_INTEGER) && number >= 0 && number <= most)
        return number;
    field_bad(scope, name, message_number_range, (long long)most);
    return account_keep;
}

static void quotas_read(const struct field_scope *body, struct quota_numbers *quotas)
{
    struct field_scope scope;
    bool is_given = field_object(body, "quota", false, &scope);
    for (int i = 0; i < QUOTA_COUNT; i++)
        quotas->of[i] = is_given
                            ? integer_read(&scope, quota_name((enum quota)i), INT64_MAX / 2, quota_of_plan)
                            : account_keep;
}

static void change_read(const struct field_scope *body, struct account_change *change)
{
    enum account_status status;
    *change = (struct account_change){.status = account_keep};
    if (!json_is_absent(json_member(body->object, "name")))
        change->name = view_text(body, "name", name_code_points_max);
    if (!json_is_absent(json_member(body->object, "plan")))
        change->plan = view_text(body, "plan", plan_code_points_max);
    change->requests_per_minute = integer_read(body, "requestsPerMinute", requests_per_minute_max, 0);
    quotas_read(body, &change->quotas);
    if (json_is_absent(json_member(body->object, "status")))
        return;
    const char *word = view_text(body, "status", plan_code_points_max);
    if (account_status_read(word, &status))
        change->status = (int)status;
    else
        field_bad(body, "status", "must be active or suspended");
}

static enum iw_error account_patch(struct request *request)
{
    int64_t id;
    struct field_scope body;
    struct account_row account;
    struct account_change change;
    const struct audit_client client = gate_client(request);
    const struct audit_actor actor = actor_of(request, &client);
    enum iw_error error = view_id(request, "accountId", &id);
    if (error == IW_OK)
        error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    change_read(&body, &change);
    error = context_validated(request->context);
    if (error == IW_OK)
        error = account_change(request->domain, id, &change, &actor, &account);
    return error == IW_OK ? account_answer(request, &account) : error;
}

/* ---- users ---- */

static void user_render(struct render *render, const struct user *user)
{
    render_object_begin(render, NULL);
    render_id(render, "id", user->id);
    render_string(render, "email", user->email);
    render_string(render, "name", user->name);
    render_id(render, "accountId", user->account.id);
    render_string(render, "accountName", user->account_name);
    render_string(render, "role", user_role_name(user->role));
    render_boolean(render, "isAdmin", user->is_admin);
    render_boolean(render, "isDisabled", user->is_disabled);
    render_time(render, "lastSignInAt", user->last_sign_in_ms);
    render_boolean(render, "totpEnabled", user->totp_enabled_ms != 0);
    render_object_end(render);
}

static enum iw_error users_show(struct request *request)
{
    struct page page;
    struct account_users users;
    page_read(request, &page);
    const struct users_page range = {page.keyword, limit_of(&page), page_offset(&page)};
    enum iw_error error = context_validated(request->context);
    if (error == IW_OK)
        error = account_users(request->domain, &range, &users);
    if (error != IW_OK)
        return error;
    struct render *render = page_begin(request, "users");
    for (size_t i = 0; i < users.count; i++)
        user_render(render, &users.items[i]);
    page_end(render, &page, users.total);
    return IW_OK;
}

/* Returns -1 if the flag is absent. */
static int flag_read(const struct field_scope *body, const char *name)
{
    return json_is_absent(json_member(body->object, name)) ? -1 : field_boolean(body, name, false);
}

static enum iw_error user_change(struct request *request)
{
    int64_t id;
    struct field_scope body;
    struct user user;
    const struct audit_client client = gate_client(request);
    const struct audit_actor actor = actor_of(request, &client);
    enum iw_error error = view_id(request, "userId", &id);
    if (error == IW_OK)
        error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    const struct member_flags flags = {flag_read(&body, "isAdmin"), flag_read(&body, "isDisabled")};
    if (id == request->session->user.id)
        context_detail(request->context, flags.is_admin >= 0 ? "isAdmin" : "isDisabled", message_own_user);
    error = context_validated(request->context);
    if (error == IW_OK)
        error = user_find(request->domain, id, &user);
    if (error == IW_OK)
        error = member_flags_set(request->domain, &user, &flags, &actor);
    return error == IW_OK ? view_nothing(request) : error;
}

static enum iw_error user_reset_link(struct request *request)
{
    int64_t id;
    struct user user;
    const char *link;
    const struct audit_client client = gate_client(request);
    const struct audit_actor actor = actor_of(request, &client);
    enum iw_error error = view_id(request, "userId", &id);
    if (error == IW_OK)
        error = user_find(request->domain, id, &user);
    if (error == IW_OK)
        error = account_reset(request->domain, &user, &actor, &link);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    if (link != NULL)
        render_string(render, "link", link);
    render_object_end(render);
    return IW_OK;
}

const struct route console_admin[] = {
    {METHOD_GET, "/api/admin/accounts", accounts_show, ROUTE_OPERATOR},
    {METHOD_POST, "/api/admin/accounts", account_post, ROUTE_OPERATOR},
    {METHOD_GET, "/api/admin/accounts/{accountId}", account_show, ROUTE_OPERATOR},
    {METHOD_PATCH, "/api/admin/accounts/{accountId}", account_patch, ROUTE_OPERATOR},
    {METHOD_GET, "/api/admin/users", users_show, ROUTE_OPERATOR},
    {METHOD_PATCH, "/api/admin/users/{userId}", user_change, ROUTE_OPERATOR},
    {METHOD_POST, "/api/admin/users/{userId}/reset", user_reset_link, ROUTE_OPERATOR},
    {.pattern = NULL},
};
