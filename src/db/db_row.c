#include "db/db_row.h"

#include <stdlib.h>
#include <string.h>

struct db_value db_integer(int64_t value)
{
    return (struct db_value){.type = DB_INTEGER, .integer = value};
}

struct db_value db_unsigned(uint64_t value)
{
    return (struct db_value){.type = DB_UNSIGNED, .integer = (int64_t)value};
}

struct db_value db_bytes(const void *bytes, size_t length)
{
    return (struct db_value){.type = bytes == NULL ? DB_NULL : DB_TEXT, .text = bytes, .length = length};
}

struct db_value db_text(const char *text)
{
    return db_bytes(text, text == NULL ? 0 : strlen(text));
}

struct db_value db_time(int64_t time_ms)
{
    return (struct db_value){.type = time_ms == 0 ? DB_NULL : DB_TIME, .integer = time_ms};
}

struct db_value db_null(void)
{
    return (struct db_value){.type = DB_NULL};
}

int64_t db_integer_of(const struct db_value *value)
{
    if (value->type == DB_TEXT)
        return strtoll(value->text, NULL, 10); /* DECIMAL, the type of SUM */
    return value->type == DB_NULL ? 0 : value->integer;
}

const char *db_text_of(const struct db_value *value)
{
    return value->type == DB_TEXT ? value->text : NULL;
}

const struct db_value *db_at(const struct db_rows *rows, size_t row, unsigned column)
{
    if (row >= rows->count || column >= rows->columns)
        abort(); /* The reader expects other columns than the query has: a bug. */
    return &rows->values[row * rows->columns + column];
}

struct db_row db_row(const struct db_rows *rows, size_t number)
{
    return (struct db_row){.next = db_at(rows, number, 0), .left = rows->columns};
}

static const struct db_value *db_next(struct db_row *row)
{
    if (row->left == 0)
        abort(); /* The reader expects more columns than the statement has. */
    row->left--;
    return row->next++;
}

int64_t db_next_integer(struct db_row *row)
{
    return db_integer_of(db_next(row));
}

bool db_next_bool(struct db_row *row)
{
    return db_integer_of(db_next(row)) != 0;
}

const char *db_next_text(struct db_row *row)
{
    return db_text_of(db_next(row));
}

const void *db_next_bytes(struct db_row *row, size_t *length)
{
    const struct db_value *value = db_next(row);
    *length = value->type == DB_TEXT ? value->length : 0;
    return db_text_of(value);
}

bool db_next_is_null(struct db_row *row)
{
    bool is_null = row->left > 0 && row->next->type == DB_NULL;
    if (is_null)
        db_next(row);
    return is_null;
}
