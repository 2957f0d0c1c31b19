#include "domain/people/user.h"

#include <ctype.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/mailbox.h"
#include "base/message.h"
#include "base/text.h"
#include "db/accounts.h"
#include "db/attempts.h"
#include "db/audit.h"
#include "db/bounds.h"
#include "db/erasure.h"
#include "db/invitations.h"
#include "db/sessions.h"
#include "db/tokens.h"
#include "db/transaction.h"
#include "db/users.h"
#include "domain/people/mail.h"
#include "domain/people/throttle.h"
#include "domain/people/token.h"
#include "service/secret/common_password.h"
#include "service/secret/password.h"
#include "service/secret/typed.h"

static const int64_t day_ms = 24 * 60 * 60 * 1000;

enum iw_error user_find(const struct domain *domain, int64_t id, struct user *user)
{
    bool is_found = false;
    enum iw_error error = users_find(&domain->db, id, user, &is_found);
    return error == IW_OK && !is_found
               ? context_fail(domain->context, IW_RESOURCE_NOT_FOUND, "No user has this id.")
               : error;
}

/* True if the user has the password and the second factor that were verified, and may still sign in. */
static bool is_as_verified(const struct user *now, const struct user *verified)
{
    const char *hash = now->password_hash, *verified_hash = verified->password_hash;
    size_t size = now->totp_sealed != NULL ? now->totp_sealed_size : 0;
    size_t verified_size = verified->totp_sealed != NULL ? verified->totp_sealed_size : 0;
    bool is_same_hash =
        hash == NULL || verified_hash == NULL ? hash == verified_hash : strcmp(hash, verified_hash) == 0;
    return is_same_hash && now->totp_enabled_ms == verified->totp_enabled_ms && size == verified_size &&
           (size == 0 || memcmp(now->totp_sealed, verified->totp_sealed, size) == 0) &&
           now->is_disabled == verified->is_disabled;
}

enum iw_error user_verified_lock(const struct domain *domain, const struct user *user, const char *action)
{
    struct user now;
    fault_point(FAULT_USER_VERIFIED, action);
    (void)action;
    bool is_found = false;
    enum iw_error error = users_lock(&domain->db, user->id, &now, &is_found);
    if (error != IW_OK || (is_found && is_as_verified(&now, user)))
        return error;
    return context_fail(domain->context, IW_SESSION_REQUIRED,
                        "Your password or second factor has been changed meanwhile; sign in again.");
}

/* ---- fields ---- */

const char *user_email_read(struct context *context, const char *field, const char *text)
{
    text = typed_word(context->arena, text);
    if (!mailbox_address_is_sound(text)) {
        context_detail(context, field, message_no_email);
        return NULL;
    }
    char *lower = arena_text(context->arena, text);
    for (char *byte = lower; *byte != '\0'; byte++)
        *byte = (char)tolower((unsigned char)*byte);
    return lower;
}

bool user_password_check(struct context *context, const char *field, const char *password, const char *email)
{
    password = typed_password(context->arena, password);
    size_t count = text_code_points(password, strlen(password));
    if (count < user_password_code_points_min || count > user_password_code_points_max) {
        context_detail(context, field, message_length, count, (size_t)user_password_code_points_min,
                       (size_t)user_password_code_points_max);
        return false;
    }
    if (email != NULL && text_equal_nocase(password, email)) {
        context_detail(context, field, message_password_is_email);
        return false;
    }
    if (!common_password_is(context->arena, password))
        return true;
    context_detail(context, field, message_password_common);
    return false;
}

/*
 * Counts a request that makes mails or accounts, per user and per network. These counters are separate, so
 * they never make a sign-in wait.
 */
static enum iw_error request_count(struct domain *domain, const char *what, const char *email,
                                   const struct audit_client *client)
{
    const struct throttle_try attempt = {what, email, client->address, false};
    return throttle_enter(domain, &attempt);
}

/* ---- sign-up ---- */

