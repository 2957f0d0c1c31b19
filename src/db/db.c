#include "db/db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <errmsg.h>
#include <mysql.h>
#include <mysqld_error.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/text.h"
#include "db/db_hosts.h"

enum {
    statements_max = 96,
    /*
     * Bytes of SQL text. The server needs about 70 bytes for each of them: 3.4 MiB a connection. The
     * statement for an order grows with files and texts; if it is longer than this, it is prepared for each
     * use.
     */
    statements_bytes_max = 48 * 1024,
    statement_bytes_max = 4 * 1024,
    columns_max = 64,
    parameters_max = 8192,
    statement_tries = 3,
    retry_after_s = 5,
    /* A million orders of one account take about 20 s. */
    stream_max_s = 300
};

/* Galera's errors that MariaDB's headers name for other uses. */
enum { error_not_ready = ER_UNKNOWN_COM_ERROR, error_commit = ER_ERROR_DURING_COMMIT };

/* A prepared statement and the text from which it was prepared. */
struct statement {
    char *sql;
    size_t length; /* of sql */
    MYSQL_STMT *handle;
    uint64_t used; /* the least recently used statement is evicted */
};

struct db_connection {
    struct db_hosts hosts;
    char *folder; /* db_folder; NULL if not asked yet */
    MYSQL *mysql; /* NULL if there is none */
    bool is_pinned;
    struct statement statements[statements_max];
    struct statement long_statement; /* too long for the cache; valid until the next statement */
    uint64_t use_count;
    bool is_in_transaction;
    bool has_failed;  /* the last statement */
    bool is_conflict; /* the last failure was a lock conflict, or the server refused to write */
    bool is_deadlock; /* the last failure: of several statements one was rolled back */
};

/* The buffers of one row. */
struct row_buffers {
    unsigned columns;
    MYSQL_BIND binds[columns_max];
    int64_t integers[columns_max];
    MYSQL_TIME times[columns_max];
    unsigned long lengths[columns_max];
    my_bool nulls[columns_max];
    struct db_value values[columns_max];
};

struct db_connection *db_new(const struct config *config, const char *password)
{
    struct db_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        abort();
    db_hosts_init(&connection->hosts, config, password);
    return connection;
}

void db_share(struct db_connection *connection, struct hosts *hosts, struct metrics *metrics)
{
    db_hosts_share(&connection->hosts, hosts, metrics);
}

void db_pin(struct db_connection *connection, bool is_pinned)
{
    connection->is_pinned = is_pinned;
}

static void statement_forget(struct statement *statement)
{
    if (statement->handle != NULL)
        mysql_stmt_close(statement->handle);
    free(statement->sql);
    *statement = (struct statement){0};
}

static void statements_forget(struct db_connection *connection)
{
    for (unsigned i = 0; i < statements_max; i++)
        statement_forget(&connection->statements[i]);
    statement_forget(&connection->long_statement);
}

/* The next call opens a new connection. */
static void db_close(struct db_connection *connection)
{
    statements_forget(connection);
    if (connection->mysql != NULL)
        mysql_close(connection->mysql);
    connection->mysql = NULL;
}

void db_free(struct db_connection *connection)
{
    if (connection == NULL)
        return;
    db_close(connection);
    db_hosts_fini(&connection->hosts);
    free(connection->folder);
    free(connection);
}

static bool is_gone(unsigned number)
{
    static const unsigned gone[] = {CR_SERVER_GONE_ERROR,    CR_SERVER_LOST,
                                    CR_CONNECTION_ERROR,     CR_CONN_HOST_ERROR,
                                    CR_SERVER_LOST_EXTENDED, ER_SERVER_SHUTDOWN,
                                    ER_CON_COUNT_ERROR,      ER_NORMAL_SHUTDOWN,
                                    ER_CONNECTION_KILLED,    ER_NEW_ABORTING_CONNECTION,
                                    CR_COMMANDS_OUT_OF_SYNC, CR_OUT_OF_MEMORY,
                                    ER_QUERY_INTERRUPTED,    CR_MALFORMED_PACKET,
                                    error_not_ready,         error_commit};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
        if (gone[i] == number)
            return true;
    return false;
}

