/*
 * Requests before a session (sign-in, second factor, sign-up, verification, reset, invitation), and GET and
 * DELETE of the session.
 */
#include "console/gate.h"
#include "console/tables.h"
#include "console/view.h"
#include "domain/people/mail.h"
#include "domain/people/member.h"
#include "domain/people/user.h"
#include "http/response.h"
#include "model/plan.h"

enum { token_code_points_max = 200, code_code_points_max = 40 };

static void session_render(struct render *render, const struct request *request,
                           const struct session *session)
{
    if (session == NULL) {
        render_null(render, "user");
        render_null(render, "account");
        render_null(render, "csrfToken");
    } else {
        const struct user *user = &session->user;
        render_object_begin(render, "user");
        view_user(render, user);
        render_object_end(render);
        render_object_begin(render, "account");
        render_id(render, "id", user->account.id);
        render_string(render, "name", user->account_name);
        render_string(render, "plan", user->account.plan);
        render_string(render, "status", user->account.is_suspended ? "suspended" : "active");
        render_string(render, "role", user_role_name(user->role));
        render_integer(render, "resultRetentionSeconds",
                       plan_retention_ms(request->config, user->account.plan) / 1000);
        render_object_end(render);
        render_string(render, "csrfToken", session->csrf_token);
    }
    render_string(render, "signUp", request->config->console_sign_up);
    render_boolean(render, "mail", mail_is_on(request->config));
    bool has_contact = request->config->console_operator_contact[0] != '\0';
    render_string(render, "operatorContact", has_contact ? request->config->console_operator_contact : NULL);
    render_object_begin(render, "service");
    view_service(render, request->arena, request->config);
    render_object_end(render);
}

/* Answers a sign-in, with the cookie of the session if it is open. */
static enum iw_error sign_in_answer(struct request *request, const struct sign_in *sign_in)
{
    struct render *render = response_data(request);
    if (sign_in->challenge == NULL)
        gate_cookie_set(request, sign_in->fresh.token);
    render_object_begin(render, "data");
    render_string(render, "state", sign_in->challenge == NULL ? "signedIn" : "secondFactor");
    if (sign_in->challenge == NULL)
        session_render(render, request, &sign_in->fresh.session);
    else
        render_string(render, "challenge", sign_in->challenge);
    render_object_end(render);
    return IW_OK;
}

static enum iw_error show(struct request *request)
{
    const struct session *session;
    enum iw_error error = gate_session(request, &session);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    session_render(render, request, session);
    render_object_end(render);
    return IW_OK;
}

static enum iw_error sign_in(struct request *request)
{
    struct field_scope body;
    struct sign_in outcome;
    const struct session *before = NULL;
    const struct audit_client client = gate_client(request);
    enum iw_error error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    const char *email = view_email(&body, "email");
    const char *password = view_password(&body, "password");
    error = context_validated(request->context);
    if (error == IW_OK)
        error = sign_in_password(request->domain, email, password, &client, &outcome);
    /* Ends the session that the browser had before, because its token must not be reused. */
    if (error == IW_OK)
        error = gate_session(request, &before);
    if (error == IW_OK && before != NULL)
        error = session_end(request->domain, before, before->id, &client);
    return error == IW_OK ? sign_in_answer(request, &outcome) : error;
}

static enum iw_error second_factor(struct request *request)
{
    struct field_scope body;
    struct sign_in outcome;
    const struct audit_client client = gate_client(request);
    enum iw_error error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    const char *challenge = view_text(&body, "challenge", token_code_points_max);
    const char *code = view_text(&body, "code", code_code_points_max);
    error = context_validated(request->context);
    if (error == IW_OK)
        error = sign_in_code(request->domain, challenge, code, &client, &outcome);
    return error == IW_OK ? sign_in_answer(request, &outcome) : error;
}

static enum iw_error sign_out(struct request *request)
{
    const struct audit_client client = gate_client(request);
    enum iw_error error = session_end(request->domain, request->session, request->session->id, &client);
    if (error != IW_OK)
        return error;
    gate_cookie_set(request, NULL);
    return view_nothing(request);
}

/* Reads name and password of a new user. */
static void entry_read(const struct field_scope *body, struct user_entry *entry)
{
    entry->name = view_text(body, "name", user_name_code_points_max);
    entry->password = view_password(body, "password");
    if (entry->password != NULL)
        user_password_check(body->context, "password", entry->password, entry->email);
}

