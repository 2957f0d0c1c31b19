/*
 * The members of an account: invitations, roles, removal.  An account with users keeps an owner who is not
 * disabled.
 */
#ifndef DOMAIN_PEOPLE_MEMBER_H
#define DOMAIN_PEOPLE_MEMBER_H

#include "db/keys.h"
#include "domain/people/session.h"
#include "domain/people/user.h"

/* Users and open invitations of an account; in the arena. */
struct member_rows {
    struct user *users;
    size_t user_count;
    struct invitation *invitations;
    size_t invitation_count;
    struct keys_of_user *keys; /* how many valid keys a user made; none: no row */
    size_t key_count;
};
enum iw_error member_list(struct domain *domain, int64_t account_id, struct member_rows *rows) IW_MUST_USE;

/* Who is invited, to which account. */
struct member_invitation {
    int64_t account_id;
    const char *account_name;
    const char *email; /* in lower case */
    enum user_role role;
    enum user_language language; /* of the mail */
    const struct audit_actor *actor;
    bool is_unlimited; /* by the operator: console.invitations_max is no limit */
};

/*
 * Invites an address; an earlier invitation of the address is replaced. *link is NULL if the link went out
 * by mail. VALIDATION_FAILED if the account has this user already.  USAGE_LIMIT_EXCEEDED if there are too
 * many invitations.
 */
enum iw_error member_invite(struct domain *domain, const struct member_invitation *invitation, int64_t *id,
                            const char **link) IW_MUST_USE;

/* Deletes an invitation; RESOURCE_NOT_FOUND. */
enum iw_error member_uninvite(struct domain *domain, const struct session *session, int64_t id,
                              const struct audit_client *client) IW_MUST_USE;

/* The invitation of a token; TOKEN_INVALID. */
enum iw_error member_inspect(struct domain *domain, const char *token,
                             struct invitation *invitation) IW_MUST_USE;

/*
 * Makes the user of an invitation.  entry has name and password.  VALIDATION_FAILED if the address has a
 * user.
 */
enum iw_error member_accept(struct domain *domain, const char *token, const struct user_entry *entry,
                            const struct audit_client *client, struct user *user) IW_MUST_USE;

/* RESOURCE_NOT_FOUND, LAST_OWNER. */
enum iw_error member_role_set(struct domain *domain, const struct session *session, int64_t user_id,
                              enum user_role role, const struct audit_client *client) IW_MUST_USE;

/* Deletes a user and its sessions.  RESOURCE_NOT_FOUND, LAST_OWNER. */
enum iw_error member_remove(struct domain *domain, const struct session *session, int64_t user_id,
                            bool are_keys_revoked, const struct audit_client *client) IW_MUST_USE;

/* Changes a user's flags, for the operator: -1 keeps one.  A disabled user's sessions end. */
struct member_flags {
    int is_admin;
    int is_disabled;
};
enum iw_error member_flags_set(struct domain *domain, const struct user *user,
                               const struct member_flags *flags, const struct audit_actor *actor) IW_MUST_USE;

#endif
