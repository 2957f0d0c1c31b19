#include "domain/member.h"

#include "base/clock.h"
#include "domain/mail.h"
#include "domain/throttle.h"
#include "domain/token.h"
#include "service/password.h"
#include "store/invitations.h"
#include "store/sessions.h"
#include "store/users.h"

enum { hour_s = 60 * 60, day_s = 24 * hour_s };

enum iw_error member_list(struct domain *domain, int64_t account_id, struct member_rows *rows)
{
    enum iw_error error = users_of_account(&domain->store, account_id, &rows->users, &rows->user_count);
    if (error == IW_OK)
        error = keys_of_users(&domain->store, account_id, clock_now_ms(), &rows->keys, &rows->key_count);
    return error == IW_OK ? invitations_list(&domain->store, account_id, clock_now_ms(), &rows->invitations,
                                             &rows->invitation_count)
                          : error;
}

/* ---- invitations ---- */

struct invite_work {
    const struct domain *domain;
    const struct member_invitation *invitation;
    int64_t id;
    const char *link;
};

static enum iw_error invitations_refuse(struct context *context, unsigned wait_s, const char *sentence)
{
    context->retry_after_s = wait_s;
    context->reason = "invitations";
    return context_fail(context, IW_USAGE_LIMIT_EXCEEDED, "%s", sentence);
}

/* What an account may send.  The operator's users have no limit. */
static enum iw_error invitations_check(const struct store *store, const struct invite_work *work)
{
    int64_t open = 0, most = work->domain->config->console_invitations_max;
    unsigned wait_s = 0;
    const struct member_invitation *given = work->invitation;
    struct arena *arena = store->context->arena;
    enum iw_error error = invitations_count(store, given->account_id, given->email, clock_now_ms(), &open);
    if (error != IW_OK || given->is_unlimited)
        return error;
    if (open >= most)
        return invitations_refuse(store->context, hour_s,
                                  arena_printf(arena,
                                               "The account has %lld open invitations, as many as it may; "
                                               "delete one that is not needed.",
                                               (long long)open));
    error = throttle_spend(store, arena_printf(arena, "invitations:%lld", (long long)given->account_id), most,
                           day_s, &wait_s);
    if (error == IW_OK && wait_s > 0)
        return invitations_refuse(store->context, wait_s,
                                  arena_printf(arena,
                                               "The account sent %lld invitations today; try again in %u s.",
                                               (long long)most, wait_s));
    if (error == IW_OK && mail_is_on(work->domain->config))
        error = throttle_spend(
            store, arena_printf(arena, "invitation:%lld:%s", (long long)given->account_id, given->email), 1,
            hour_s, &wait_s);
    if (error == IW_OK && wait_s > 0)
        return invitations_refuse(
            store->context, wait_s,
            arena_printf(arena, "This address was invited a moment ago; try again in %u s.", wait_s));
    return error;
}

static enum iw_error invite_run(const struct store *store, void *argument)
{
    uint8_t digest[32];
    struct invite_work *work = argument;
    const struct member_invitation *given = work->invitation;
    struct arena *arena = store->context->arena;
    int64_t now_ms = clock_now_ms();
    const struct invitation row = {.account_id = given->account_id,
                                   .email = given->email,
                                   .role = given->role,
                                   .created_ms = now_ms,
                                   .expires_ms = now_ms + work->domain->config->console_invitation_s * 1000};
    work->link = token_link(arena, work->domain->config, "invitation", token_new(arena, digest));
    const struct mail mail = {.kind = MAIL_INVITATION,
                              .language = given->language,
                              .recipient = given->email,
                              .values = {work->link, given->account_name}};
    enum iw_error error = invitations_check(store, work);
    if (error == IW_OK)
        error = invitations_insert(store, &row, digest, &work->id);
    if (error == IW_OK)
        error = mail_queue(work->domain, store, &mail);
    return error == IW_OK ? audit_add(store, given->actor, "memberInvited", "email", given->email, "role",
                                      user_role_name(given->role), NULL)
                          : error;
}

