#include "db/query.h"

#include <string.h>

#include "base/text.h"

enum iw_error query_change(const struct db *db, const char *sql, const struct db_value *parameters,
                           unsigned count, int64_t *affected)
{
    struct db_rows rows;
    enum iw_error error = db_run(db, sql, parameters, count, &rows);
    if (error == IW_OK)
        *affected = rows.affected;
    return error;
}

enum iw_error query_number(const struct db *db, const char *sql, const struct db_value *parameters,
                           unsigned count, int64_t *number)
{
    struct db_rows rows;
    enum iw_error error = db_run(db, sql, parameters, count, &rows);
    if (error == IW_OK && rows.count > 0)
        *number = db_integer_of(db_at(&rows, 0, 0));
    return error;
}

enum iw_error query_ids(const struct db *db, const char *sql, const struct db_value *parameters,
                        unsigned count, struct query_ids *ids)
{
    struct db_rows rows;
    enum iw_error error = db_run(db, sql, parameters, count, &rows);
    if (error != IW_OK)
        return error;
    ids->items = arena_array(db->context->arena, rows.count + 1, sizeof *ids->items);
    for (ids->count = 0; ids->count < rows.count; ids->count++)
        ids->items[ids->count] = db_integer_of(db_at(&rows, ids->count, 0));
    return IW_OK;
}

enum iw_error query_texts(const struct db *db, const char *sql, const struct db_value *parameters,
                          unsigned count, struct query_texts *texts)
{
    struct db_rows rows;
    enum iw_error error = db_run(db, sql, parameters, count, &rows);
    if (error != IW_OK)
        return error;
    texts->items = arena_array(db->context->arena, rows.count + 1, sizeof *texts->items);
    for (texts->count = 0; texts->count < rows.count; texts->count++)
        texts->items[texts->count] = db_text_of(db_at(&rows, texts->count, 0));
    return IW_OK;
}

enum iw_error query_counts(const struct db *db, const char *sql, struct query_count **counts, unsigned *count)
{
    struct db_rows rows;
    enum iw_error error = db_run(db, sql, NULL, 0, &rows);
    if (error != IW_OK)
        return error;
    *counts = arena_array(db->context->arena, rows.count + 1, sizeof **counts);
    *count = (unsigned)rows.count;
    for (size_t row = 0; row < rows.count; row++)
        (*counts)[row] = (struct query_count){.state = db_text_of(db_at(&rows, row, 0)),
                                              .count = db_integer_of(db_at(&rows, row, 1))};
    return IW_OK;
}

const char *query_pattern(struct arena *arena, const char *keyword)
{
    struct text pattern;
    if (keyword == NULL)
        return NULL;
    text_init(&pattern, arena);
    text_add_string(&pattern, "%");
    for (; *keyword != '\0'; keyword++) {
        if (strchr("\\%_", *keyword) != NULL)
            text_add_string(&pattern, "\\");
        text_add(&pattern, keyword, 1);
    }
    text_add_string(&pattern, "%");
    return pattern.data;
}
