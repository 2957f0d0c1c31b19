/*
 * Sign-in: password, then the second factor if the user has one.
 *
 * Each attempt is counted first (throttle.h), then costs one Argon2id hash and one row of the audit log. This
 * is the same for an address without a user, so neither the answer nor the time shows which addresses have
 * users.
 */
#ifndef DOMAIN_PEOPLE_SIGN_IN_H
#define DOMAIN_PEOPLE_SIGN_IN_H

#include "domain/people/session.h"

/* The outcome: an open session, or the challenge of the second factor. */
struct sign_in {
    const char *challenge; /* NULL if the session is open */
    struct session_new fresh;
};

/* email is in lower case.  SIGN_IN_FAILED, SIGN_IN_LIMITED. */
enum iw_error sign_in_password(struct domain *domain, const char *email, const char *password,
                               const struct audit_client *client, struct sign_in *sign_in) IW_MUST_USE;

/*
 * Takes the challenge and a code.  TOKEN_INVALID if the challenge has ended; SIGN_IN_FAILED if the code is
 * wrong.
 */
enum iw_error sign_in_code(struct domain *domain, const char *challenge, const char *code,
                           const struct audit_client *client, struct sign_in *sign_in) IW_MUST_USE;

/* Opens a session without a password: after a sign-up or an invitation. */
enum iw_error sign_in_new(struct domain *domain, const struct user *user, const struct audit_client *client,
                          struct sign_in *sign_in) IW_MUST_USE;

/* Checks the password of a signed-in user again, before a change.  VALIDATION_FAILED with the field. */
enum iw_error sign_in_confirm(struct domain *domain, const struct session *session, const char *field,
                              const char *password) IW_MUST_USE;

#endif
