#include "db/request_log.h"

#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "db/transaction.h"

enum { log_columns = 9, body_columns = 5, group_max = 64 };

/* A statement that inserts any number of rows. */
struct insertion {
    const char *head;  /* "INSERT INTO t (a, b) VALUES " */
    const char *marks; /* "(?, ?)" */
    unsigned columns;
};

/* Inserts count rows with one statement. Only powers of two occur, so that few statements are prepared. */
static enum iw_error group_insert(const struct db *db, const struct insertion *insertion,
                                  const struct db_value *values, unsigned count)
{
    struct text sql;
    text_init(&sql, db->context->arena);
    text_add_string(&sql, insertion->head);
    for (unsigned i = 0; i < count; i++)
        text_printf(&sql, "%s%s", i == 0 ? "" : ", ", insertion->marks);
    return db_run(db, sql.data, values, count * insertion->columns, NULL);
}

static enum iw_error rows_insert(const struct db *db, const struct insertion *insertion,
                                 const struct db_value *values, unsigned count)
{
    enum iw_error error = IW_OK;
    for (unsigned group = group_max; error == IW_OK && group > 0; group /= 2)
        for (; error == IW_OK && count >= group; values += group * insertion->columns, count -= group)
            error = group_insert(db, insertion, values, group);
    return error;
}

static bool has_bodies(const struct request_log_row *rows, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (rows[i].request_body != NULL)
            return true;
    return false;
}

static enum iw_error bodies_insert(const struct db *db, const struct request_log_row *rows, unsigned count)
{
    static const struct insertion bodies = {
        "INSERT INTO request_bodies (account_id, request_id, request_body, response_body, at) VALUES ",
        "(?, ?, ?, ?, ?)", body_columns};
    struct db_value *values = arena_array(db->context->arena, (size_t)count * body_columns, sizeof *values);
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++) {
        if (rows[i].request_body == NULL)
            continue;
        const struct db_value row[body_columns] = {db_integer(rows[i].account_id),
                                                   db_text(rows[i].request_id), db_text(rows[i].request_body),
                                                   db_text(rows[i].response_body), db_time(rows[i].at_ms)};
        memcpy(&values[kept++ * body_columns], row, sizeof row);
    }
    return rows_insert(db, &bodies, values, kept);
}

static enum iw_error log_insert(const struct db *db, const struct request_log_row *rows, unsigned count)
{
    static const struct insertion log = {"INSERT INTO request_log (account_id, key_id, request_id, method, "
                                         "path, status, code, ms, at) VALUES ",
                                         "(?, ?, ?, ?, ?, ?, ?, ?, ?)", log_columns};
    struct db_value *values = arena_array(db->context->arena, (size_t)count * log_columns, sizeof *values);
    for (unsigned i = 0; i < count; i++) {
        const struct db_value row[log_columns] = {
            db_integer(rows[i].account_id), db_integer(rows[i].key_id), db_text(rows[i].request_id),
            db_text(rows[i].method),        db_text(rows[i].path),      db_integer(rows[i].status),
            db_text(rows[i].code),          db_integer(rows[i].ms),     db_time(rows[i].at_ms)};
        memcpy(&values[i * log_columns], row, sizeof row);
    }
    return rows_insert(db, &log, values, count);
}

/* A commit costs more than the rows, so both tables share one. A failure of bodies must not lose the log. */
enum iw_error request_log_insert(const struct db *db, const struct request_log_row *rows, unsigned count)
{
    enum iw_error error;
    if (!has_bodies(rows, count))
        return log_insert(db, rows, count);
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        error = log_insert(db, rows, count);
        if (error == IW_OK)
            error = bodies_insert(db, rows, count);
    }
    if (error == IW_OK || error == IW_SERVICE_UNAVAILABLE)
        return error;
    log_failure(db->context, "request_bodies_dropped");
    context_clear(db->context);
    return log_insert(db, rows, count);
}

enum iw_error request_log_bodies(const struct db *db, int64_t account_id, const char *request_id,
                                 struct request_log_row *row, bool *is_found)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(account_id), db_text(request_id)};
    enum iw_error error =
        db_run(db,
               "SELECT request_body, response_body FROM request_bodies WHERE id = (SELECT MAX(id) FROM "
               "request_bodies FORCE INDEX (request_bodies_account) WHERE account_id = ? AND request_id = ?)",
               values, 2, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    row->request_body = db_next_text(&columns);
    row->response_body = db_next_text(&columns);
    return IW_OK;
}

#define LOG_FILTER                                                                                           \
    "FROM request_log FORCE INDEX (request_log_account) WHERE account_id = ? AND id BETWEEN ? AND ? AND at " \
    ">= ? AND (? IS NULL OR method = ?) AND status BETWEEN ? AND ? AND (? IS NULL OR code = ?) AND (? = 0 "  \
    "OR key_id = ?) AND (? IS NULL OR request_id = ?) ORDER BY id DESC"

enum { filter_values = 14 };

