/*
 * Changes that follow a proof.
 *
 * A password or a code is verified on a copy of the user's row, and a hash takes a tenth of a second.  The
 * transaction that acts locks the row and compares what was verified: hash, second factor, disabled.  So a
 * request that is on its way has no effect after a change of them.
 */
#ifndef DOMAIN_VERIFIED_H
#define DOMAIN_VERIFIED_H

#include "domain/domain.h"
#include "model/user.h"

/*
 * Runs work in a transaction that holds the user's row.  action is the key of the fault point before it.
 * SESSION_REQUIRED: the user is no longer the one that was verified.
 */
enum iw_error verified_transaction(struct domain *domain, const struct user *user, const char *action,
                                   enum iw_error (*work)(const struct store *store, void *argument),
                                   void *argument) IW_MUST_USE;

#endif
