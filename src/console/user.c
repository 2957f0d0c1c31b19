/* The signed-in user: profile, password, second factor, sessions, audit log of the account. */
#include <string.h>

#include "api/page.h"
#include "base/message.h"
#include "console/gate.h"
#include "console/tables.h"
#include "console/view.h"
#include "domain/people/second_factor.h"
#include "domain/people/sign_in.h"
#include "domain/people/user.h"
#include "http/response.h"

enum { code_code_points_max = 40 };

static enum iw_error verify_resend(struct request *request)
{
    const struct audit_client client = gate_client(request);
    enum iw_error error = user_verify_send(request->domain, &request->session->user, &client);
    return error == IW_OK ? view_nothing(request) : error;
}

static enum iw_error change(struct request *request)
{
    struct field_scope body;
    struct user user = request->session->user;
    const struct audit_client client = gate_client(request);
    enum iw_error error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    if (!json_is_absent(json_member(body.object, "name")))
        user.name = view_text(&body, "name", user_name_code_points_max);
    if (!json_is_absent(json_member(body.object, "language")) &&
        !user_language_read(view_text(&body, "language", code_code_points_max), &user.language))
        field_bad(&body, "language", "must be en or ko");
    error = context_validated(request->context);
    if (error == IW_OK)
        error = user_profile_set(request->domain, request->session, user.name, user.language, &client);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    view_user(render, &user);
    render_object_end(render);
    return IW_OK;
}

/* Renders the cookie and the CSRF token of the session that replaces the previous session. */
static void renewal_render(struct request *request, struct render *render, const struct session_new *fresh)
{
    gate_cookie_set(request, fresh->token);
    render_string(render, "csrfToken", fresh->session.csrf_token);
}

static enum iw_error password_change(struct request *request)
{
    struct field_scope body;
    struct session_new fresh;
    const struct audit_client client = gate_client(request);
    const struct user *user = &request->session->user;
    enum iw_error error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    const char *current = view_password(&body, "currentPassword");
    const char *password = view_password(&body, "newPassword");
    if (context_validated(request->context) == IW_OK)
        user_password_check(request->context, "newPassword", password, user->email);
    error = context_validated(request->context);
    if (error == IW_OK)
        error = sign_in_confirm(request->domain, request->session, "currentPassword", current);
    if (error == IW_OK)
        error = user_password_set(request->domain, user, password, &client, &fresh);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    renewal_render(request, render, &fresh);
    render_object_end(render);
    return IW_OK;
}

/* Reads the password of a body and checks it. */
static enum iw_error password_confirm(struct request *request)
{
    struct field_scope body;
    enum iw_error error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    const char *password = view_password(&body, "password");
    error = context_validated(request->context);
    return error == IW_OK ? sign_in_confirm(request->domain, request->session, "password", password) : error;
}

static enum iw_error totp_make(struct request *request)
{
    struct second_factor factor;
    const struct user *user = &request->session->user;
    const struct audit_client client = gate_client(request);
    enum iw_error error = password_confirm(request);
    if (error == IW_OK && user->totp_enabled_ms != 0)
        error = context_fail(request->context, IW_VALIDATION_FAILED, message_factor_on);
    if (error == IW_OK)
        error = second_factor_make(request->domain, user, &client, &factor);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_string(render, "secret", factor.secret);
    render_string(render, "otpauthUrl", factor.url);
    render_object_end(render);
    return IW_OK;
}

/* fresh is the session that replaces the previous session, or NULL. */
static enum iw_error codes_answer(struct request *request, const char *const codes[second_factor_codes],
                                  const struct session_new *fresh)
{
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_array_begin(render, "recoveryCodes");
    for (int i = 0; i < second_factor_codes; i++)
        render_string(render, NULL, codes[i]);
    render_array_end(render);
    if (fresh != NULL)
        renewal_render(request, render, fresh);
    render_object_end(render);
    return IW_OK;
}

