/* Database access for commands. */
#ifndef CTL_CTL_DB_H
#define CTL_CTL_DB_H

#include "ctl/ctl.h"
#include "db/db.h"
#include "service/redis/redis.h"

/*
 * Reads the configuration and the password file, and creates a database handle, which connects
 * on first use. NULL, with a line on stderr, on errors. The caller frees it with
 * ctl_db_close; config must outlive it. With unix_socket authentication, root becomes the
 * service's user permanently.
 */
const struct db *ctl_db_open(struct ctl *ctl, struct config *config);

/* Closes the connection; db may be NULL. */
void ctl_db_close(const struct db *db);

/* True for a local database with unix_socket authentication: the process must run as the database user. */
bool ctl_is_socket_user(const struct config *config);

/*
 * With unix_socket authentication, root becomes the service's user. False, with a line on
 * stderr, when that fails.
 */
bool ctl_user_become(const struct config *config);

/*
 * A database handle for the administrator: root over the local socket. It only works when the
 * process runs as root. copy is filled and must outlive the handle. database is the one to
 * use.
 */
struct db_connection *ctl_db_administrator(const struct config *config, const char *database,
                                           struct config *copy);

/* Does not connect yet; NULL when its password cannot be read.  Free with redis_free. */
struct redis *ctl_redis_open(struct ctl *ctl, const struct config *config);

/* Wakes a worker, so that jobs and deliveries need not wait for the next sweep.  order_id 0: of no one order.
 */
void ctl_worker_wake(struct ctl *ctl, const struct config *config, int64_t order_id);

/* "2026-03-12T10:00:00.000Z", or "-" for 0; in the arena. */
const char *ctl_time(const struct ctl *ctl, int64_t time_ms);

#endif