static bool is_refusing(unsigned number)
{
    static const unsigned refusing[] = {ER_OPTION_PREVENTS_STATEMENT,
                                        ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION,
                                        ER_RECORD_FILE_FULL,
                                        ER_DISK_FULL,
                                        ER_ERROR_ON_WRITE,
                                        ER_GET_ERRNO,
                                        ER_OUT_OF_RESOURCES,
                                        ER_OUT_OF_SORTMEMORY,
                                        ER_OUTOFMEMORY,
                                        ER_LOCK_TABLE_FULL,
                                        ER_MAX_PREPARED_STMT_COUNT_REACHED};
    for (size_t i = 0; i < sizeof refusing / sizeof refusing[0]; i++)
        if (refusing[i] == number)
            return true;
    return false;
}

/* InnoDB reports a deadlock over the AUTO_INCREMENT lock as ER_AUTOINC_READ_FAILED (MDEV-33593). */
static bool is_conflict(unsigned number)
{
    return number == ER_LOCK_DEADLOCK || number == ER_LOCK_WAIT_TIMEOUT || number == ER_AUTOINC_READ_FAILED;
}

static enum iw_error fail_unavailable(struct context *context, const char *reason, unsigned number,
                                      const char *message)
{
    if (context->error == IW_OK) {
        context_cause(context, "%u %s", number, message);
        context->reason = reason;
        context->retry_after_s = retry_after_s;
    }
    if (number == ER_STATEMENT_TIMEOUT)
        return context_fail(context, IW_SERVICE_UNAVAILABLE,
                            "The database took too long for the request and ended it; repeat it later.");
    return context_fail(context, IW_SERVICE_UNAVAILABLE, NULL);
}

/*
 * Returns true if the server refused to write because Galera has no quorum or the server became a replica.
 * The statement had no effect, and another server may run it.
 */
static bool is_demoted(const struct db_connection *connection, unsigned number)
{
    return connection->hosts.count > 1 &&
           (number == error_not_ready || number == ER_OPTION_PREVENTS_STATEMENT ||
            number == ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION);
}

/* Maps the driver's error to ours; closes a lost connection. */
static enum iw_error db_fail(const struct db *db, unsigned number, const char *message)
{
    db->connection->has_failed = true;
    db->connection->is_deadlock = number == ER_LOCK_DEADLOCK;
    db->connection->is_conflict = is_conflict(number) || is_demoted(db->connection, number);
    if (number == ER_DUP_ENTRY)
        return context_fail(db->context, IW_TWIN_EXISTS, NULL);
    /* Only the claim of a quota signals (quotas_claim_add). */
    if (number == ER_SIGNAL_EXCEPTION)
        return context_fail(db->context, IW_USAGE_LIMIT_EXCEEDED, NULL);
    if (is_gone(number) || is_demoted(db->connection, number)) {
        enum iw_error error = fail_unavailable(db->context, "database_away", number, message);
        /* The server may be frozen, and then another connection to it would hang, too. */
        if (number == CR_SERVER_LOST)
            db_hosts_lost(&db->connection->hosts);
        db_close(db->connection);
        return error;
    }
    if (number == ER_STATEMENT_TIMEOUT)
        return fail_unavailable(db->context, "statement_timeout", number, message);
    if (db->connection->is_conflict || is_refusing(number))
        return fail_unavailable(db->context,
                                db->connection->is_conflict ? "database_conflict" : "database_refuses",
                                number, message);
    if (db->context->error == IW_OK) {
        context_cause(db->context, "%u %s", number, message);
        db->context->reason = "database_error";
    }
    return context_fail(db->context, IW_SERVER_INTERNAL_ERROR, NULL);
}

static inline void connection_cut(const struct db_connection *connection)
{
    shutdown(mysql_get_socket(connection->mysql), SHUT_RDWR);
}

/*
 * An answer failed between two rows. In some cases the driver has cleared the error of the statement. It
 * would wait for the rest of the answer before the next use of the connection, so the connection is cut and
 * closed.
 */
