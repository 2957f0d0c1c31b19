/*
 * The connection to MariaDB.  Only db.c and db_hosts.c include Connector/C.
 *
 * A struct db_connection is one connection, opened by the first call. Statements are prepared once and cached
 * by their text, within a bound of entries and bytes, so pass constant texts or a small number of variants.
 * Rows are copied into the arena of the context.
 *
 * Errors: SERVICE_UNAVAILABLE with retry_after_s if the database is away or read-only, or an answer ends
 * between two rows; the next call opens a new connection.  TWIN_EXISTS for a duplicate key.  Any other error
 * is SERVER_INTERNAL_ERROR with the driver's message as cause.  A statement on an idle connection that the
 * server closed is sent again on a new one, except inside a transaction.
 *
 * database.hosts names several servers; db_hosts.h chooses among them.
 */
#ifndef DB_DB_H
#define DB_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/context.h"
#include "base/hosts.h"
#include "base/metrics.h"
#include "db/db_row.h"

struct db_connection;
struct db_host; /* db_hosts.h */

/* A connection, and the context of the request or job that uses it.  Each function of src/db takes one. */
struct db {
    struct context *context;
    struct db_connection *connection;
};

/*
 * Creates the handle without connecting. Borrows config; copies the password. Free the result with db_free.
 */
struct db_connection *db_new(const struct config *config, const char *password);

/*
 * The server ends each statement after this many seconds, and the caller gets SERVICE_UNAVAILABLE. 0, which
 * is the default: never. Call it before the first statement. db_stream has its own limit.
 */
void db_statement_limit_s(struct db_connection *connection, unsigned seconds);
void db_free(struct db_connection *connection);

/* Shares the choice of the server with other processes, and counts changes. Borrows both arguments. */
void db_share(struct db_connection *connection, struct hosts *hosts, struct metrics *metrics);

/*
 * While true, the connection stays on its server and is not reopened after a loss, because the session
 * holds locks.
 */
void db_pin(struct db_connection *connection, bool is_pinned);

/*
 * Runs one statement with count parameters for its question marks. rows may be NULL. A compound statement may
 * return several results: rows gets the first result with columns.
 */
enum iw_error db_run(const struct db *db, const char *sql, const struct db_value *parameters, unsigned count,
                     struct db_rows *rows) IW_MUST_USE;

/*
 * Runs a SELECT and passes each row to a callback without buffering.  The texts of a row are valid during the
 * callback.  The callback returns false to stop; then the connection is closed.
 */
enum iw_error db_stream(const struct db *db, const char *sql, const struct db_value *parameters,
                        unsigned count, bool (*take)(void *user, struct db_row *row), void *user) IW_MUST_USE;

/* The same with the limit of other statements. */
enum iw_error db_each(const struct db *db, const char *sql, const struct db_value *parameters, unsigned count,
                      bool (*take)(void *user, struct db_row *row), void *user) IW_MUST_USE;

/* Runs a statement that cannot be prepared (migrations): no parameters, no rows. */
enum iw_error db_run_plain(const struct db *db, const char *sql, size_t length) IW_MUST_USE;

/*
 * True if the last statement failed. A caller that also uses the file store thus learns which of them failed.
 */
bool db_has_failed(const struct db_connection *connection);

/*
 * After a call that failed: true for a deadlock or a lock wait timeout.  The statement had no effect and may
 * be repeated.
 */
bool db_is_conflict(const struct db_connection *connection);

/*
 * The steps of transaction.h; only transaction.c calls them.  When the connection of a transaction is lost,
 * each statement fails until db_rollback.  db_rollback keeps the error of the context.
 */
enum iw_error db_begin(const struct db *db) IW_MUST_USE;
enum iw_error db_commit(const struct db *db) IW_MUST_USE;
void db_rollback(struct db_connection *connection);
bool db_is_begun(const struct db_connection *connection);

/*
 * The folder of the server's data if the server is on this machine (database.socket), else NULL, also if
 * the server does not answer. Asks once. Leaves no error.
 */
const char *db_folder(const struct db *db);

/* The settings of the server that an operator checks; texts are in the arena. */
struct db_server {
    const char *version;
    const char *session_unset;  /* names of the session's variables that did not take our value; "" if there
                                   are none */
    const char *connection_set; /* character set of our session */
    const char *database_set;   /* character set of the database */
    int64_t now_ms;             /* the server's clock */
    int64_t packet_bytes;       /* max_allowed_packet */
    int64_t connections_max;    /* max_connections, or the user's limit */
    int64_t cluster_size;       /* nodes that this server sees (wsrep_cluster_size); 0 means no Galera */
    const char *cluster_state;  /* wsrep_local_state_comment; "" without Galera */
    bool is_read_only;
    bool is_statement_logged; /* binlog_format refuses writes of READ-COMMITTED */
};

enum iw_error db_server_read(const struct db *db, struct db_server *server) IW_MUST_USE;

/* Returns the number of servers in database.hosts; 1 without that key. */
unsigned db_host_count(const struct db_connection *connection);

/* Connects to one server, checks it and closes the connection.  The choice does not change. */
void db_host_check(const struct db *db, unsigned number, struct db_host *host);

#endif