enum iw_error member_invite(struct domain *domain, const struct member_invitation *invitation, int64_t *id,
                            const char **link)
{
    struct user known = {.id = 0};
    struct invite_work work = {.domain = domain, .invitation = invitation};
    enum iw_error error = users_find_by_email(&domain->store, invitation->email, &known);
    if (error == IW_OK && known.account.id == invitation->account_id) {
        context_detail(domain->context, "email", "is a member of the account already");
        return context_validated(domain->context);
    }
    if (error != IW_OK && error != IW_NOT_FOUND)
        return error;
    context_clear(domain->context);
    error = db_transaction(&domain->store, invite_run, &work);
    *id = work.id;
    *link = mail_is_on(domain->config) ? NULL : work.link;
    return error;
}

enum iw_error member_uninvite(struct domain *domain, const struct session *session, int64_t id,
                              const struct audit_place *place)
{
    int64_t count = 0;
    const struct audit_actor actor = audit_actor_of(&session->user, place);
    enum iw_error error = invitations_delete(&domain->store, session->account.id, id, &count);
    if (error == IW_OK && count == 0)
        return context_fail(domain->context, IW_RESOURCE_NOT_FOUND,
                            "Your account has no invitation with this id.");
    return error == IW_OK ? audit_add(&domain->store, &actor, "invitationDeleted", NULL) : error;
}

static enum iw_error invitation_find(const struct store *store, const char *token,
                                     struct invitation *invitation)
{
    uint8_t digest[32];
    token_digest(token, digest);
    enum iw_error error = invitations_find(store, digest, clock_now_ms(), invitation);
    return error == IW_NOT_FOUND ? context_fail(store->context, IW_TOKEN_INVALID, NULL) : error;
}

enum iw_error member_inspect(struct domain *domain, const char *token, struct invitation *invitation)
{
    return invitation_find(&domain->store, token, invitation);
}

struct accept_work {
    const struct domain *domain;
    const char *token;
    const struct audit_place *place;
    struct user *user; /* name and password are set; gets the rest */
};

/* A user of this address that was never verified: the owner of the address has the invitation. */
static enum iw_error stranger_remove(const struct store *store, const struct accept_work *work)
{
    struct user stranger;
    enum iw_error error = users_find_by_email(store, work->user->email, &stranger);
    if (error == IW_OK)
        return user_unverified_remove(work->domain, store, stranger.id);
    context_clear(store->context);
    return error == IW_NOT_FOUND ? IW_OK : error;
}

static enum iw_error accept_run(const struct store *store, void *argument)
{
    struct accept_work *work = argument;
    struct user *user = work->user;
    struct invitation invitation;
    int64_t count = 0, now_ms = clock_now_ms();
    enum iw_error error = invitation_find(store, work->token, &invitation);
    if (error == IW_OK)
        error = invitations_delete(store, invitation.account_id, invitation.id, &count);
    if (error == IW_OK && count == 0)
        return context_fail(store->context, IW_TOKEN_INVALID, NULL);
    if (error != IW_OK)
        return error;
    user->account.id = invitation.account_id;
    user->email = invitation.email;
    user->role = invitation.role;
    user->email_verified_ms = now_ms;
    error = stranger_remove(store, work);
    if (error == IW_OK)
        error = users_insert(store, user, now_ms, &user->id);
    if (error == IW_TWIN_EXISTS) {
        context_clear(store->context);
        return context_fail(store->context, IW_VALIDATION_FAILED,
                            "%s has a user in another account; a user belongs to one account.", user->email);
    }
    const struct audit_actor actor = audit_actor_of(user, work->place);
    return error == IW_OK ? audit_add(store, &actor, "invitationAccepted", "email", user->email, NULL)
                          : error;
}

enum iw_error member_accept(struct domain *domain, const char *token, const struct user_entry *entry,
                            const struct audit_place *place, struct user *user)
{
    struct invitation invitation;
    *user = (struct user){.name = entry->name};
    struct accept_work work = {domain, token, place, user};
    enum iw_error error = member_inspect(domain, token, &invitation);
    if (error == IW_OK)
        error = password_hash(domain->context, domain->config, entry->password, &user->password_hash);
    if (error == IW_OK)
        error = db_transaction(&domain->store, accept_run, &work);
    return error == IW_OK ? users_find(&domain->store, user->id, user) : error;
}

/* ---- members ---- */

struct member_work {
    int64_t account_id;
    int64_t user_id;
    int role; /* -1: removed */
    struct audit_actor actor;
    bool are_keys_revoked; /* of a removed one */
};

