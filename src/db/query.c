#include "db/query.h"

#include <stdlib.h>
#include <string.h>

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
    if (error != IW_OK || rows.count == 0)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *number = db_next_integer(&columns);
    return IW_OK;
}

enum iw_error query_ids(const struct db *db, const char *sql, const struct db_value *parameters,
                        unsigned count, struct query_ids *ids)
{
    struct db_rows rows;
    enum iw_error error = db_run(db, sql, parameters, count, &rows);
    if (error != IW_OK)
        return error;
    ids->items = arena_array(db->context->arena, rows.count + 1, sizeof *ids->items);
    for (ids->count = 0; ids->count < rows.count; ids->count++) {
        struct db_row columns = db_row(&rows, ids->count);
        ids->items[ids->count] = db_next_integer(&columns);
    }
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
    for (texts->count = 0; texts->count < rows.count; texts->count++) {
        struct db_row columns = db_row(&rows, texts->count);
        texts->items[texts->count] = db_next_text(&columns);
    }
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
    for (size_t row = 0; row < rows.count; row++) {
        struct db_row columns = db_row(&rows, row);
        struct query_count *one = &(*counts)[row];
        *one = (struct query_count){0};
        one->state = db_next_text(&columns);
        one->count = db_next_integer(&columns);
    }
    return IW_OK;
}

void query_init(struct query *query, struct arena *arena)
{
    *query = (struct query){.count = 0};
    text_init(&query->sql, arena);
}

void query_append(struct query *query, const char *sql, const struct db_value *parameters, unsigned count)
{
    unsigned marks = 0;
    for (const char *at = strchr(sql, '?'); at != NULL; at = strchr(at + 1, '?'))
        marks++;
    if (marks != count)
        abort();
    text_add_string(&query->sql, sql);
    for (unsigned i = 0; i < count; i++) {
        query->parameters =
            arena_more(query->sql.arena, query->parameters, query->count, sizeof *query->parameters);
        query->parameters[query->count++] = parameters[i];
    }
}

enum iw_error query_run(const struct db *db, const struct query *query, struct db_rows *rows)
{
    return db_run(db, query->sql.data, query->parameters, query->count, rows);
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
