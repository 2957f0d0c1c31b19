/*
 * The console's authentication: the session of the cookie, the CSRF token, the role that a route needs.
 *
 * Every request that changes anything must come from the console's page, which a browser states in
 * Sec-Fetch-Site or Origin. With a session, the request also needs the CSRF token; without a session, the
 * type application/json. A form of another origin can send neither.
 */
#ifndef CONSOLE_GATE_H
#define CONSOLE_GATE_H

#include "domain/people/session.h"
#include "domain/people/sign_in.h"
#include "http/request.h"

/*
 * The functions guard and authenticate of struct edge. CSRF_TOKEN_INVALID; SESSION_REQUIRED, ROLE_REQUIRED,
 * and others.
 */
enum iw_error gate_guard(struct request *request) IW_MUST_USE;
enum iw_error gate_authenticate(struct request *request) IW_MUST_USE;

/* Returns the address and the browser of the client, for session and audit log. */
struct audit_client gate_client(const struct request *request);

/*
 * Finds the session of a request on an open route; NULL if there is none. Fails only if the database is
 * unavailable.
 */
enum iw_error gate_session(struct request *request, const struct session **session) IW_MUST_USE;

/* Sets the session's cookie, or deletes it if token is NULL. */
void gate_cookie_set(struct request *request, const char *token);

#endif
