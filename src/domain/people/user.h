/*
 * Users of the console: rules for their fields, sign-up, password change and reset, profile, verification of
 * the address.  Sign-in is in sign_in.h, the second factor in second_factor.h, members of an account in
 * member.h.
 */
#ifndef DOMAIN_PEOPLE_USER_H
#define DOMAIN_PEOPLE_USER_H

#include <stddef.h>

#include "domain/people/session.h"

enum {
    /*
     * OWASP Authentication Cheat Sheet: at least 8 with a second factor, 15 without; here the second factor
     * is optional.
     */
    user_password_code_points_min = 12,
    user_password_code_points_max = 256,
    user_name_code_points_max = 100
};

/*
 * Reads an address as it was typed (typed_word): printable ASCII with one "@".  The lower-case address, or
 * NULL and a detail.
 */
const char *user_email_read(struct context *context, const char *field, const char *text);

/* True for a password of an allowed length that is neither the address nor common; otherwise a detail. */
bool user_password_check(struct context *context, const char *field, const char *password, const char *email);

/* What a person enters to become a user. */
struct user_entry {
    const char *email;
    const char *name;
    const char *password;
    const char *account_name; /* sign-up only */
};

/*
 * Makes an account and its owner.  With mail: *is_open is false, the user must verify the address, and an
 * address that has a user gets a mail instead, with the same answer.  VALIDATION_FAILED if the name of the
 * account, or without mail the address, is in use.  SIGN_UP_CLOSED.
 */
enum iw_error user_sign_up(struct domain *domain, const struct user_entry *entry,
                           const struct audit_client *client, bool *is_open, struct user *user) IW_MUST_USE;

/*
 * Deletes a user whose address was never verified, with the account: another client may have signed up with
 * the address. No effect if the account has orders, keys or other users, or without mail.
 */
enum iw_error user_unverified_remove(const struct domain *domain, int64_t user_id) IW_MUST_USE;

/* Sends the link that verifies the address; no effect if it is verified. */
enum iw_error user_verify_send(struct domain *domain, const struct user *user,
                               const struct audit_client *client) IW_MUST_USE;
enum iw_error user_verify(struct domain *domain, const char *token,
                          const struct audit_client *client) IW_MUST_USE;

/*
 * Sends the link that sets a password, if the address has a user.  The answer is the same without one.
 * Repeated requests for an address are ignored for a growing time.
 */
enum iw_error user_forgot(struct domain *domain, const char *email,
                          const struct audit_client *client) IW_MUST_USE;

/* Makes a token that sets a password, for the operator. */
enum iw_error user_reset_token(struct domain *domain, const struct user *user,
                               const char **token) IW_MUST_USE;

/* Sets the password of a token's user and ends the sessions.  TOKEN_INVALID; VALIDATION_FAILED. */
enum iw_error user_reset(struct domain *domain, const char *token, const char *password,
                         const struct audit_client *client) IW_MUST_USE;

/* Sets a password, ends all sessions and opens a new one.  The caller has checked the current password. */
enum iw_error user_password_set(struct domain *domain, const struct user *user, const char *password,
                                const struct audit_client *client, struct session_new *fresh) IW_MUST_USE;

enum iw_error user_profile_set(struct domain *domain, const struct session *session, const char *name,
                               enum user_language language, const struct audit_client *client) IW_MUST_USE;

/* Deletes some rows that have ended or exceed a bound; *count gets the number of rows. */
enum iw_error user_forget(struct domain *domain, int64_t *count) IW_MUST_USE;

/* Finds a user of any account. RESOURCE_NOT_FOUND. */
enum iw_error user_find(const struct domain *domain, int64_t id, struct user *user) IW_MUST_USE;

/* ---- changes that follow a proof ---- */

/*
 * A password or a code is verified on a copy of the user's row, and a hash takes a tenth of a second.  The
 * transaction that acts locks the row and compares what was verified: hash, second factor, disabled. So a
 * request that began before a change of these has no effect after it.
 *
 * Locks the user's row in the caller's transaction.  action is the key of the fault point before it.
 * SESSION_REQUIRED if the user is no longer the one that was verified.
 */
enum iw_error user_verified_lock(const struct domain *domain, const struct user *user,
                                 const char *action) IW_MUST_USE;

#endif
