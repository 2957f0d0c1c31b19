#include "console/gate.h"

#include <string.h>
#include <strings.h>

#include "base/crypto.h"
#include "domain/people/mail.h"
#include "http/response.h"
#include "http/route.h"

/* The prefix makes browsers refuse the cookie without Secure, with a Domain or with another Path. */
#define COOKIE "__Host-imgward-session"

struct audit_client gate_client(const struct request *request)
{
    const char *address = request_parameter(request, "REMOTE_ADDR");
    const char *agent = request_header(request, "User-Agent");
    return (struct audit_client){address != NULL ? address : "", agent != NULL ? agent : ""};
}

/* The value of the cookie (RFC 6265, 4.2), or NULL. */
static const char *cookie_read(const struct request *request)
{
    static const char name[] = COOKIE "=";
    const char *at = request_header(request, "Cookie");
    while (at != NULL && *at != '\0') {
        at += strspn(at, " ;");
        size_t length = strcspn(at, ";");
        if (length > sizeof name - 1 && strncmp(at, name, sizeof name - 1) == 0)
            return arena_text_n(request->arena, at + sizeof name - 1, length - (sizeof name - 1));
        at += length;
    }
    return NULL;
}

void gate_cookie_set(struct request *request, const char *token)
{
    response_header(request, "Set-Cookie",
                    arena_printf(request->arena,
                                 COOKIE "=%s; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=%lld",
                                 token != NULL ? token : "",
                                 token != NULL ? (long long)request->config->console_session_s : 0));
}

/* Returns true if the browser states that the request comes from a page of the console's origin. */
static bool is_same_origin(const struct request *request)
{
    const char *site = request_header(request, "Sec-Fetch-Site");
    const char *origin = request_header(request, "Origin");
    if (site != NULL && strcmp(site, "same-origin") != 0)
        return false;
    return site != NULL || (origin != NULL && strcasecmp(origin, request->config->api_public_url) == 0);
}

static bool is_json(const struct request *request)
{
    const char *type = request_header(request, "Content-Type");
    size_t length = type != NULL ? strcspn(type, "; \t") : 0;
    return length == strlen("application/json") && strncasecmp(type, "application/json", length) == 0;
}

enum iw_error gate_guard(struct request *request)
{
    if (request->method == METHOD_GET || request->method == METHOD_OPTIONS)
        return IW_OK;
    if (!is_same_origin(request))
        return context_fail(request->context, IW_CSRF_TOKEN_INVALID,
                            "The request does not come from a page of %s.", request->config->api_public_url);
    if ((request->route->flags & ROUTE_OPEN) != 0 && request->method != METHOD_DELETE && !is_json(request))
        return context_fail(request->context, IW_CSRF_TOKEN_INVALID,
                            "The Content-Type must be application/json.");
    return IW_OK;
}

static enum iw_error csrf_check(struct request *request, const struct session *session)
{
    const char *given = request_header(request, "X-CSRF-Token");
    size_t length = strlen(session->csrf_token);
    if (request->method == METHOD_GET || request->method == METHOD_OPTIONS)
        return IW_OK;
    if (given != NULL && strlen(given) == length && crypto_equal(given, session->csrf_token, length))
        return IW_OK;
    return context_fail(request->context, IW_CSRF_TOKEN_INVALID, NULL);
}

/* Checks the role that the route requires in addition to a session. */
static enum iw_error role_check(struct request *request, const struct session *session)
{
    const struct user *user = &session->user;
    unsigned flags = request->route != NULL ? request->route->flags : 0;
    if ((flags & ROUTE_OPERATOR) != 0)
        return user->is_admin ? IW_OK
                              : context_fail(request->context, IW_ROLE_REQUIRED,
                                             "Only users of the operator may do this.");
    if ((flags & ROUTE_PROFILE) != 0)
        return IW_OK;
    if (session->account.is_suspended)
        return context_fail(request->context, IW_AUTH_FORBIDDEN, NULL);
    if (user->email_verified_ms == 0 && mail_is_on(request->config))
        return context_fail(request->context, IW_EMAIL_UNVERIFIED, NULL);
    if ((flags & ROUTE_OWNER) != 0 && user->role != USER_OWNER)
        return context_fail(request->context, IW_ROLE_REQUIRED, NULL);
    return IW_OK;
}

enum iw_error gate_authenticate(struct request *request)
{
    struct session *session = arena_alloc(request->arena, sizeof *session);
    const struct audit_client client = gate_client(request);
    enum iw_error error = session_find(request->domain, cookie_read(request), &client, session);
    if (error != IW_OK)
        return error;
    request->session = session;
    request->account = &session->account;
    request->context->account_id = session->account.id;
    error = csrf_check(request, session);
    return error == IW_OK ? role_check(request, session) : error;
}

enum iw_error gate_session(struct request *request, const struct session **session)
{
    struct session *found = arena_alloc(request->arena, sizeof *found);
    const struct audit_client client = gate_client(request);
    enum iw_error error = session_find(request->domain, cookie_read(request), &client, found);
    *session = error == IW_OK ? found : NULL;
    if (error != IW_SESSION_REQUIRED)
        return error;
    context_clear(request->context);
    return IW_OK;
}