static enum iw_error verify_queue(const struct domain *domain, const struct user *user)
{
    const char *token;
    enum iw_error error = token_make(domain, user->id, TOKEN_VERIFY, &token);
    if (error != IW_OK)
        return error;
    const struct mail mail = {
        .kind = MAIL_VERIFY,
        .language = user->language,
        .recipient = user->email,
        .values = {token_link(domain->context->arena, domain->config, "verify", token)}};
    return mail_queue(domain, &mail);
}

static enum iw_error name_taken(struct context *context)
{
    context_clear(context);
    context_detail(context, "accountName", message_name_in_use);
    return context_validated(context);
}

/* Writes the account, the user and its mail.  user gets its id and that of the account. */
static enum iw_error sign_up_write(struct domain *domain, const char *account_name,
                                   const struct audit_client *client, struct user *user)
{
    const struct db *db = &domain->db;
    enum iw_error error = accounts_create(db, account_name, domain->config->console_sign_up_plan,
                                          clock_now_ms(), &user->account.id);
    if (error == IW_TWIN_EXISTS)
        return name_taken(domain->context);
    if (error == IW_OK)
        error = users_insert(db, user, clock_now_ms(), &user->id);
    if (error == IW_OK && mail_is_on(domain->config))
        error = verify_queue(domain, user);
    const struct audit_actor actor = audit_actor_of(user, client);
    return error == IW_OK ? audit_add(domain, &actor, "signedUp", "email", user->email, NULL) : error;
}

/* The address has a user: the owner of the address gets a mail, and the client the answer of a new user. */
static enum iw_error address_known(struct domain *domain, const struct user *user, const char *field)
{
    if (!mail_is_on(domain->config)) {
        context_detail(domain->context, field, message_email_in_use);
        return context_validated(domain->context);
    }
    const struct mail mail = {
        .kind = MAIL_ADDRESS_KNOWN,
        .language = user->language,
        .recipient = user->email,
        .values = {arena_printf(domain->context->arena, "%s/console/", domain->config->api_public_url)}};
    return mail_queue(domain, &mail);
}

/* ---- unverified users ---- */

enum iw_error user_unverified_remove(const struct domain *domain, int64_t user_id)
{
    struct user user;
    bool is_used = true;
    const struct db *db = &domain->db;
    bool is_found = false;
    enum iw_error error = users_lock(db, user_id, &user, &is_found);
    if (error == IW_OK && is_found)
        error = accounts_is_used(db, user.account.id, user_id, &is_used);
    if (error != IW_OK || is_used || user.email_verified_ms != 0 || !mail_is_on(domain->config))
        return error;
    error = users_delete(db, user_id);
    return error == IW_OK ? erasure_schedule(db, user.account.id, clock_now_ms()) : error;
}

/* Frees the addresses of sign-ups that were not verified within a day. */
static enum iw_error unverified_forget(struct domain *domain)
{
    struct query_ids ids = {.count = 0};
    if (!mail_is_on(domain->config))
        return IW_OK;
    enum iw_error error = users_unverified(&domain->db, clock_now_ms() - day_ms, &ids);
    for (size_t i = 0; error == IW_OK && i < ids.count; i++)
        for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
            error = user_unverified_remove(domain, ids.items[i]);
        }
    return error;
}

enum iw_error user_sign_up(struct domain *domain, const struct user_entry *entry,
                           const struct audit_client *client, bool *is_open, struct user *user)
{
    struct user known;
    bool is_taken = false, is_known = false;
    *user = (struct user){.role = USER_OWNER, .email = entry->email, .name = entry->name};
    *is_open = !mail_is_on(domain->config);
    if (strcmp(domain->config->console_sign_up, "open") != 0)
        return context_fail(domain->context, IW_SIGN_UP_CLOSED, NULL);
    enum iw_error error = request_count(domain, "sign-up", entry->email, client);
    if (error == IW_OK)
        error = password_hash(domain->context, domain->config, entry->password, &user->password_hash);
    if (error != IW_OK)
        return error;
    /* First, so that the answer does not show whether the address has a user. */
    error = accounts_name_is_taken(&domain->db, entry->account_name, &is_taken);
    if (error == IW_OK && is_taken)
        return name_taken(domain->context);
    if (error == IW_OK)
        error = unverified_forget(domain);
    if (error != IW_OK)
        return error;
    error = users_find_by_email(&domain->db, entry->email, &known, &is_known);
    if (error == IW_OK && is_known)
        return address_known(domain, &known, "email");
    if (error != IW_OK)
        return error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = sign_up_write(domain, entry->account_name, client, user);
    }
    return error == IW_OK ? user_find(domain, user->id, user) : error;
}