static enum iw_error rows_fail(const struct db *db, MYSQL_STMT *handle)
{
    MYSQL *mysql = db->connection->mysql;
    unsigned number = mysql_stmt_errno(handle);
    const char *message = mysql_stmt_error(handle);
    if (number == 0) {
        number = mysql_errno(mysql);
        message = mysql_error(mysql);
    }
    connection_cut(db->connection);
    enum iw_error error = number != 0 ? db_fail(db, number, message)
                                      : db_fail(db, CR_SERVER_LOST, "The answer ended between two rows.");
    db_close(db->connection);
    return error;
}

/*
 * Fails after the server rolled back the open transaction without reporting an error, because the next
 * statement would commit by itself. Galera does that when another node's commit aborts a SELECT just after it
 * was prepared (MariaDB 10.11.18: 2,227 of 60,281 aborts). The status flag of the answer shows it.
 */
static enum iw_error transaction_check(const struct db *db, const char *sql)
{
    MYSQL *mysql = db->connection->mysql;
    unsigned status = SERVER_STATUS_IN_TRANS;
    (void)sql;
    if (!db->connection->is_in_transaction)
        return IW_OK;
    if (fault_fails(FAULT_DB_ROLLED_BACK, sql))
        mysql_query(mysql, "ROLLBACK");
    return mariadb_get_info(mysql, MARIADB_CONNECTION_SERVER_STATUS, &status) != 0 ||
                   (status & SERVER_STATUS_IN_TRANS) != 0
               ? IW_OK
               : db_fail(db, ER_LOCK_DEADLOCK, "The server rolled the transaction back without an error.");
}

/* Fault points lose the answer after a statement ran. */
static inline enum iw_error answer_lost(const struct db *db, enum fault fault, const char *key)
{
    (void)fault;
    (void)key;
    return fault_fails(fault, key) ? db_fail(db, CR_SERVER_LOST, "fault") : IW_OK;
}

void db_statement_limit_s(struct db_connection *connection, unsigned seconds)
{
    connection->hosts.statement_max_s = seconds;
}

static enum iw_error db_open(const struct db *db)
{
    struct db_connection *connection = db->connection;
    struct db_refusal refusal;
    connection->has_failed = connection->mysql == NULL;
    if (connection->mysql != NULL)
        return IW_OK;
    if (connection->is_pinned || connection->is_in_transaction)
        return fail_unavailable(db->context, "database_away", CR_SERVER_LOST,
                                connection->is_pinned ? "The connection that held the lock was lost."
                                                      : "The connection of the transaction was lost.");
    connection->mysql = db_hosts_open(&connection->hosts, db->context, &refusal);
    connection->has_failed = connection->mysql == NULL;
    /* For a client, any reason is temporary; the log has the cause. */
    return connection->mysql != NULL
               ? IW_OK
               : fail_unavailable(db->context, "database_away", refusal.number, refusal.cause);
}

unsigned db_host_count(const struct db_connection *connection)
{
    return connection->hosts.count;
}

void db_host_check(const struct db *db, unsigned number, struct db_host *host)
{
    const struct db_connection *connection = db->connection;
    db_hosts_check(&connection->hosts, db->context->arena, number, host);
    host->is_in_use = connection->mysql != NULL && connection->hosts.current == number;
}

/* Returns the cached statement, or NULL. */
static struct statement *statement_find(struct db_connection *connection, const char *sql)
{
    for (unsigned i = 0; i < statements_max; i++)
        if (connection->statements[i].sql != NULL && strcmp(connection->statements[i].sql, sql) == 0)
            return &connection->statements[i];
    return NULL;
}

/*
 * Returns an empty entry for a text of this length. Evicts the least recently used statements until both
 * limits allow the text.
 */
static struct statement *statement_place(struct db_connection *connection, size_t length)
{
    if (length > statement_bytes_max)
        return &connection->long_statement;
    for (;;) {
        struct statement *empty = NULL, *oldest = NULL;
        size_t bytes = length;
        for (unsigned i = 0; i < statements_max; i++) {
            struct statement *statement = &connection->statements[i];
            bytes += statement->length;
            if (statement->sql == NULL)
                empty = statement;
            else if (oldest == NULL || statement->used < oldest->used)
                oldest = statement;
        }
        if (empty != NULL && bytes <= statements_bytes_max)
            return empty;
        statement_forget(oldest);
    }
}

