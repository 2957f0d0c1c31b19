/*
 * Sessions of the console.
 *
 * A session is a token of 256 random bits in a cookie.  Each sign-in makes a new token: a token that a
 * client had before is never taken over.  A session ends after console.session_idle_s without a request and
 * after console.session_s.  The CSRF token is a digest of the session token: a page of another origin can
 * neither read the cookie nor compute the CSRF token.
 */
#ifndef DOMAIN_PEOPLE_SESSION_H
#define DOMAIN_PEOPLE_SESSION_H

#include <stdint.h>

#include "domain/domain.h"
#include "domain/people/audit.h"
#include "model/user.h"

struct session {
    int64_t id;
    struct user user;
    struct account account; /* for the handlers of orders: channel web, the limits of the console */
    const char *csrf_token;
};

/* A session that was just opened; the token is for the cookie. */
struct session_new {
    const char *token;
    struct session session;
};

/*
 * Counts a sign-in of a user.  SIGN_IN_LIMITED if there are too many in a day.  A reset of the password
 * clears the count.
 */
enum iw_error session_admit(const struct domain *domain, int64_t user_id) IW_MUST_USE;
enum iw_error session_admit_clear(const struct domain *domain, int64_t user_id) IW_MUST_USE;

/*
 * Opens a session in the caller's transaction. A user has at most 100 sessions; beyond that, the oldest
 * sessions end.
 */
enum iw_error session_open(const struct domain *domain, const struct user *user,
                           const struct audit_client *client, struct session_new *fresh) IW_MUST_USE;

/* The same after a change of password or second factor: all sessions of the user end before. */
enum iw_error session_renew(const struct domain *domain, const struct user *user,
                            const struct audit_client *client, struct session_new *fresh) IW_MUST_USE;

/*
 * Finds the session of a token and notes the use, at most once a minute. SESSION_REQUIRED, also if the
 * token is NULL.
 */
enum iw_error session_find(struct domain *domain, const char *token, const struct audit_client *client,
                           struct session *session) IW_MUST_USE;

/* One page of the sessions of a user that have not ended; the arena owns it. */
struct session_rows {
    struct user_session *items;
    size_t count;
    int64_t total;
};
enum iw_error session_list(struct domain *domain, int64_t user_id, int64_t limit, int64_t offset,
                           struct session_rows *rows) IW_MUST_USE;

/* Ends a session of the user; RESOURCE_NOT_FOUND. */
enum iw_error session_end(struct domain *domain, const struct session *session, int64_t id,
                          const struct audit_client *client) IW_MUST_USE;

/* Ends the other sessions of the user. */
enum iw_error session_end_others(struct domain *domain, const struct session *session,
                                 const struct audit_client *client) IW_MUST_USE;

#endif
