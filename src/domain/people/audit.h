/*
 * The audit log: who changed the security of an account, how, and from which address.
 *
 * Events have a constant name in camel case.  doc/console.md lists them.  Never add a secret.
 */
#ifndef DOMAIN_PEOPLE_AUDIT_H
#define DOMAIN_PEOPLE_AUDIT_H

#include <stdint.h>

#include "domain/domain.h"
#include "model/user.h"

/* The client of a request.  Texts are borrowed. */
struct audit_client {
    const char *address;
    const char *user_agent;
};

/* Who acts, where.  Zero and NULL if unknown, or the operator at the command line. */
struct audit_actor {
    int64_t account_id;
    int64_t user_id;
    const char *user_name;
    const char *user_email;
    const char *address;
};

struct audit_actor audit_actor_of(const struct user *user, const struct audit_client *client);

/* Returns true if the user signed in from this network before. */
enum iw_error audit_network_known(const struct domain *domain, int64_t user_id,
                                  const struct audit_client *client, bool *is_known) IW_MUST_USE;

/* Counts a change of a user, which adds an event.  USAGE_LIMIT_EXCEEDED if there are too many in a day. */
enum iw_error audit_change_admit(struct domain *domain, int64_t user_id) IW_MUST_USE;

/* Adds an event about an object, after its change.  id: of the object, or NULL. */
enum iw_error audit_change_note(struct domain *domain, const struct user *user,
                                const struct audit_client *client, const char *event,
                                const char *id) IW_MUST_USE;

/* Adds an event; pairs of detail name and value follow, closed by NULL. */
enum iw_error audit_add(const struct domain *domain, const struct audit_actor *actor, const char *event,
                        ...) IW_MUST_USE __attribute__((sentinel));

#endif