static enum iw_error sign_up(struct request *request)
{
    struct field_scope body;
    struct user user;
    struct sign_in outcome;
    bool is_open;
    struct user_entry entry = {.email = NULL};
    const struct audit_client client = gate_client(request);
    enum iw_error error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    entry.email = view_email(&body, "email");
    entry.account_name = view_text(&body, "accountName", user_name_code_points_max);
    entry_read(&body, &entry);
    error = context_validated(request->context);
    if (error == IW_OK)
        error = user_sign_up(request->domain, &entry, &client, &is_open, &user);
    if (error == IW_OK && is_open)
        error = sign_in_new(request->domain, &user, &client, &outcome);
    if (error != IW_OK)
        return error;
    response_status(request, 201);
    if (is_open)
        return sign_in_answer(request, &outcome);
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_string(render, "state", "verify");
    render_object_end(render);
    return IW_OK;
}

/* Reads a body that has only a token. */
static enum iw_error token_read(struct request *request, const char **token)
{
    struct field_scope body;
    enum iw_error error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    *token = view_text(&body, "token", token_code_points_max);
    return context_validated(request->context);
}

static enum iw_error verify(struct request *request)
{
    const char *token;
    const struct audit_client client = gate_client(request);
    enum iw_error error = token_read(request, &token);
    if (error == IW_OK)
        error = user_verify(request->domain, token, &client);
    return error == IW_OK ? view_nothing(request) : error;
}

static enum iw_error forgot(struct request *request)
{
    struct field_scope body;
    const struct audit_client client = gate_client(request);
    enum iw_error error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    const char *email = view_email(&body, "email");
    error = context_validated(request->context);
    if (error == IW_OK)
        error = user_forgot(request->domain, email, &client);
    return error == IW_OK ? view_nothing(request) : error;
}

static enum iw_error reset(struct request *request)
{
    struct field_scope body;
    const struct audit_client client = gate_client(request);
    enum iw_error error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    const char *token = view_text(&body, "token", token_code_points_max);
    const char *password = view_password(&body, "password");
    error = context_validated(request->context);
    if (error == IW_OK)
        error = user_reset(request->domain, token, password, &client);
    return error == IW_OK ? view_nothing(request) : error;
}

static enum iw_error invitation_inspect(struct request *request)
{
    const char *token;
    struct invitation invitation;
    enum iw_error error = token_read(request, &token);
    if (error == IW_OK)
        error = member_inspect(request->domain, token, &invitation);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_string(render, "email", invitation.email);
    render_string(render, "accountName", invitation.account_name);
    render_string(render, "role", user_role_name(invitation.role));
    render_object_end(render);
    return IW_OK;
}

static enum iw_error invitation_accept(struct request *request)
{
    struct field_scope body;
    struct user user;
    struct sign_in outcome;
    struct user_entry entry = {.email = NULL};
    const struct audit_client client = gate_client(request);
    enum iw_error error = view_body(request, &body);
    if (error != IW_OK)
        return error;
    const char *token = view_text(&body, "token", token_code_points_max);
    entry_read(&body, &entry);
    error = context_validated(request->context);
    if (error == IW_OK)
        error = member_accept(request->domain, token, &entry, &client, &user);
    if (error == IW_OK)
        error = sign_in_new(request->domain, &user, &client, &outcome);
    return error == IW_OK ? sign_in_answer(request, &outcome) : error;
}

const struct route console_session[] = {
    {METHOD_GET, "/api/session", show, ROUTE_OPEN},
    {METHOD_POST, "/api/session", sign_in, ROUTE_OPEN},
    {METHOD_DELETE, "/api/session", sign_out, ROUTE_PROFILE | ROUTE_ESCAPE},
    {METHOD_POST, "/api/session/second-factor", second_factor, ROUTE_OPEN},
    {METHOD_POST, "/api/sign-up", sign_up, ROUTE_OPEN},
    {METHOD_POST, "/api/email/verify", verify, ROUTE_OPEN},
    {METHOD_POST, "/api/password/forgot", forgot, ROUTE_OPEN},
    {METHOD_POST, "/api/password/reset", reset, ROUTE_OPEN},
    {METHOD_POST, "/api/invitations/inspect", invitation_inspect, ROUTE_OPEN},
    {METHOD_POST, "/api/invitations/accept", invitation_accept, ROUTE_OPEN},
    {.pattern = NULL},
};
