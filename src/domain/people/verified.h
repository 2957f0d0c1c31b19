/*
 * Changes that follow a proof.
 *
 * A password or a code is verified on a copy of the user's row, and a hash takes a tenth of a second.  The
 * transaction that acts locks the row and compares what was verified: hash, second factor, disabled.  So a
 * request that is on its way has no effect after a change of them.
 */
#ifndef DOMAIN_PEOPLE_VERIFIED_H
#define DOMAIN_PEOPLE_VERIFIED_H

#include "domain/domain.h"
#include "model/user.h"

/*
 * Locks the user's row in the caller's transaction.  action is the key of the fault point before it.
 * SESSION_REQUIRED: the user is no longer the one that was verified.
 */
enum iw_error verified_lock(const struct domain *domain, const struct user *user,
                            const char *action) IW_MUST_USE;

#endif
