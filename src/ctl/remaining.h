/* Work that is left to the operator on an installed host: the last lines of init and doctor. */
#ifndef CTL_REMAINING_H
#define CTL_REMAINING_H

#include "ctl/ctl.h"
#include "ctl/site.h"
#include "db/db.h"

/*
 * Prints one line for each remaining step about services, nginx, certificate, name and console, and returns
 * their number. If systemd's units do not use this configuration, because it belongs to a private stack,
 * prints nothing and clears *is_installed. db->connection may be NULL.
 */
unsigned remaining_print(struct ctl *ctl, const struct config *config, const struct db *db,
                         const struct site *site, bool *is_installed);

#endif