/* ---- verification ---- */

enum iw_error user_verify_send(struct domain *domain, const struct user *user,
                               const struct audit_client *client)
{
    const struct audit_actor actor = audit_actor_of(user, client);
    if (user->email_verified_ms != 0 || !mail_is_on(domain->config))
        return IW_OK;
    enum iw_error error = request_count(domain, "verify", user->email, client);
    if (error != IW_OK)
        return error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = verify_queue(domain, user);
        if (error == IW_OK)
            error = audit_add(domain, &actor, "verificationSent", NULL);
    }
    return error;
}

enum iw_error user_verify(struct domain *domain, const char *token, const struct audit_client *client)
{
    enum iw_error error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        struct user user;
        error = token_take(domain, TOKEN_VERIFY, token, &user);
        if (error == IW_OK)
            error = users_email_verified(&domain->db, user.id, clock_now_ms());
        if (error != IW_OK)
            continue;
        const struct audit_actor actor = audit_actor_of(&user, client);
        error = audit_add(domain, &actor, "emailVerified", "email", user.email, NULL);
    }
    return error;
}

/* ---- reset ---- */

/* Queues the mail with the link. is_known is true if the request comes from a network of the user. */
static enum iw_error reset_queue(struct domain *domain, const struct user *user, bool is_known)
{
    const char *token;
    enum iw_error error = token_make(domain, user->id, TOKEN_RESET, &token);
    if (error != IW_OK)
        return error;
    const struct mail mail = {.kind = MAIL_RESET,
                              .language = user->language,
                              .recipient = user->email,
                              .values = {token_link(domain->context->arena, domain->config, "reset", token)},
                              .is_known = is_known};
    return mail_queue(domain, &mail);
}

enum iw_error user_forgot(struct domain *domain, const char *email, const struct audit_client *client)
{
    struct user user = {.email = email};
    bool is_known = false, is_found = false;
    if (!mail_is_on(domain->config))
        return IW_OK;
    enum iw_error error = request_count(domain, "forgot", email, client);
    if (error == IW_SIGN_IN_LIMITED) {
        context_clear(domain->context);
        return IW_OK;
    }
    if (error == IW_OK)
        error = users_find_by_email(&domain->db, email, &user, &is_found);
    if (error == IW_OK && is_found)
        error = audit_network_known(domain, user.id, client, &is_known);
    if (error != IW_OK)
        return error;
    bool is_sent = is_found && !user.is_disabled;
    const struct audit_actor actor = {.account_id = is_sent ? user.account.id : 0,
                                      .address = client->address};
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        if (is_sent)
            error = reset_queue(domain, &user, is_known);
        if (error == IW_OK)
            error = audit_add(domain, &actor, "passwordForgotten", "email", user.email, NULL);
    }
    return error;
}

enum iw_error user_reset_token(struct domain *domain, const struct user *user, const char **token)
{
    enum iw_error error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = token_make(domain, user->id, TOKEN_RESET, token);
    }
    return error;
}

