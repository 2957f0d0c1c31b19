/*
 * The console's authentication: the session of the cookie, the CSRF token, the role that a route needs.
 *
 * Every request that changes anything must come from the console's page.  A browser states that with
 * Sec-Fetch-Site or Origin.  With a session it also needs the CSRF token, without one the type
 * application/json: a form of another origin can send neither.
 */
#ifndef CONSOLE_GATE_H
#define CONSOLE_GATE_H

#include "domain/people/session.h"
#include "domain/people/sign_in.h"
#include "http/request.h"

/* Of struct edge: guard and authenticate.  CSRF_TOKEN_INVALID; SESSION_REQUIRED, ROLE_REQUIRED, and others.
 */
enum iw_error gate_guard(struct request *request) IW_MUST_USE;
enum iw_error gate_authenticate(struct request *request) IW_MUST_USE;

/* Address and browser of the client, for session and audit log. */
struct audit_place gate_place(const struct request *request);

/* The session of an open route, or NULL; an error only when the database is away. */
enum iw_error gate_session(struct request *request, const struct session **session) IW_MUST_USE;

/* Sets the session's cookie; token NULL: deletes it. */
void gate_cookie_set(struct request *request, const char *token);

#endif
