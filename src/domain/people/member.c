#include "domain/people/member.h"

#include "base/clock.h"
#include "base/message.h"
#include "db/invitations.h"
#include "db/sessions.h"
#include "db/transaction.h"
#include "db/users.h"
#include "domain/people/mail.h"
#include "domain/people/throttle.h"
#include "domain/people/token.h"
#include "service/secret/password.h"

enum { hour_s = 60 * 60, day_s = 24 * hour_s };

enum iw_error member_list(struct domain *domain, int64_t account_id, struct member_rows *rows)
{
    enum iw_error error = users_of_account(&domain->db, account_id, &rows->users, &rows->user_count);
    if (error == IW_OK)
        error = keys_of_users(&domain->db, account_id, clock_now_ms(), &rows->keys, &rows->key_count);
    return error == IW_OK ? invitations_list(&domain->db, account_id, clock_now_ms(), &rows->invitations,
                                             &rows->invitation_count)
                          : error;
}

/* ---- invitations ---- */

static enum iw_error invitations_refuse(struct context *context, unsigned wait_s, const char *sentence)
{
    context->retry_after_s = wait_s;
    context->reason = "invitations";
    return context_fail(context, IW_USAGE_LIMIT_EXCEEDED, "%s", sentence);
}

/* What an account may send.  The operator's users have no limit. */
static enum iw_error invitations_check(struct domain *domain, const struct member_invitation *given)
{
    int64_t open = 0, most = domain->config->console_invitations_max;
    unsigned wait_s = 0;
    struct arena *arena = domain->context->arena;
    enum iw_error error =
        invitations_count(&domain->db, given->account_id, given->email, clock_now_ms(), &open);
    if (error != IW_OK || given->is_unlimited)
        return error;
    if (open >= most)
        return invitations_refuse(domain->context, hour_s,
                                  arena_printf(arena, message_invitations_open, (long long)open));
    error = throttle_spend(domain, arena_printf(arena, "invitations:%lld", (long long)given->account_id),
                           most, day_s, &wait_s);
    if (error == IW_OK && wait_s > 0)
        return invitations_refuse(domain->context, wait_s,
                                  arena_printf(arena,
                                               "The account sent %lld invitations today; try again in %u s.",
                                               (long long)most, wait_s));
    if (error == IW_OK && mail_is_on(domain->config))
        error = throttle_spend(
            domain, arena_printf(arena, "invitation:%lld:%s", (long long)given->account_id, given->email), 1,
            hour_s, &wait_s);
    if (error == IW_OK && wait_s > 0)
        return invitations_refuse(
            domain->context, wait_s,
            arena_printf(arena, "This address was invited a moment ago; try again in %u s.", wait_s));
    return error;
}

/* Writes the invitation and its mail. */
static enum iw_error invite_write(struct domain *domain, const struct member_invitation *given, int64_t *id,
                                  const char **link)
{
    uint8_t digest[32];
    int64_t now_ms = clock_now_ms();
    const struct invitation row = {.account_id = given->account_id,
                                   .email = given->email,
                                   .role = given->role,
                                   .created_ms = now_ms,
                                   .expires_ms = now_ms + domain->config->console_invitation_s * 1000};
    struct arena *arena = domain->context->arena;
    *link = token_link(arena, domain->config, "invitation", token_new(arena, digest));
    const struct mail mail = {.kind = MAIL_INVITATION,
                              .language = given->language,
                              .recipient = given->email,
                              .values = {*link, given->account_name}};
    enum iw_error error = invitations_check(domain, given);
    if (error == IW_OK)
        error = invitations_insert(&domain->db, &row, digest, id);
    if (error == IW_OK)
        error = mail_queue(domain, &mail);
    return error == IW_OK ? audit_add(domain, given->actor, "memberInvited", "email", given->email, "role",
                                      user_role_name(given->role), NULL)
                          : error;
}

