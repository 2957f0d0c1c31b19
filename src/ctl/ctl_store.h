/* What the commands that speak with the database share. */
#ifndef CTL_CTL_STORE_H
#define CTL_CTL_STORE_H

#include "ctl/ctl.h"
#include "store/db.h"

/*
 * Reads the configuration, its password file, and makes a database handle
 * (which connects when first used).  NULL after a line on stderr.  The caller
 * frees it with db_free; config must outlive it.  Where the database knows its
 * user by the user of the system, root becomes that user for good.
 */
const struct store *ctl_store_open(struct ctl *ctl, struct config *config);

/* Closes its connection; store may be NULL. */
void ctl_store_close(const struct store *store);

/* A local database with unix_socket authentication: who connects must be the user that the row names. */
bool ctl_is_socket_user(const struct config *config);

/* Root becomes the service's user where the database knows it by the socket; false after a line on stderr. */
bool ctl_user_become(const struct config *config);

/*
 * A handle of the database's administrator: root over the local socket, which
 * works for root alone.  copy is filled and must outlive the handle; database
 * names the one to work in.
 */
struct db *ctl_db_administrator(const struct config *config, const char *database, struct config *copy);

/* "2026-03-12T10:00:00.000Z", or a dash for 0; the arena's. */
const char *ctl_time(const struct ctl *ctl, int64_t time_ms);

#endif