/* At the server's limit (max_prepared_stmt_count), drops our cached statements and tries again. */
static bool statement_prepare(struct db_connection *connection, MYSQL_STMT *fresh, const char *sql)
{
    if (mysql_stmt_prepare(fresh, sql, strlen(sql)) == 0)
        return true;
    if (mysql_stmt_errno(fresh) != ER_MAX_PREPARED_STMT_COUNT_REACHED)
        return false;
    statements_forget(connection);
    return mysql_stmt_prepare(fresh, sql, strlen(sql)) == 0;
}

static enum iw_error statement_get(const struct db *db, const char *sql, MYSQL_STMT **handle)
{
    struct statement *statement = statement_find(db->connection, sql);
    statement_forget(&db->connection->long_statement);
    if (statement != NULL) {
        statement->used = ++db->connection->use_count;
        *handle = statement->handle;
        return IW_OK;
    }
    MYSQL_STMT *fresh = mysql_stmt_init(db->connection->mysql);
    if (fresh == NULL)
        abort();
    if (!statement_prepare(db->connection, fresh, sql)) {
        enum iw_error error = db_fail(db, mysql_stmt_errno(fresh), mysql_stmt_error(fresh));
        mysql_stmt_close(fresh);
        return error;
    }
    *handle = fresh;
    size_t length = strlen(sql);
    statement = statement_place(db->connection, length);
    *statement = (struct statement){
        .sql = strdup(sql), .length = length, .handle = fresh, .used = ++db->connection->use_count};
    return statement->sql != NULL ? IW_OK : (abort(), IW_NO_MEMORY);
}

static MYSQL_TIME time_to_parts(int64_t time_ms)
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    return (MYSQL_TIME){.year = (unsigned)parts.tm_year + 1900,
                        .month = (unsigned)parts.tm_mon + 1,
                        .day = (unsigned)parts.tm_mday,
                        .hour = (unsigned)parts.tm_hour,
                        .minute = (unsigned)parts.tm_min,
                        .second = (unsigned)parts.tm_sec,
                        .second_part = (unsigned long)(time_ms % 1000) * 1000,
                        .time_type = MYSQL_TIMESTAMP_DATETIME};
}

static int64_t time_of_parts(const MYSQL_TIME *from)
{
    struct tm parts = {.tm_year = (int)from->year - 1900,
                       .tm_mon = (int)from->month - 1,
                       .tm_mday = (int)from->day,
                       .tm_hour = (int)from->hour,
                       .tm_min = (int)from->minute,
                       .tm_sec = (int)from->second};
    return (int64_t)timegm(&parts) * 1000 + (int64_t)(from->second_part / 1000);
}

static void parameter_bind(struct arena *arena, MYSQL_BIND *bind, const struct db_value *value)
{
    static const enum enum_field_types types[] = {[DB_NULL] = MYSQL_TYPE_NULL,
                                                  [DB_INTEGER] = MYSQL_TYPE_LONGLONG,
                                                  [DB_UNSIGNED] = MYSQL_TYPE_LONGLONG,
                                                  [DB_TEXT] = MYSQL_TYPE_STRING,
                                                  [DB_TIME] = MYSQL_TYPE_DATETIME};
    bind->buffer_type = types[value->type];
    bind->is_unsigned = value->type == DB_UNSIGNED;
    if (value->type == DB_TEXT) {
        bind->buffer = (void *)(uintptr_t)value->text;
        bind->buffer_length = value->length;
    } else if (value->type == DB_TIME) {
        MYSQL_TIME *time = arena_alloc(arena, sizeof *time);
        *time = time_to_parts(value->integer);
        bind->buffer = time;
    } else {
        bind->buffer = (void *)(uintptr_t)&value->integer;
    }
}