enum iw_error member_invite(struct domain *domain, const struct member_invitation *invitation, int64_t *id,
                            const char **link)
{
    struct user known = {.id = 0};
    *id = 0;
    *link = NULL;
    bool is_known = false;
    enum iw_error error = users_find_by_email(&domain->db, invitation->email, &known, &is_known);
    if (error != IW_OK)
        return error;
    if (is_known && known.account.id == invitation->account_id) {
        context_detail(domain->context, "email", message_already_member);
        return context_validated(domain->context);
    }
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = invite_write(domain, invitation, id, link);
    }
    if (mail_is_on(domain->config))
        *link = NULL;
    return error;
}

enum iw_error member_uninvite(struct domain *domain, const struct session *session, int64_t id,
                              const struct audit_client *client)
{
    int64_t count = 0;
    const struct audit_actor actor = audit_actor_of(&session->user, client);
    enum iw_error error = invitations_delete(&domain->db, session->account.id, id, &count);
    if (error == IW_OK && count == 0)
        return context_fail(domain->context, IW_RESOURCE_NOT_FOUND,
                            "Your account has no invitation with this id.");
    return error == IW_OK ? audit_add(domain, &actor, "invitationDeleted", NULL) : error;
}

enum iw_error member_inspect(struct domain *domain, const char *token, struct invitation *invitation)
{
    uint8_t digest[32];
    token_digest(token, digest);
    bool is_found = false;
    enum iw_error error = invitations_find(&domain->db, digest, clock_now_ms(), invitation, &is_found);
    return error == IW_OK && !is_found ? context_fail(domain->context, IW_TOKEN_INVALID, NULL) : error;
}

/* A user of this address that was never verified: the owner of the address has the invitation. */
static enum iw_error stranger_remove(struct domain *domain, const char *email)
{
    struct user stranger;
    bool is_found = false;
    enum iw_error error = users_find_by_email(&domain->db, email, &stranger, &is_found);
    return error == IW_OK && is_found ? user_unverified_remove(domain, stranger.id) : error;
}

/* Uses up the invitation and writes the user, whose name and password are set; sets the rest. */
static enum iw_error accept_write(struct domain *domain, const char *token, const struct audit_client *client,
                                  struct user *user)
{
    struct invitation invitation;
    int64_t count = 0, now_ms = clock_now_ms();
    enum iw_error error = member_inspect(domain, token, &invitation);
    if (error == IW_OK)
        error = invitations_delete(&domain->db, invitation.account_id, invitation.id, &count);
    if (error == IW_OK && count == 0)
        return context_fail(domain->context, IW_TOKEN_INVALID, NULL);
    if (error != IW_OK)
        return error;
    user->account.id = invitation.account_id;
    user->email = invitation.email;
    user->role = invitation.role;
    user->email_verified_ms = now_ms;
    error = stranger_remove(domain, user->email);
    if (error == IW_OK)
        error = users_insert(&domain->db, user, now_ms, &user->id);
    if (error == IW_TWIN_EXISTS) {
        context_clear(domain->context);
        return context_fail(domain->context, IW_VALIDATION_FAILED, message_user_elsewhere, user->email);
    }
    const struct audit_actor actor = audit_actor_of(user, client);
    return error == IW_OK ? audit_add(domain, &actor, "invitationAccepted", "email", user->email, NULL)
                          : error;
}

enum iw_error member_accept(struct domain *domain, const char *token, const struct user_entry *entry,
                            const struct audit_client *client, struct user *user)
{
    struct invitation invitation;
    *user = (struct user){.name = entry->name};
    enum iw_error error = member_inspect(domain, token, &invitation);
    if (error == IW_OK)
        error = password_hash(domain->context, domain->config, entry->password, &user->password_hash);
    if (error != IW_OK)
        return error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = accept_write(domain, token, client, user);
    }
    return error == IW_OK ? user_find(domain, user->id, user) : error;
}