static enum iw_error totp_enable(struct request *request)
{
    struct field_scope body;
    struct session_new fresh;
    const char *codes[second_factor_codes];
    const struct audit_client client = gate_client(request);
    enum iw_error error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    const char *code = view_text(&body, "code", code_code_points_max);
    error = context_validated(request->context);
    if (error == IW_OK)
        error = second_factor_enable(request->domain, &request->session->user, code, &client, codes, &fresh);
    return error == IW_OK ? codes_answer(request, codes, &fresh) : error;
}

static enum iw_error totp_disable(struct request *request)
{
    const struct audit_client client = gate_client(request);
    const struct audit_actor actor = audit_actor_of(&request->session->user, &client);
    enum iw_error error = password_confirm(request);
    if (error == IW_OK)
        error = second_factor_disable(request->domain, &request->session->user, &actor);
    return error == IW_OK ? view_nothing(request) : error;
}

static enum iw_error codes_renew(struct request *request)
{
    const char *codes[second_factor_codes];
    const struct audit_client client = gate_client(request);
    enum iw_error error = password_confirm(request);
    if (error == IW_OK)
        error = second_factor_codes_new(request->domain, &request->session->user, &client, codes);
    return error == IW_OK ? codes_answer(request, codes, NULL) : error;
}

static enum iw_error sessions_show(struct request *request)
{
    struct page page;
    struct session_rows rows;
    page_read(request, &page);
    enum iw_error error = context_validated(request->context);
    if (error == IW_OK)
        error = session_list(request->domain, request->session->user.id,
                             page.limit < 0 ? INT64_MAX : page.limit, page_offset(&page), &rows);
    if (error != IW_OK)
        return error;
    struct render *render = page_begin(request, "sessions");
    for (size_t i = 0; i < rows.count; i++) {
        render_object_begin(render, NULL);
        render_id(render, "id", rows.items[i].id);
        render_time(render, "createdAt", rows.items[i].created_ms);
        render_time(render, "lastSeenAt", rows.items[i].seen_ms);
        render_string(render, "address", rows.items[i].address);
        render_string(render, "userAgent", rows.items[i].user_agent);
        render_boolean(render, "isCurrent", rows.items[i].id == request->session->id);
        render_object_end(render);
    }
    page_end(render, &page, rows.total);
    return IW_OK;
}

static enum iw_error session_remove(struct request *request)
{
    int64_t id;
    const struct audit_client client = gate_client(request);
    enum iw_error error = view_id(request, "sessionId", &id);
    if (error == IW_OK)
        error = session_end(request->domain, request->session, id, &client);
    if (error == IW_OK && id == request->session->id)
        gate_cookie_set(request, NULL);
    return error == IW_OK ? view_nothing(request) : error;
}

static enum iw_error sessions_remove(struct request *request)
{
    const struct audit_client client = gate_client(request);
    enum iw_error error = session_end_others(request->domain, request->session, &client);
    return error == IW_OK ? view_nothing(request) : error;
}

const struct route console_user[] = {
    {METHOD_POST, "/api/email/verify/resend", verify_resend, ROUTE_PROFILE},
    {METHOD_PATCH, "/api/user", change, ROUTE_PROFILE},
    {METHOD_POST, "/api/user/password", password_change, ROUTE_PROFILE | ROUTE_ESCAPE},
    {METHOD_POST, "/api/user/totp", totp_make, ROUTE_PROFILE},
    {METHOD_POST, "/api/user/totp/enable", totp_enable, ROUTE_PROFILE},
    {METHOD_POST, "/api/user/totp/disable", totp_disable, ROUTE_PROFILE},
    {METHOD_POST, "/api/user/totp/recovery-codes", codes_renew, ROUTE_PROFILE},
    {METHOD_GET, "/api/user/sessions", sessions_show, ROUTE_PROFILE},
    {METHOD_DELETE, "/api/user/sessions/{sessionId}", session_remove, ROUTE_PROFILE | ROUTE_ESCAPE},
    {METHOD_DELETE, "/api/user/sessions", sessions_remove, ROUTE_PROFILE | ROUTE_ESCAPE},
    {.pattern = NULL},
};
