/* What the commands that speak with the database share. */
#ifndef CTL_CTL_STORE_H
#define CTL_CTL_STORE_H

#include "ctl/ctl.h"
#include "store/db.h"

/*
 * Reads the configuration, its password file, and makes a database handle
 * (which connects when first used).  NULL after a line on stderr.  The caller
 * frees it with db_free; config must outlive it.
 */
struct db *ctl_db(struct ctl *ctl, struct config *config);

/* "2026-03-12T10:00:00.000Z", or a dash for 0; the arena's. */
const char *ctl_time(const struct ctl *ctl, int64_t time_ms);

#endif
