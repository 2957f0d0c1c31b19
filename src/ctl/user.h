/* Creates users, for the commands user and init. */
#ifndef CTL_USER_H
#define CTL_USER_H

#include "ctl/ctl.h"
#include "db/db.h"
#include "model/user.h"

/* Returns a random password of 120 bits, in the arena. */
const char *user_password_make(struct arena *arena);

/* Inserts a user: account.id, role, email, name, language and is_admin are set.  TWIN_EXISTS. */
enum iw_error user_make(const struct db *db, const struct config *config, struct user *user,
                        const char *password) IW_MUST_USE;

#endif