static enum iw_error reset_write(struct domain *domain, const char *token, const char *hash,
                                 const struct audit_client *client)
{
    struct user user = {.id = 0};
    const struct db *db = &domain->db;
    enum iw_error error = token_take(domain, TOKEN_RESET, token, &user);
    if (error == IW_OK)
        error = users_password_set(db, user.id, hash);
    /* The client that signed up did not own this address. */
    bool is_strange = mail_is_on(domain->config) && user.email_verified_ms == 0;
    if (error == IW_OK && is_strange)
        error = users_totp_set(db, user.id, NULL, 0);
    if (error == IW_OK && is_strange)
        error = tokens_codes_set(db, user.id, NULL, 0);
    /* The link came to the address, or from the operator. */
    if (error == IW_OK)
        error = users_email_verified(db, user.id, clock_now_ms());
    if (error == IW_OK)
        error = sessions_end_others(db, user.id, 0);
    if (error == IW_OK)
        error = tokens_delete(db, user.id, TOKEN_RESET);
    if (error == IW_OK)
        error = tokens_delete(db, user.id, TOKEN_CHALLENGE);
    /* Wrong passwords of others do not make the owner of the address wait. */
    const struct throttle_try attempt = {"", user.email, client->address, false};
    if (error == IW_OK)
        error = throttle_clear(domain, &attempt);
    if (error == IW_OK)
        error = session_admit_clear(domain, user.id);
    const struct audit_actor actor = audit_actor_of(&user, client);
    return error == IW_OK ? audit_add(domain, &actor, "passwordReset", NULL) : error;
}

enum iw_error user_reset(struct domain *domain, const char *token, const char *password,
                         const struct audit_client *client)
{
    const char *hash;
    struct user user = {.id = 0};
    if (!user_password_check(domain->context, "password", password, NULL))
        return context_validated(domain->context);
    enum iw_error error = token_find(domain, TOKEN_RESET, token, &user);
    if (error == IW_OK)
        error = password_hash(domain->context, domain->config, password, &hash);
    if (error != IW_OK)
        return error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = reset_write(domain, token, hash, client);
    }
    return error;
}

/* ---- changes by the user ---- */

enum iw_error user_password_set(struct domain *domain, const struct user *user, const char *password,
                                const struct audit_client *client, struct session_new *fresh)
{
    const char *hash;
    const struct audit_actor actor = audit_actor_of(user, client);
    const struct db *db = &domain->db;
    enum iw_error error = password_hash(domain->context, domain->config, password, &hash);
    if (error != IW_OK)
        return error;
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        error = user_verified_lock(domain, user, "password");
        if (error == IW_OK)
            error = users_password_set(db, user->id, hash);
        if (error == IW_OK)
            error = session_renew(domain, user, client, fresh);
        if (error == IW_OK)
            error = tokens_delete(db, user->id, TOKEN_RESET);
        if (error == IW_OK)
            error = tokens_delete(db, user->id, TOKEN_CHALLENGE);
        if (error == IW_OK)
            error = audit_add(domain, &actor, "passwordChanged", NULL);
    }
    return error;
}

enum iw_error user_profile_set(struct domain *domain, const struct session *session, const char *name,
                               enum user_language language, const struct audit_client *client)
{
    enum iw_error error;
    const struct user *user = &session->user;
    const struct audit_actor actor = audit_actor_of(user, client);
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = users_profile_set(&domain->db, user->id, name, language);
        if (error == IW_OK)
            error = audit_add(domain, &actor, "profileChanged", "before", user->name, "name", name,
                              "language", user_language_name(language), NULL);
    }
    return error;
}

enum iw_error user_forget(struct domain *domain, int64_t *count)
{
    int64_t of[6] = {0};
    const struct db *db = &domain->db;
    int64_t now_ms = clock_now_ms();
    enum iw_error error =
        sessions_forget(db, now_ms - domain->config->console_session_idle_s * 1000, now_ms, &of[0]);
    if (error == IW_OK)
        error = tokens_forget(db, now_ms, &of[1]);
    if (error == IW_OK)
        error = invitations_forget(db, now_ms, &of[2]);
    if (error == IW_OK)
        error = attempts_forget(db, now_ms - day_ms, &of[3]);
    if (error == IW_OK)
        error = audit_forget(db, now_ms - domain->config->console_audit_kept_days * day_ms, &of[4]);
    if (error == IW_OK)
        error = bounds_trim(db, BOUNDS_EVENTS, &of[5]);
    *count = of[0] + of[1] + of[2] + of[3] + of[4] + of[5];
    return error;
}
