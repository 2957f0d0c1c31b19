#include "domain/people/sign_in.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/message.h"
#include "db/audit.h"
#include "db/tokens.h"
#include "db/transaction.h"
#include "db/users.h"
#include "domain/people/mail.h"
#include "domain/people/second_factor.h"
#include "domain/people/throttle.h"
#include "domain/people/token.h"
#include "domain/people/user.h"
#include "service/secret/password.h"

/* A mail to a user who signs in from a network for the first time, but not at the very first sign-in. */
static enum iw_error network_notice(struct domain *domain, const struct user *user,
                                    const struct audit_client *client)
{
    bool is_known = true;
    /* A client that signed up with another person's address must not cause mails to that address. */
    if (user->last_sign_in_ms == 0 || user->email_verified_ms == 0 || !mail_is_on(domain->config))
        return IW_OK;
    enum iw_error error = audit_network_known(domain, user->id, client, &is_known);
    if (error != IW_OK || is_known)
        return error;
    const struct mail mail = {.kind = MAIL_NEW_PLACE,
                              .language = user->language,
                              .recipient = user->email,
                              .values = {client->address, client->user_agent}};
    return mail_queue(domain, &mail);
}

static enum iw_error open_write(struct domain *domain, const struct user *user,
                                const struct audit_client *client, struct session_new *fresh)
{
    const struct audit_actor actor = audit_actor_of(user, client);
    enum iw_error error = session_admit(domain, user->id);
    if (error == IW_OK)
        error = network_notice(domain, user, client);
    if (error == IW_OK)
        error = session_open(domain, user, client, fresh);
    if (error == IW_OK)
        error = users_signed_in(&domain->db, user->id, clock_now_ms());
    return error == IW_OK ? audit_add(domain, &actor, "signedIn", "network",
                                      throttle_network(domain->context->arena, client->address), NULL)
                          : error;
}

enum iw_error sign_in_new(struct domain *domain, const struct user *user, const struct audit_client *client,
                          struct sign_in *sign_in)
{
    enum iw_error error;
    sign_in->challenge = NULL;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = open_write(domain, user, client, &sign_in->fresh);
    }
    return error;
}

/* Records the failure, also of an address without a user. */
static enum iw_error refuse(struct domain *domain, const struct user *user, const char *email,
                            const struct audit_client *client)
{
    struct audit_actor actor = {.address = client->address};
    if (user->id != 0)
        actor = audit_actor_of(user, client);
    enum iw_error error = audit_add(domain, &actor, "signInFailed", "email", email, NULL);
    return error == IW_OK ? context_fail(domain->context, IW_SIGN_IN_FAILED, NULL) : error;
}

/*
 * After a change of the parameters of the hash.  *is_right is false if the user has another password by
 * now.
 */
static enum iw_error hash_renew(struct domain *domain, struct user *user, const char *password,
                                bool *is_right)
{
    const char *hash;
    if (!password_is_outdated(domain->config, user->password_hash))
        return IW_OK;
    enum iw_error error = password_hash(domain->context, domain->config, password, &hash);
    fault_point(FAULT_USER_VERIFIED, "hash_renew");
    if (error == IW_OK)
        error = users_password_renew(&domain->db, user->id, user->password_hash, hash, is_right);
    user->password_hash = hash;
    return error;
}

/* True if password or code are no longer those of the user: they are wrong like any other. */
static bool is_changed(struct domain *domain, enum iw_error error)
{
    bool is_wrong = error == IW_SESSION_REQUIRED || error == IW_SIGN_IN_FAILED;
    if (is_wrong)
        context_clear(domain->context);
    return is_wrong;
}

/* The password is right: a challenge for the second factor, or a session. */
static enum iw_error password_accept(struct domain *domain, const struct user *user,
                                     const struct audit_client *client, struct sign_in *sign_in)
{
    enum iw_error error;
    bool has_factor = user->totp_enabled_ms != 0;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = user_verified_lock(domain, user, has_factor ? "challenge" : "sign_in");
        if (error == IW_OK && has_factor)
            error = token_make(domain, user->id, TOKEN_CHALLENGE, &sign_in->challenge);
        else if (error == IW_OK)
            error = open_write(domain, user, client, &sign_in->fresh);
    }
    return error;
}

enum iw_error sign_in_password(struct domain *domain, const char *email, const char *password,
                               const struct audit_client *client, struct sign_in *sign_in)
{
    struct user user = {.id = 0};
    sign_in->challenge = NULL;
    struct throttle_try attempt = {"", email, client->address, false};
    bool is_found = false;
    enum iw_error error = users_find_by_email(&domain->db, email, &user, &is_found);
    if (error == IW_OK)
        error = audit_network_known(domain, user.id, client, &attempt.is_known);
    if (error == IW_OK)
        error = throttle_enter(domain, &attempt);
    if (error != IW_OK)
        return error;
    bool is_right =
        password_verify(domain->context, domain->config, is_found ? user.password_hash : NULL, password);
    if (!is_right || user.is_disabled)
        return refuse(domain, &user, email, client);
    error = hash_renew(domain, &user, password, &is_right);
    if (error == IW_OK && is_right)
        error = password_accept(domain, &user, client, sign_in);
    if ((error == IW_OK && !is_right) || is_changed(domain, error))
        return refuse(domain, &user, email, client);
    return error == IW_OK && user.totp_enabled_ms == 0 ? throttle_clear(domain, &attempt) : error;
}

enum iw_error sign_in_code(struct domain *domain, const char *challenge, const char *code,
                           const struct audit_client *client, struct sign_in *sign_in)
{
    struct user user = {.id = 0};
    sign_in->challenge = NULL;
    struct throttle_try attempt = {"", NULL, client->address, false};
    enum iw_error error = token_find(domain, TOKEN_CHALLENGE, challenge, &user);
    attempt.user_name = user.email;
    if (error == IW_OK)
        error = audit_network_known(domain, user.id, client, &attempt.is_known);
    if (error == IW_OK)
        error = throttle_enter(domain, &attempt);
    /* A refused attempt takes none of the challenge's codes. */
    if (error == IW_OK)
        error = token_take(domain, TOKEN_CHALLENGE, challenge, &user);
    if (error != IW_OK)
        return error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = user_verified_lock(domain, &user, "second_factor");
        /* A wrong code changes nothing. */
        if (error == IW_OK)
            error = second_factor_take(domain, &user, code, client);
        if (error == IW_OK)
            error = tokens_delete(&domain->db, user.id, TOKEN_CHALLENGE);
        if (error == IW_OK)
            error = open_write(domain, &user, client, &sign_in->fresh);
    }
    if (is_changed(domain, error))
        return refuse(domain, &user, user.email, client);
    return error == IW_OK ? throttle_clear(domain, &attempt) : error;
}

enum iw_error sign_in_confirm(struct domain *domain, const struct session *session, const char *field,
                              const char *password)
{
    enum iw_error error = throttle_session_enter(domain, session->id);
    if (error != IW_OK)
        return error;
    if (!password_verify(domain->context, domain->config, session->user.password_hash, password)) {
        context_detail(domain->context, field, message_password_wrong);
        return context_validated(domain->context);
    }
    return throttle_session_clear(domain, session->id);
}