static bool statement_execute(struct context *context, MYSQL_STMT *handle, const struct db_value *parameters,
                              unsigned count)
{
    if (count != mysql_stmt_param_count(handle) || count > parameters_max)
        abort(); /* The number of parameters differs from that of the question marks, which is a bug. */
    MYSQL_BIND *binds = arena_array(context->arena, count + 1, sizeof *binds);
    for (unsigned i = 0; i < count; i++)
        parameter_bind(context->arena, &binds[i], &parameters[i]);
    return (count == 0 || mysql_stmt_bind_param(handle, binds) == 0) && mysql_stmt_execute(handle) == 0;
}

/* True if repeating the statement on a new connection cannot have a double effect. */
static bool may_retry(const struct db_connection *connection, const char *sql, unsigned number)
{
    bool is_select = strncmp(sql, "SELECT", 6) == 0 || strncmp(sql, "SET STATEMENT", 13) == 0;
    return !connection->is_in_transaction &&
           (number == CR_SERVER_GONE_ERROR || (number == CR_SERVER_LOST && is_select) ||
            number == ER_CONNECTION_KILLED || number == error_not_ready || is_demoted(connection, number));
}

static enum iw_error db_execute(const struct db *db, const char *sql, const struct db_value *parameters,
                                unsigned count, MYSQL_STMT **handle)
{
    struct db_connection *connection = db->connection;
    if (!connection->is_in_transaction)
        connection->is_conflict = false;
    for (int try = 0;; try++) {
        bool may_change =
            connection->hosts.count > 1 && !connection->is_in_transaction && !connection->is_pinned;
        if (connection->mysql != NULL && may_change &&
            !db_hosts_look(&connection->hosts, db->context, connection->mysql))
            db_close(connection);
        bool was_open = connection->mysql != NULL;
        enum iw_error error = db_open(db);
        if (error != IW_OK)
            return error;
        bool is_in_transaction = db->connection->is_in_transaction;
        error = statement_get(db, sql, handle);
        fault_key_add(FAULT_TRANSACTION, sql);
        if (error == IW_OK && fault_fails(FAULT_DB_STATEMENT, sql))
            connection_cut(db->connection);
        if (error == IW_OK && statement_execute(db->context, *handle, parameters, count))
            return answer_lost(db, FAULT_DB_STATEMENT_RUN, sql);
        unsigned number = error == IW_OK ? mysql_stmt_errno(*handle) : CR_SERVER_GONE_ERROR;
        bool is_lost = error == IW_OK ? may_retry(db->connection, sql, number)
                                      : db->connection->mysql == NULL && !is_in_transaction;
        if (!is_lost || !was_open || try > 0)
            return error != IW_OK ? error : db_fail(db, number, mysql_stmt_error(*handle));
        context_clear(db->context);
        db_close(db->connection);
    }
}

static void column_bind(struct row_buffers *fetch, unsigned i, const MYSQL_FIELD *field)
{
    MYSQL_BIND *bind = &fetch->binds[i];
    bind->is_null = &fetch->nulls[i];
    bind->length = &fetch->lengths[i];
    switch (field->type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
        bind->buffer_type = MYSQL_TYPE_LONGLONG;
        bind->buffer = &fetch->integers[i];
        bind->is_unsigned = (field->flags & UNSIGNED_FLAG) != 0;
        fetch->values[i].type = bind->is_unsigned ? DB_UNSIGNED : DB_INTEGER;
        break;
    case MYSQL_TYPE_DATETIME:
    case MYSQL_TYPE_TIMESTAMP:
    case MYSQL_TYPE_DATE:
        bind->buffer_type = MYSQL_TYPE_DATETIME;
        bind->buffer = &fetch->times[i];
        fetch->values[i].type = DB_TIME;
        break;
    default:
        /* Buffer length 0: the fetch returns the length; column_read fetches the bytes. */
        bind->buffer_type = MYSQL_TYPE_STRING;
        fetch->values[i].type = DB_TEXT;
        break;
    }
}

