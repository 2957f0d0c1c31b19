/* Parameters of statements, and the rows of their results. */
#ifndef DB_DB_ROW_H
#define DB_DB_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum db_type { DB_NULL, DB_INTEGER, DB_UNSIGNED, DB_TEXT, DB_TIME };

/* A parameter or a column of a row. */
struct db_value {
    enum db_type type;
    int64_t integer;  /* DB_INTEGER; DB_UNSIGNED as its bits; DB_TIME: ms since 1970 UTC */
    const char *text; /* DB_TEXT: bytes and a zero that length does not count */
    size_t length;
};

/* Parameters.  A NULL text and a time of 0 become NULL. */
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
    int64_t inserted_id;           /* first new AUTO_INCREMENT value */
    int64_t session_id;            /* last_insert_id as the statement SET it; 0 if it did not */
};

/*
 * Reads the columns of a row in the order of the statement, so that no reader counts them: one call reads one
 * column.  C does not define the order of calls in one expression, so each call has its own statement or
 * declarator. Aborts after the last column.
 */
struct db_row {
    const struct db_value *next;
    unsigned left;
};

/* The row with a number from 0.  Aborts outside of the rows.  Borrows rows. */
struct db_row db_row(const struct db_rows *rows, size_t number);

/* NULL reads as 0, false or NULL. */
int64_t db_next_integer(struct db_row *row);
bool db_next_bool(struct db_row *row);
const char *db_next_text(struct db_row *row);
const void *db_next_bytes(struct db_row *row, size_t *length);

/* Skips the column if it is NULL. */
bool db_next_is_null(struct db_row *row);

/* The value in a row and column, both from 0.  Aborts outside of the rows. */
const struct db_value *db_at(const struct db_rows *rows, size_t row, unsigned column);

#endif
