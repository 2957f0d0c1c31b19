/* One statement and its result as a number, ids, texts, counts, or a table for an operator. */
#ifndef DB_QUERY_H
#define DB_QUERY_H

#include <stdint.h>

#include "base/context.h"
#include "base/text.h"
#include "db/db.h"

/* Rows with the names of their columns, for an operator.  Ids above 32 bits are text. */
struct query_table {
    const char *name;           /* "files" */
    const char *const *columns; /* rows.columns of them */
    struct db_rows rows;
};

/* The number of rows, or bytes, in a state. */
struct query_count {
    const char *state;
    int64_t count;
};

/* Runs a statement that changes rows and sets affected to their number. */
enum iw_error query_change(const struct db *db, const char *sql, const struct db_value *parameters,
                           unsigned count, int64_t *affected) IW_MUST_USE;

/* Reads the integer in the first row and column; number is unchanged if there is no row. */
enum iw_error query_number(const struct db *db, const char *sql, const struct db_value *parameters,
                           unsigned count, int64_t *number) IW_MUST_USE;

/* The integers of the first column, in the arena. */
struct query_ids {
    int64_t *items;
    unsigned count;
};
enum iw_error query_ids(const struct db *db, const char *sql, const struct db_value *parameters,
                        unsigned count, struct query_ids *ids) IW_MUST_USE;

/* The texts of the first column, in the arena. */
struct query_texts {
    const char **items;
    unsigned count;
};
enum iw_error query_texts(const struct db *db, const char *sql, const struct db_value *parameters,
                          unsigned count, struct query_texts *texts) IW_MUST_USE;

/* A state and a number in each row, in the arena. */
enum iw_error query_counts(const struct db *db, const char *sql, struct query_count **counts,
                           unsigned *count) IW_MUST_USE;

/*
 * A statement that is put together.  Each part adds its text and its parameters in the same call, so that
 * no code counts the question marks of another part.
 */
struct query {
    struct text sql;
    struct db_value *parameters;
    unsigned count;
};

/* An empty statement in the arena. */
void query_init(struct query *query, struct arena *arena);

/* Adds a text with count question marks, and their parameters.  Aborts if the numbers differ. */
void query_append(struct query *query, const char *sql, const struct db_value *parameters, unsigned count);

/* Runs the statement like db_run. */
enum iw_error query_run(const struct db *db, const struct query *query, struct db_rows *rows) IW_MUST_USE;

/*
 * Returns a LIKE pattern for texts that contain keyword, in which % _ and \ are literal. Returns NULL for
 * NULL.
 */
const char *query_pattern(struct arena *arena, const char *keyword);

#endif
