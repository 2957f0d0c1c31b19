/*
 * The second factor of a user: a secret for time-based codes, and recovery codes.
 *
 * The secret is stored encrypted and bound to its user.  A code is accepted once.  Recovery codes have 80
 * random bits; the database has their SHA-256.
 */
#ifndef DOMAIN_PEOPLE_SECOND_FACTOR_H
#define DOMAIN_PEOPLE_SECOND_FACTOR_H

#include "domain/people/session.h"

enum { second_factor_codes = 10 };

/* Makes a new secret, which is not in force before second_factor_enable.  Texts are in the arena. */
struct second_factor {
    const char *secret; /* base 32 */
    const char *url;    /* otpauth://, for a QR code */
};
enum iw_error second_factor_make(struct domain *domain, const struct user *user,
                                 const struct audit_client *client, struct second_factor *factor) IW_MUST_USE;

/*
 * Enables the secret that the code proves, makes recovery codes, ends all sessions and opens a new one.
 * VALIDATION_FAILED if the code is wrong.
 */
enum iw_error second_factor_enable(struct domain *domain, const struct user *user, const char *code,
                                   const struct audit_client *client, const char *codes[second_factor_codes],
                                   struct session_new *fresh) IW_MUST_USE;

enum iw_error second_factor_disable(struct domain *domain, const struct user *user,
                                    const struct audit_actor *actor) IW_MUST_USE;

/* Replaces the recovery codes. */
enum iw_error second_factor_codes_new(struct domain *domain, const struct user *user,
                                      const struct audit_client *client,
                                      const char *codes[second_factor_codes]) IW_MUST_USE;

/*
 * Takes a code, or a recovery code, in the caller's transaction.  SIGN_IN_FAILED if it is wrong or was
 * used.
 */
enum iw_error second_factor_take(const struct domain *domain, const struct user *user, const char *code,
                                 const struct audit_client *client) IW_MUST_USE;

#endif