static bool fetch_begin(struct row_buffers *fetch, MYSQL_STMT *handle)
{
    MYSQL_RES *facts = mysql_stmt_result_metadata(handle);
    fetch->columns = mysql_stmt_field_count(handle);
    if (facts == NULL || fetch->columns > columns_max)
        abort();
    /*
     * Clears only the columns in use, because clearing the whole struct of 13 KiB cost too much for each
     * statement.
     */
    memset(fetch->binds, 0, fetch->columns * sizeof fetch->binds[0]);
    memset(fetch->values, 0, fetch->columns * sizeof fetch->values[0]);
    for (unsigned i = 0; i < fetch->columns; i++)
        column_bind(fetch, i, mysql_fetch_field_direct(facts, i));
    mysql_free_result(facts);
    return mysql_stmt_bind_result(handle, fetch->binds) == 0;
}

static void column_read(struct arena *arena, struct row_buffers *fetch, MYSQL_STMT *handle, unsigned i,
                        struct db_value *value)
{
    value->type = fetch->nulls[i] ? DB_NULL : fetch->values[i].type;
    if (value->type == DB_INTEGER || value->type == DB_UNSIGNED)
        value->integer = fetch->integers[i];
    if (value->type == DB_TIME)
        value->integer = time_of_parts(&fetch->times[i]);
    if (value->type != DB_TEXT)
        return;
    char *text = arena_alloc(arena, fetch->lengths[i] + 1);
    MYSQL_BIND whole = {.buffer_type = MYSQL_TYPE_STRING, .buffer = text, .buffer_length = fetch->lengths[i]};
    if (fetch->lengths[i] > 0)
        mysql_stmt_fetch_column(handle, &whole, i, 0);
    value->text = text;
    value->length = fetch->lengths[i];
}

/* Reads the next row into values; 1 for a row, 0 at the end, -1 for an error. */
static int fetch_next(struct arena *arena, struct row_buffers *fetch, MYSQL_STMT *handle,
                      struct db_value *values)
{
    int state = fault_fails(FAULT_DB_ROW, "") ? 1 : mysql_stmt_fetch(handle);
    if (state == MYSQL_NO_DATA)
        return 0;
    if (state != 0 && state != MYSQL_DATA_TRUNCATED)
        return -1;
    for (unsigned i = 0; i < fetch->columns; i++)
        column_read(arena, fetch, handle, i, &values[i]);
    return 1;
}

/* Reads the rows of the current result into the arena. */
static bool rows_read(struct context *context, MYSQL_STMT *handle, struct db_rows *rows)
{
    struct row_buffers fetch;
    if (!fetch_begin(&fetch, handle) || mysql_stmt_store_result(handle) != 0)
        return false;
    size_t room = (size_t)mysql_stmt_num_rows(handle);
    struct db_value *values = arena_array(context->arena, room * fetch.columns + 1, sizeof *values);
    int state = 1;
    while (rows->count < room &&
           (state = fetch_next(context->arena, &fetch, handle, values + rows->count * fetch.columns)) > 0)
        rows->count++;
    rows->columns = fetch.columns;
    rows->values = values;
    return state >= 0;
}

/* The value of SET last_insert_id, which session tracking adds to the OK packet; 0 if there is none. */
static int64_t session_id_read(MYSQL *mysql)
{
    const char *value;
    size_t length;
    if (mysql_session_track_get_first(mysql, SESSION_TRACK_SYSTEM_VARIABLES, &value, &length) != 0 ||
        mysql_session_track_get_next(mysql, SESSION_TRACK_SYSTEM_VARIABLES, &value, &length) != 0)
        return 0;
    char digits[text_decimal_size] = "";
    int64_t id = 0;
    memcpy(digits, value, length < sizeof digits ? length : 0);
    return text_integer(digits, 1, INT64_MAX, &id) ? id : 0;
}

