/*
 * MariaDB: the only file pair that includes Connector/C.
 *
 * A struct db is one connection, made when first needed.  Statements are
 * prepared once and remembered by their text, so pass constant texts or a small
 * number of variants.  Rows are copied into the arena of the context.
 *
 * Errors: SERVICE_UNAVAILABLE with retry_after_s when the database is away or
 * read-only (the connection is closed and the next call opens a new one);
 * TWIN_EXISTS for a duplicate key; everything else is SERVER_INTERNAL_ERROR
 * with the driver's message as the cause for the log.  A connection that the
 * server had closed while it lay idle is replaced and the statement sent again,
 * unless a transaction is open.
 */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/context.h>

#include "base/config.h"

struct db;

/* A connection and the context of the work that uses it: every function of src/store takes both as one. */
struct store {
    struct context *context;
    struct db *db;
};

enum db_type { DB_NULL, DB_INTEGER, DB_UNSIGNED, DB_TEXT, DB_TIME };

/* A parameter or a column of a row. */
struct db_value {
    enum db_type type;
    int64_t integer;  /* DB_INTEGER; DB_UNSIGNED as its bits; DB_TIME: ms since 1970 UTC */
    const char *text; /* DB_TEXT: bytes, closed by a zero that is not counted */
    size_t length;
};

/* Parameters. A NULL text and a time of 0 become NULL. */
struct db_value db_integer(int64_t value);
struct db_value db_unsigned(uint64_t value);
struct db_value db_text(const char *text);
struct db_value db_bytes(const void *bytes, size_t length);
struct db_value db_time(int64_t time_ms);
struct db_value db_null(void);

/* Columns: NULL reads as 0, "" or NULL (db_text_of). */
int64_t db_integer_of(const struct db_value *value);
const char *db_text_of(const struct db_value *value);

struct db_rows {
    size_t count;
    unsigned columns;
    const struct db_value *values; /* count * columns of them, row by row */
    int64_t affected;              /* rows changed, for statements without rows */
    int64_t inserted_id;           /* first AUTO_INCREMENT value made */
    int64_t told;                  /* what it left in last_insert_id by SET; 0: nothing */
};

/* The value in a row and column, both from 0. */
const struct db_value *db_at(const struct db_rows *rows, size_t row, unsigned column);

/* Does not connect yet.  Borrows config; copies the password. */
struct db *db_new(const struct config *config, const char *password);
void db_free(struct db *db);

/* Closes the connection; the next call opens a new one (after a fork). */
void db_close(struct db *db);

/*
 * Runs one statement with count parameters for its question marks.  rows may be
 * NULL.  Of a compound statement's results the first one with columns is read.
 */
enum iw_error db_run(const struct store *store, const char *sql, const struct db_value *parameters,
                     unsigned count, struct db_rows *rows) IW_MUST_USE;

/*
 * Runs a SELECT and hands over its rows one by one without keeping them.  The
 * texts of a row live until row answers.  row answers false to stop early.
 */
enum iw_error db_stream(const struct store *store, const char *sql, const struct db_value *parameters,
                        unsigned count,
                        bool (*row)(void *user, const struct db_value *values, unsigned columns),
                        void *user) IW_MUST_USE;

/* Runs text that cannot be prepared (migrations): one statement, no parameters, no rows. */
enum iw_error db_run_plain(const struct store *store, const char *sql, size_t length) IW_MUST_USE;

/*
 * After a call that failed: true when it lost a deadlock or waited too long for a lock.  Nothing
 * of its statement was done, and it may be run again.
 */
bool db_is_conflict(const struct db *db);

/*
 * Runs work inside a transaction: commits when it answers IW_OK, rolls back
 * otherwise.  After a deadlock or a lock wait timeout all of it runs again, three
 * times at most, so work must not keep anything from a run that failed.
 */
enum iw_error db_transaction(const struct store *store,
                             enum iw_error (*work)(const struct store *store, void *user),
                             void *user) IW_MUST_USE;

#endif
