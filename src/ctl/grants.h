/* The programs' users of the database: their names and passwords in the configuration, and their rights. */
#ifndef CTL_GRANTS_H
#define CTL_GRANTS_H

#include "ctl/ctl.h"
#include "db/grants.h"

/* The password file of a program's user; NULL: the program has no separate user, or its user has no password.
 */
const char *grants_password_file(const struct config *config, enum grants_program program);

/* Creates missing users and gives each its rights, as the administrator; *made: how many were created. */
enum iw_error grants_apply(const struct db *administrator, const struct config *config,
                           unsigned *made) IW_MUST_USE;

#endif