/* Reads all results of a statement: the rows of the first one with columns, the counts of the others. */
static enum iw_error results_read(const struct db *db, MYSQL_STMT *handle, struct db_rows *rows)
{
    int more = 0;
    while (more == 0) {
        if (mysql_stmt_field_count(handle) == 0) {
            rows->affected += (int64_t)mysql_stmt_affected_rows(handle);
            rows->inserted_id = (int64_t)mysql_stmt_insert_id(handle);
            rows->session_id = session_id_read(db->connection->mysql);
            if (rows->session_id != 0 && fault_fails(FAULT_DB_INSERT_ID, ""))
                rows->session_id = 0;
        } else if (rows->columns == 0 && !rows_read(db->context, handle, rows)) {
            return rows_fail(db, handle);
        }
        mysql_stmt_free_result(handle);
        more = mysql_stmt_next_result(handle);
    }
    if (more < 0)
        return IW_OK;
    /* The server sends its errors in a complete packet; the driver's are from 2000 to 2999. */
    unsigned number = mysql_stmt_errno(handle);
    bool is_of_server = number != 0 && (number < CR_MIN_ERROR || number > CR_MAX_ERROR);
    return is_of_server ? db_fail(db, number, mysql_stmt_error(handle)) : rows_fail(db, handle);
}

enum iw_error db_run(const struct db *db, const char *sql, const struct db_value *parameters, unsigned count,
                     struct db_rows *rows)
{
    struct db_rows unused;
    MYSQL_STMT *handle = NULL;
    bool is_in_transaction = db->connection->is_in_transaction;
    rows = rows != NULL ? rows : &unused;
    for (int try = 1;; try++) {
        memset(rows, 0, sizeof *rows);
        db->connection->is_deadlock = false;
        enum iw_error error = db_execute(db, sql, parameters, count, &handle);
        if (error == IW_OK)
            error = results_read(db, handle, rows);
        if (error == IW_OK)
            error = transaction_check(db, sql);
        /*
         * A statement outside of a transaction had no effect and is repeated here. transaction.c repeats
         * the others.
         */
        if (error == IW_OK || is_in_transaction || !db->connection->is_deadlock || try == statement_tries)
            return error;
        context_clear(db->context);
    }
}

enum iw_error db_each(const struct db *db, const char *sql, const struct db_value *parameters, unsigned count,
                      bool (*take)(void *user, struct db_row *row), void *user)
{
    MYSQL_STMT *handle = NULL;
    struct row_buffers fetch;
    struct db_value values[columns_max] = {0};
    enum iw_error error = db_execute(db, sql, parameters, count, &handle);
    if (error != IW_OK)
        return error;
    struct arena *arena = arena_new(0);
    int state = fetch_begin(&fetch, handle) ? 1 : -1;
    bool is_wanted = true;
    while (state > 0 && is_wanted && (state = fetch_next(arena, &fetch, handle, values)) > 0) {
        struct db_row row = {values, fetch.columns};
        is_wanted = take(user, &row);
        arena_reset(arena);
    }
    arena_free(arena);
    if (state < 0)
        return rows_fail(db, handle);
    if (is_wanted) {
        mysql_stmt_free_result(handle);
        /* The driver does not keep the flag of an answer that is read row by row. */
        if (db->connection->is_in_transaction && mysql_ping(db->connection->mysql) != 0)
            return db_fail(db, mysql_errno(db->connection->mysql), mysql_error(db->connection->mysql));
        return transaction_check(db, sql);
    }
    /* Reading the rest could take longer than a new connection. */
    connection_cut(db->connection);
    db_close(db->connection);
    return IW_OK;
}

enum iw_error db_stream(const struct db *db, const char *sql, const struct db_value *parameters,
                        unsigned count, bool (*take)(void *user, struct db_row *row), void *user)
{
    const char *limited =
        arena_printf(db->context->arena, "SET STATEMENT max_statement_time = %d FOR %s", stream_max_s, sql);
    return db_each(db, limited, parameters, count, take, user);
}

bool db_has_failed(const struct db_connection *connection)
{
    return connection->has_failed;
}

bool db_is_conflict(const struct db_connection *connection)
{
    return connection->is_conflict;
}

enum iw_error db_run_plain(const struct db *db, const char *sql, size_t length)
{
    db->connection->is_conflict = false;
    enum iw_error error = db_open(db);
    if (error != IW_OK)
        return error;
    if (mysql_real_query(db->connection->mysql, sql, length) != 0)
        return db_fail(db, mysql_errno(db->connection->mysql), mysql_error(db->connection->mysql));
    MYSQL_RES *rows = mysql_store_result(db->connection->mysql);
    if (rows != NULL)
        mysql_free_result(rows);
    return IW_OK;
}