/* ---- members ---- */

/*
 * Locks a member of the account, and the rows of its owners. RESOURCE_NOT_FOUND. LAST_OWNER if the change
 * would remove the role of the last owner.
 */
static enum iw_error member_lock(struct domain *domain, int64_t account_id, int64_t user_id, bool stays_owner,
                                 struct user *user)
{
    int64_t owners = 0;
    bool is_found = false;
    enum iw_error error = users_lock(&domain->db, user_id, user, &is_found);
    if (error == IW_OK && (!is_found || user->account.id != account_id))
        return context_fail(domain->context, IW_RESOURCE_NOT_FOUND,
                            "Your account has no member with this id.");
    if (error == IW_OK)
        error = users_owners_lock(&domain->db, account_id, &owners);
    bool is_owner = error == IW_OK && user->role == USER_OWNER && !user->is_disabled;
    return is_owner && !stays_owner && owners <= 1 ? context_fail(domain->context, IW_LAST_OWNER, NULL)
                                                   : error;
}

enum iw_error member_role_set(struct domain *domain, const struct session *session, int64_t user_id,
                              enum user_role role, const struct audit_client *client)
{
    enum iw_error error;
    const struct audit_actor actor = audit_actor_of(&session->user, client);
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        struct user user;
        error = member_lock(domain, session->account.id, user_id, role == USER_OWNER, &user);
        if (error == IW_OK)
            error = users_role_set(&domain->db, user_id, role);
        if (error == IW_OK)
            error = audit_add(domain, &actor, "roleChanged", "email", user.email, "role",
                              user_role_name(role), NULL);
    }
    return error;
}

enum iw_error member_remove(struct domain *domain, const struct session *session, int64_t user_id,
                            bool are_keys_revoked, const struct audit_client *client)
{
    enum iw_error error;
    int64_t account_id = session->account.id;
    const struct audit_actor actor = audit_actor_of(&session->user, client);
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        struct user user;
        int64_t keys = 0;
        error = member_lock(domain, account_id, user_id, false, &user);
        if (error == IW_OK)
            error = users_delete(&domain->db, user_id);
        if (error == IW_OK && are_keys_revoked)
            error = keys_revoke_of_user(&domain->db, account_id, user_id, clock_now_ms(), &keys);
        if (error == IW_OK)
            error = audit_add(domain, &actor, "memberRemoved", "email", user.email, "revokedKeys",
                              arena_printf(domain->context->arena, "%lld", (long long)keys), NULL);
    }
    return error;
}

enum iw_error member_flags_set(struct domain *domain, const struct user *user,
                               const struct member_flags *flags, const struct audit_actor *actor)
{
    enum iw_error error;
    struct audit_actor of_account = *actor;
    of_account.account_id = user->account.id;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        struct user now = *user;
        bool is_found = false;
        error = users_lock(&domain->db, user->id, &now, &is_found);
        if (error == IW_OK && !is_found)
            error = context_fail(domain->context, IW_RESOURCE_NOT_FOUND, "No user has this id.");
        bool is_admin = flags->is_admin >= 0 ? flags->is_admin != 0 : now.is_admin;
        bool is_disabled = flags->is_disabled >= 0 ? flags->is_disabled != 0 : now.is_disabled;
        if (error == IW_OK)
            error = users_flags_set(&domain->db, now.id, is_admin, is_disabled);
        if (error == IW_OK && is_disabled)
            error = sessions_end_others(&domain->db, now.id, 0);
        if (error == IW_OK && is_admin != now.is_admin)
            error = audit_add(domain, &of_account, is_admin ? "adminGranted" : "adminRevoked", "email",
                              now.email, NULL);
        if (error == IW_OK && is_disabled != now.is_disabled)
            error = audit_add(domain, &of_account, is_disabled ? "userDisabled" : "userEnabled", "email",
                              now.email, NULL);
    }
    return error;
}
