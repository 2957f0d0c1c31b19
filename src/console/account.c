/* The account: name, members, invitations. */
#include "console/gate.h"
#include "console/tables.h"
#include "console/view.h"
#include "domain/accounts/account.h"
#include "domain/people/member.h"
#include "http/response.h"
#include "model/plan.h"

#include <string.h>

enum { account_name_code_points_max = 100 };

static enum iw_error account_answer(struct request *request, const struct account_row *account)
{
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_id(render, "id", account->id);
    render_string(render, "name", account->name);
    render_string(render, "plan", account->plan);
    render_string(render, "status", account_status_name(account->status));
    render_integer(render, "requestsPerMinute",
                   plan_rate(request->config, account->plan, account->requests_per_minute));
    render_time(render, "createdAt", account->created_at_ms);
    render_object_end(render);
    return IW_OK;
}

static enum iw_error show(struct request *request)
{
    struct account_row account;
    enum iw_error error = account_find(request->domain, request->account->id, &account);
    return error == IW_OK ? account_answer(request, &account) : error;
}

static enum iw_error change(struct request *request)
{
    struct field_scope body;
    struct account_row account;
    struct account_change wish = {.requests_per_minute = account_keep, .status = account_keep};
    const struct audit_client client = gate_client(request);
    const struct audit_actor actor = audit_actor_of(&request->session->user, &client);
    enum iw_error error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    for (int i = 0; i < QUOTA_COUNT; i++)
        wish.quotas.of[i] = account_keep;
    wish.name = view_text(&body, "name", account_name_code_points_max);
    error = context_validated(request->context);
    if (error == IW_OK)
        error = account_change(request->domain, request->account->id, &wish, &actor, &account);
    return error == IW_OK ? account_answer(request, &account) : error;
}

static int64_t keys_of(const struct member_rows *rows, int64_t user_id)
{
    for (size_t i = 0; i < rows->key_count; i++)
        if (rows->keys[i].user_id == user_id)
            return rows->keys[i].count;
    return 0;
}

static enum iw_error members_show(struct request *request)
{
    struct member_rows rows;
    enum iw_error error = member_list(request->domain, request->account->id, &rows);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_array_begin(render, "members");
    for (size_t i = 0; i < rows.user_count; i++) {
        render_object_begin(render, NULL);
        render_id(render, "userId", rows.users[i].id);
        render_string(render, "email", rows.users[i].email);
        render_string(render, "name", rows.users[i].name);
        render_string(render, "role", user_role_name(rows.users[i].role));
        render_time(render, "lastSignInAt", rows.users[i].last_sign_in_ms);
        render_boolean(render, "totpEnabled", rows.users[i].totp_enabled_ms != 0);
        render_integer(render, "keys", keys_of(&rows, rows.users[i].id));
        render_object_end(render);
    }
    render_array_end(render);
    render_array_begin(render, "invitations");
    for (size_t i = 0; i < rows.invitation_count; i++) {
        render_object_begin(render, NULL);
        render_id(render, "id", rows.invitations[i].id);
        render_string(render, "email", rows.invitations[i].email);
        render_string(render, "role", user_role_name(rows.invitations[i].role));
        render_time(render, "createdAt", rows.invitations[i].created_ms);
        render_time(render, "expiresAt", rows.invitations[i].expires_ms);
        render_object_end(render);
    }
    render_array_end(render);
    render_object_end(render);
    return IW_OK;
}

static enum iw_error invite(struct request *request)
{
    struct field_scope body;
    int64_t id;
    const char *link;
    const struct user *user = &request->session->user;
    const struct audit_client client = gate_client(request);
    const struct audit_actor actor = audit_actor_of(user, &client);
    enum iw_error error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    if (strcmp(request->config->console_sign_up, "closed") == 0 && !user->is_admin)
        return context_fail(request->context, IW_SIGN_UP_CLOSED,
                            "This service does not let owners invite; ask its operator.");
    const struct member_invitation invitation = {.account_id = request->account->id,
                                                 .account_name = user->account_name,
                                                 .email = view_email(&body, "email"),
                                                 .role = view_role(&body, "role"),
                                                 .language = user->language,
                                                 .actor = &actor,
                                                 .is_unlimited = user->is_admin};
    error = context_validated(request->context);
    if (error == IW_OK)
        error = member_invite(request->domain, &invitation, &id, &link);
    if (error != IW_OK)
        return error;
    response_status(request, 201);
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_id(render, "id", id);
    if (link != NULL)
        render_string(render, "link", link);
    render_object_end(render);
    return IW_OK;
}

static enum iw_error uninvite(struct request *request)
{
    int64_t id;
    const struct audit_client client = gate_client(request);
    enum iw_error error = view_id(request, "invitationId", &id);
    if (error == IW_OK)
        error = member_uninvite(request->domain, request->session, id, &client);
    return error == IW_OK ? view_nothing(request) : error;
}

static enum iw_error member_change(struct request *request)
{
    struct field_scope body;
    int64_t id;
    const struct audit_client client = gate_client(request);
    enum iw_error error = view_id(request, "userId", &id);
    if (error == IW_OK)
        error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    enum user_role role = view_role(&body, "role");
    error = context_validated(request->context);
    if (error == IW_OK)
        error = member_role_set(request->domain, request->session, id, role, &client);
    return error == IW_OK ? view_nothing(request) : error;
}

static enum iw_error member_delete(struct request *request)
{
    int64_t id;
    const struct audit_client client = gate_client(request);
    request_query_read(request);
    const char *keys = request_query(request, "keys");
    if (keys != NULL && strcmp(keys, "revoke") != 0)
        context_detail(request->context, "keys",
                       "must be revoke, or absent: the keys of the member stay valid");
    enum iw_error error = context_validated(request->context);
    if (error == IW_OK)
        error = view_id(request, "userId", &id);
    if (error == IW_OK)
        error = member_remove(request->domain, request->session, id, keys != NULL, &client);
    return error == IW_OK ? view_nothing(request) : error;
}

const struct route console_account[] = {
    {METHOD_GET, "/api/account", show, 0},
    {METHOD_PATCH, "/api/account", change, ROUTE_OWNER},
    {METHOD_GET, "/api/account/members", members_show, 0},
    {METHOD_POST, "/api/account/invitations", invite, ROUTE_OWNER},
    {METHOD_DELETE, "/api/account/invitations/{invitationId}", uninvite, ROUTE_OWNER},
    {METHOD_PATCH, "/api/account/members/{userId}", member_change, ROUTE_OWNER},
    {METHOD_DELETE, "/api/account/members/{userId}", member_delete, ROUTE_OWNER},
    {.pattern = NULL},
};