enum iw_error db_begin(const struct db *db)
{
    db->connection->is_conflict = false;
    enum iw_error error = db_run(db, "START TRANSACTION", NULL, 0, NULL);
    db->connection->is_in_transaction = error == IW_OK;
    fault_key_clear(FAULT_TRANSACTION);
    if (error == IW_OK && fault_fails(FAULT_DB_BEGUN, ""))
        connection_cut(db->connection);
    return error;
}

enum iw_error db_commit(const struct db *db)
{
    if (db->connection->mysql == NULL)
        return context_fail(db->context, IW_SERVICE_UNAVAILABLE, NULL);
    if (fault_fails(FAULT_DB_COMMIT, fault_key(FAULT_TRANSACTION)))
        connection_cut(db->connection);
    enum iw_error error =
        mysql_query(db->connection->mysql, "COMMIT") != 0
            ? db_fail(db, mysql_errno(db->connection->mysql), mysql_error(db->connection->mysql))
            : answer_lost(db, FAULT_DB_COMMITTED, fault_key(FAULT_TRANSACTION));
    db->connection->is_in_transaction = false;
    /* Galera lost the quorum during the commit, so other nodes may have committed. */
    if (error != IW_OK && db->connection->mysql == NULL)
        db->connection->is_conflict = false;
    return error;
}

void db_rollback(struct db_connection *connection)
{
    if (connection->mysql != NULL && mysql_query(connection->mysql, "ROLLBACK") != 0)
        db_close(connection);
    connection->is_in_transaction = false;
}

bool db_is_begun(const struct db_connection *connection)
{
    return connection->is_in_transaction;
}

const char *db_folder(const struct db *db)
{
    struct db_rows rows;
    struct context quiet;
    struct db_connection *connection = db->connection;
    if (connection->hosts.count > 1 || !endpoint_is_socket(&connection->hosts.of[0]))
        return NULL;
    context_init(&quiet, db->context->arena, db->context->request_id);
    const struct db asking = {&quiet, connection};
    if (connection->folder == NULL && db_run(&asking, "SELECT @@datadir", NULL, 0, &rows) == IW_OK)
        connection->folder = strdup(db_text_of(db_at(&rows, 0, 0)));
    return connection->folder;
}

enum iw_error db_server_read(const struct db *db, struct db_server *server)
{
    struct db_rows rows;
    enum iw_error error = db_run(
        db,
        arena_printf(
            db->context->arena,
            "SELECT VERSION(), %s, @@SESSION.character_set_connection, "
            "(SELECT default_character_set_name FROM information_schema.schemata WHERE schema_name = "
            "DATABASE()), UTC_TIMESTAMP(3), @@max_allowed_packet, IF(@@read_only, 1, 0), "
            "IF(@@max_user_connections = 0, @@max_connections, LEAST(@@max_connections, "
            "@@max_user_connections)), "
            "(SELECT variable_value FROM information_schema.global_status WHERE variable_name = "
            "'wsrep_cluster_size'), (SELECT variable_value FROM information_schema.global_status WHERE "
            "variable_name = 'wsrep_local_state_comment'), "
            "IF(@@log_bin AND @@SESSION.binlog_format = 'STATEMENT', 1, 0)",
            db_hosts_session_question(db->context->arena)),
        NULL, 0, &rows);
    if (error != IW_OK)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *server = (struct db_server){0};
    server->version = db_next_text(&columns);
    server->session_unset = db_next_text(&columns);
    server->connection_set = db_next_text(&columns);
    server->database_set = db_next_text(&columns);
    server->now_ms = db_next_integer(&columns);
    server->packet_bytes = db_next_integer(&columns);
    server->is_read_only = db_next_bool(&columns);
    server->connections_max = db_next_integer(&columns);
    server->cluster_size = db_next_integer(&columns);
    server->cluster_state = db_next_text(&columns);
    server->is_statement_logged = db_next_bool(&columns);
    return IW_OK;
}