static void filter_write(const struct request_log_filter *filter, int64_t first_id, int64_t last_id,
                         struct db_value values[filter_values])
{
    const struct db_value all[filter_values] = {
        db_integer(filter->account_id),  db_integer(first_id),          db_integer(last_id),
        db_time(filter->since_ms),       db_text(filter->method),       db_text(filter->method),
        db_integer(filter->status_from), db_integer(filter->status_to), db_text(filter->code),
        db_text(filter->code),           db_integer(filter->key_id),    db_integer(filter->key_id),
        db_text(filter->request_id),     db_text(filter->request_id)};
    for (unsigned i = 0; i < filter_values; i++)
        values[i] = all[i];
}

/*
 * Finds the ids that a search reads. Sets *older_id to 0, or to the id before which the search of older rows
 * begins.
 */
static enum iw_error window_find(const struct db *db, const struct request_log_filter *filter,
                                 int64_t *first_id, int64_t *older_id)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(filter->account_id), db_integer(filter->before_id)};
    enum iw_error error =
        db_run(db,
               "SELECT COUNT(*), COALESCE(MIN(id), 0) FROM (SELECT id FROM request_log WHERE account_id = ? "
               "AND id < ? ORDER BY id DESC LIMIT 5000) newest",
               values, 2, &rows);
    if (error != IW_OK)
        return error;
    struct db_row columns = db_row(&rows, 0);
    int64_t count = db_next_integer(&columns);
    *first_id = db_next_integer(&columns);
    *older_id = count == request_log_window ? *first_id : 0;
    return IW_OK;
}

_Static_assert(request_log_window == 5000, "the statement above has the number");

static enum iw_error rows_read(const struct db *db, const struct request_log_filter *filter,
                               const int64_t *ids, size_t count, struct request_log_row *list)
{
    struct db_rows rows;
    struct db_value values[filter_values];
    filter_write(filter, ids[count - 1], ids[0], values);
    enum iw_error error =
        db_run(db, "SELECT key_id, request_id, method, path, status, code, ms, at " LOG_FILTER, values,
               filter_values, &rows);
    for (size_t row = 0; error == IW_OK && row < rows.count && row < count; row++) {
        struct db_row columns = db_row(&rows, row);
        struct request_log_row *item = &list[row];
        *item = (struct request_log_row){.account_id = filter->account_id};
        item->key_id = db_next_integer(&columns);
        item->request_id = db_next_text(&columns);
        item->method = db_next_text(&columns);
        item->path = db_next_text(&columns);
        item->status = (unsigned)db_next_integer(&columns);
        item->code = db_next_text(&columns);
        item->ms = db_next_integer(&columns);
        item->at_ms = db_next_integer(&columns);
    }
    return error;
}

enum iw_error request_log_page(const struct db *db, const struct request_log_filter *filter,
                               struct request_log_rows *list)
{
    struct query_ids ids = {.count = 0};
    struct db_value values[filter_values];
    int64_t first_id = 0;
    enum iw_error error = window_find(db, filter, &first_id, &list->older_id);
    filter_write(filter, first_id, filter->before_id - 1, values);
    if (error == IW_OK)
        error = query_ids(db, "SELECT id " LOG_FILTER, values, filter_values, &ids);
    size_t offset = filter->offset < (int64_t)ids.count ? (size_t)filter->offset : ids.count;
    size_t left = ids.count - offset;
    list->total = (int64_t)ids.count;
    list->count = filter->limit < (int64_t)left ? (size_t)filter->limit : left;
    list->items = arena_array(db->context->arena, list->count + 1, sizeof *list->items);
    return error == IW_OK && list->count > 0
               ? rows_read(db, filter, ids.items + offset, list->count, list->items)
               : error;
}

/*
 * The log, then bodies. Ids grow with time, so that no index on the time is needed.  A row of bodies has up
 * to 8 KB, so that fewer are read at a time.
 */
static const struct {
    const char *last;
    const char *delete;
} old_rows[] = {
    {"SELECT MAX(id) FROM (SELECT id, at FROM request_log ORDER BY id LIMIT 5000) oldest WHERE at < ?",
     "DELETE FROM request_log WHERE id <= ?"},
    {"SELECT MAX(id) FROM (SELECT id, at FROM request_bodies ORDER BY id LIMIT 1000) oldest WHERE at < ?",
     "DELETE FROM request_bodies WHERE id <= ?"},
    {"SELECT MAX(delivery_id) FROM (SELECT b.delivery_id, d.created_at FROM delivery_bodies b JOIN "
     "webhook_deliveries d ON d.id = b.delivery_id ORDER BY b.delivery_id LIMIT 1000) oldest WHERE "
     "created_at < ?",
     "DELETE FROM delivery_bodies WHERE delivery_id <= ?"},
};

enum iw_error request_log_forget(const struct db *db, int64_t before_ms, int64_t bodies_before_ms,
                                 int64_t *count)
{
    enum iw_error error = IW_OK;
    *count = 0;
    for (size_t i = 0; error == IW_OK && i < sizeof old_rows / sizeof old_rows[0]; i++) {
        int64_t last_id = 0, deleted = 0;
        const struct db_value before[] = {db_time(i == 0 ? before_ms : bodies_before_ms)};
        error = query_number(db, old_rows[i].last, before, 1, &last_id);
        const struct db_value last[] = {db_integer(last_id)};
        if (error == IW_OK && last_id > 0)
            error = query_change(db, old_rows[i].delete, last, 1, &deleted);
        *count += deleted;
    }
    return error;
}
