/* The database users of the programs: their names and passwords in the configuration, and their rights. */
#ifndef CTL_GRANTS_H
#define CTL_GRANTS_H

#include "ctl/ctl.h"
#include "db/grants.h"

/*
 * Returns the password file of a program's user, or NULL if the program has no separate user or the user has
 * no password.
 */
const char *grants_password_file(const struct config *config, enum grants_program program);

/*
 * Creates missing users and grants all of them their rights, as the administrator. Sets *made to the number
 * of users created.
 */
enum iw_error grants_apply(const struct db *administrator, const struct config *config,
                           unsigned *made) IW_MUST_USE;

#endif