/* LAST_OWNER when the change takes the last owner's role.  The owners' rows stay locked. */
static enum iw_error owner_check(const struct store *store, const struct member_work *work,
                                 const struct user *user)
{
    int64_t owners = 0;
    enum iw_error error = users_owners_lock(store, work->account_id, &owners);
    bool is_owner = user->role == USER_OWNER && !user->is_disabled;
    if (error == IW_OK && is_owner && work->role != USER_OWNER && owners <= 1)
        return context_fail(store->context, IW_LAST_OWNER, NULL);
    return error;
}

static enum iw_error member_delete(const struct store *store, const struct member_work *work,
                                   const struct user *user)
{
    int64_t keys = 0;
    enum iw_error error = users_delete(store, user->id);
    if (error == IW_OK && work->are_keys_revoked)
        error = keys_revoke_of_user(store, work->account_id, user->id, clock_now_ms(), &keys);
    const char *count = arena_printf(store->context->arena, "%lld", (long long)keys);
    return error == IW_OK ? audit_add(store, &work->actor, "memberRemoved", "email", user->email,
                                      "revokedKeys", count, NULL)
                          : error;
}

static enum iw_error member_run(const struct store *store, void *argument)
{
    const struct member_work *work = argument;
    struct user user;
    enum iw_error error = users_lock(store, work->user_id, &user);
    if (error == IW_NOT_FOUND || (error == IW_OK && user.account.id != work->account_id)) {
        context_clear(store->context);
        return context_fail(store->context, IW_RESOURCE_NOT_FOUND,
                            "Your account has no member with this id.");
    }
    if (error == IW_OK)
        error = owner_check(store, work, &user);
    if (error != IW_OK)
        return error;
    if (work->role < 0)
        return member_delete(store, work, &user);
    error = users_role_set(store, user.id, (enum user_role)work->role);
    return error == IW_OK ? audit_add(store, &work->actor, "roleChanged", "email", user.email, "role",
                                      user_role_name((enum user_role)work->role), NULL)
                          : error;
}

enum iw_error member_role_set(struct domain *domain, const struct session *session, int64_t user_id,
                              enum user_role role, const struct audit_place *place)
{
    struct member_work work = {session->account.id, user_id, (int)role, audit_actor_of(&session->user, place),
                               false};
    return db_transaction(&domain->store, member_run, &work);
}

enum iw_error member_remove(struct domain *domain, const struct session *session, int64_t user_id,
                            bool are_keys_revoked, const struct audit_place *place)
{
    struct member_work work = {session->account.id, user_id, -1, audit_actor_of(&session->user, place),
                               are_keys_revoked};
    return db_transaction(&domain->store, member_run, &work);
}

/* The argument of flags_run. */
struct flags_work {
    int64_t user_id;
    const struct member_flags *flags;
    struct audit_actor actor;
};

static enum iw_error flags_run(const struct store *store, void *argument)
{
    const struct flags_work *work = argument;
    struct user user;
    enum iw_error error = users_lock(store, work->user_id, &user);
    bool is_admin = work->flags->is_admin >= 0 ? work->flags->is_admin != 0 : user.is_admin;
    bool is_disabled = work->flags->is_disabled >= 0 ? work->flags->is_disabled != 0 : user.is_disabled;
    if (error == IW_OK)
        error = users_flags_set(store, user.id, is_admin, is_disabled);
    if (error == IW_OK && is_disabled)
        error = sessions_end_others(store, user.id, 0);
    if (error == IW_OK && is_admin != user.is_admin)
        error = audit_add(store, &work->actor, is_admin ? "adminGranted" : "adminRevoked", "email",
                          user.email, NULL);
    if (error == IW_OK && is_disabled != user.is_disabled)
        error = audit_add(store, &work->actor, is_disabled ? "userDisabled" : "userEnabled", "email",
                          user.email, NULL);
    return error;
}

enum iw_error member_flags_set(struct domain *domain, const struct user *user,
                               const struct member_flags *flags, const struct audit_actor *actor)
{
    struct flags_work work = {user->id, flags, *actor};
    work.actor.account_id = user->account.id;
    return db_transaction(&domain->store, flags_run, &work);
}
