/*
 * The throttle of password and code checks, per user and per network address.
 *
 * An attempt counts before the password is checked, so that parallel attempts count, too.  After a few free
 * attempts each further one waits twice as long as the one before, up to minutes.  A success clears the
 * user's count and the attempt of its address.  A day without an attempt clears both.  A user counts by the
 * typed address, so an unknown user has the same answers.  The counts are in the database: they hold on all
 * machines and while Redis is away.
 */
#ifndef DOMAIN_THROTTLE_H
#define DOMAIN_THROTTLE_H

#include "domain/domain.h"

/* Counts an attempt.  SIGN_IN_LIMITED with retry_after_s: the attempt must not be made. */
enum iw_error throttle_enter(struct domain *domain, const char *user_name, const char *address) IW_MUST_USE;

/* After a success. */
enum iw_error throttle_clear(struct domain *domain, const char *user_name, const char *address) IW_MUST_USE;

/* The part of an address that counts: the /64 of an IPv6 address, else the whole.  The arena's. */
const char *throttle_network(struct arena *arena, const char *address);

#endif
