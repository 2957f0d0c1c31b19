#include "store/orders.h"

#include <stdlib.h>

#include <imgward/arena.h>
#include <imgward/fault.h>

#include "base/text.h"
#include "store/jobs.h"

/* The columns that order_read takes, in its order. */
#define ORDER_COLUMNS                                                                                        \
    "o.id, o.type, o.channel, o.status, o.name, o.body_digest, o.zero_copy, o.has_thumbnail, "               \
    "o.zip_store_key, o.file_count, o.completed_file_count, o.watermark_text, o.error_code, o.created_at, "  \
    "o.updated_at, o.expires_at"

/* The columns that file_read takes, in its order. */
#define FILE_COLUMNS                                                                                         \
    "f.id, f.position, f.role = 'original', f.name, f.status, f.error_code, f.error_sentence, "              \
    "f.source_url, "                                                                                         \
    "f.note_code, f.note_sentence"

enum { order_columns = 16 };

/*
 * An order with all its files; a join, so that it is one query.  Without ORDER BY: to find out that
 * the index has them in order takes the optimizer longer than sorting a few pointers takes us.
 */
#define ORDER_WITH_FILES                                                                                     \
    "SELECT " ORDER_COLUMNS ", " FILE_COLUMNS " FROM orders o JOIN files f ON f.order_id = o.id "

static void order_read(const struct db_value *columns, struct order *order)
{
    *order = (struct order){
        .id = db_integer_of(&columns[0]),
        .name = db_text_of(&columns[4]),
        .body_digest = db_text_of(&columns[5]),
        .is_zero_copy = db_integer_of(&columns[6]) != 0,
        .has_thumbnail = db_integer_of(&columns[7]) != 0,
        .zip_store_key = db_text_of(&columns[8]),
        .file_count = (unsigned)db_integer_of(&columns[9]),
        .completed_file_count = (unsigned)db_integer_of(&columns[10]),
        .watermark_text = db_text_of(&columns[11]),
        .error_code = db_text_of(&columns[12]),
        .created_ms = db_integer_of(&columns[13]),
        .updated_ms = db_integer_of(&columns[14]),
        .expires_ms = db_integer_of(&columns[15]),
    };
    if (!order_type_read(db_text_of(&columns[1]), &order->type) ||
        !order_channel_read(db_text_of(&columns[2]), &order->channel) ||
        !order_status_read(db_text_of(&columns[3]), &order->status))
        abort(); /* The schema knows the same words as the program, or they do not belong together. */
}

static void file_read(const struct db_value *columns, struct order_file *file)
{
    *file = (struct order_file){
        .id = db_integer_of(&columns[0]),
        .position = (unsigned)db_integer_of(&columns[1]),
        .is_original = db_integer_of(&columns[2]) != 0,
        .name = db_text_of(&columns[3]),
        .error_code = db_text_of(&columns[5]),
        .error_sentence = db_text_of(&columns[6]),
        .source_url = db_text_of(&columns[7]),
        .note_code = db_text_of(&columns[8]),
        .note_sentence = db_text_of(&columns[9]),
    };
    if (!file_status_read(db_text_of(&columns[4]), &file->status))
        abort(); /* see order_read */
}

/* ---- writing ---- */

/* Files that are uploaded and nothing else: most orders are of these alone. */
static bool is_plain(const struct order_row_file *file)
{
    return file->source_url == NULL && file->target_url == NULL && !file->is_original;
}

static bool is_all_plain(const struct order_row *row)
{
    for (unsigned i = 0; i < row->file_rows; i++)
        if (!is_plain(&row->files[i]))
            return false;
    return true;
}

static unsigned text_count(const struct order_row *row)
{
    unsigned count = 0;
    for (unsigned i = 0; i < row->file_rows; i++)
        count += row->files[i].text_count;
    return count;
}

/* "group, group, group" */
static void groups_add(struct text *sql, const char *group, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        text_printf(sql, "%s%s", i == 0 ? "" : ", ", group);
}

/* So many bits of what it tells are the step from file to file: auto_increment_increment is 65535 at most. */
enum { step_bits = 16 };

/*
 * The compound statement for an order of that shape: one round trip, all or nothing.  It tells the number of
 * the first file by setting a variable that the server reports with its last word: a SELECT would be a result
 * of its own, to be sent, described and read (a fifth of the server's work on a small order).
 */
static const char *insert_text(struct arena *arena, const struct order_row *row)
{
    struct text sql;
    text_init(&sql, arena);
    text_add_string(&sql, "BEGIN NOT ATOMIC DECLARE first BIGINT; "
                          "DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; "
                          "START TRANSACTION; "
                          "INSERT INTO orders (id, account_id, type, status, name, idempotency_key, "
                          "body_digest, strength, zero_copy, include_original, file_count, request_id, "
                          "created_at, updated_at, started_at, expires_at) VALUES "
                          "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?); ");
    if (is_all_plain(row)) {
        text_add_string(&sql, "INSERT INTO files (order_id, position, name, updated_at) VALUES ");
        groups_add(&sql, "(?, ?, ?, ?)", row->file_rows);
    } else {
        text_add_string(&sql, "INSERT INTO files (order_id, position, name, updated_at, role, source_url, "
                              "target_url, target_key, target_expires_at, target_headers) VALUES ");
        groups_add(&sql, "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row->file_rows);
    }
    text_add_string(&sql, "; SET first = LAST_INSERT_ID(); ");
    if (text_count(row) > 0) {
        text_add_string(&sql,
                        "INSERT INTO order_watermarks (order_id, file_position, copy, text_id) VALUES ");
        groups_add(&sql, "(?, ?, ?, ?)", text_count(row));
        text_add_string(&sql, "; ");
    }
    if (row->is_started)
        text_printf(&sql, "%s; ", jobs_insert_for_order_sql);
    text_add_string(&sql, "COMMIT; SET last_insert_id = first << 16 | @@auto_increment_increment; END");
    return sql.data;
}

static struct db_value *order_parameters(struct context *context, const struct order_row *row,
                                         struct db_value *next)
{
    enum order_status status = row->is_started ? ORDER_IN_PROGRESS : ORDER_PENDING;
    *next++ = db_integer(row->id);
    *next++ = db_integer(row->account_id);
    *next++ = db_text(order_type_name(row->type));
    *next++ = db_text(order_status_name(status));
    *next++ = db_text(row->name);
    *next++ = db_bytes(row->key, row->key_length);
    *next++ = db_bytes(row->body_digest, 32);
    *next++ = row->type == ORDER_ANTI_AI ? db_text(order_strength_name(row->strength)) : db_null();
    *next++ = db_integer(row->is_zero_copy);
    *next++ = db_integer(row->file_rows > row->file_count);
    *next++ = db_integer(row->file_count);
    *next++ = db_text(context->request_id);
    *next++ = db_time(row->created_ms);
    *next++ = db_time(row->created_ms);
    *next++ = db_time(row->is_started ? row->created_ms : 0);
    *next++ = db_time(row->is_started ? 0 : row->expires_ms);
    return next;
}

static struct db_value *file_parameters(const struct order_row *row, bool is_plain_form,
                                        struct db_value *next)
{
    for (unsigned i = 0; i < row->file_rows; i++) {
        const struct order_row_file *file = &row->files[i];
        *next++ = db_integer(row->id);
        *next++ = db_integer(file->position);
        *next++ = db_text(file->name);
        *next++ = db_time(row->created_ms);
        if (is_plain_form)
            continue;
        *next++ = db_text(file->is_original ? "original" : "main");
        *next++ = db_text(file->source_url);
        *next++ = db_text(file->target_url);
        *next++ = db_text(file->target_key);
        *next++ = db_time(file->target_expires_ms);
        *next++ = db_text(file->target_headers);
    }
    return next;
}

static struct db_value *text_parameters(const struct order_row *row, struct db_value *next)
{
    for (unsigned i = 0; i < row->file_rows; i++)
        for (unsigned copy = 1; copy <= row->files[i].text_count; copy++) {
            *next++ = db_integer(row->id);
            *next++ = db_integer(row->files[i].position);
            *next++ = db_integer(copy);
            *next++ = db_integer(row->files[i].text_ids[copy - 1]);
        }
    return next;
}

/* Somebody between us and the server keeps its reports back: the order is there, its files are asked for. */
static enum iw_error file_ids_read(const struct store *store, const struct order_row *row, int64_t *file_ids)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(row->id)};
    enum iw_error error =
        db_run(store, "SELECT id FROM files WHERE order_id = ? ORDER BY id", parameters, 1, &rows);
    if (error == IW_OK && rows.count != row->file_rows) {
        context_cause(store->context, "%zu files of an order of %u", rows.count, row->file_rows);
        error = context_fail(store->context, IW_SERVER_INTERNAL_ERROR, NULL);
    }
    for (size_t i = 0; error == IW_OK && i < rows.count; i++)
        file_ids[i] = db_integer_of(db_at(&rows, i, 0));
    return error;
}

enum iw_error orders_insert(const struct store *store, const struct order_row *row, int64_t *file_ids)
{
    struct db_rows rows;
    size_t room = 18 + 10 * (size_t)row->file_rows + 4 * (size_t)text_count(row);
    struct db_value *parameters = arena_array(store->context->arena, room, sizeof *parameters);
    struct db_value *next = order_parameters(store->context, row, parameters);
    next = file_parameters(row, is_all_plain(row), next);
    next = text_parameters(row, next);
    if (row->is_started) {
        *next++ = db_text(store->context->request_id);
        *next++ = db_integer(row->id);
    }
    enum iw_error error = db_run(store, insert_text(store->context->arena, row), parameters,
                                 (unsigned)(next - parameters), &rows);
    if (error != IW_OK)
        return error;
    if (rows.told == 0 || fault_fails(FAULT_ORDER_TOLD))
        return file_ids_read(store, row, file_ids);
    /* A plain multi-row INSERT gets numbers that follow each other by the server's step. */
    int64_t first = rows.told >> step_bits, step = rows.told & ((1 << step_bits) - 1);
    for (unsigned i = 0; i < row->file_rows; i++)
        file_ids[i] = first + step * i;
    return IW_OK;
}

/* ---- reading ---- */

/* As the client named them, the originals behind. */
static int file_compare(const void *a, const void *b)
{
    const struct order_file *one = a, *other = b;
    if (one->is_original != other->is_original)
        return one->is_original ? 1 : -1;
    return one->position < other->position ? -1 : one->position > other->position;
}

static enum iw_error order_fetch(const struct store *store, const char *sql,
                                 const struct db_value *parameters, unsigned count, struct order *order,
                                 struct order_file **files)
{
    struct db_rows rows;
    enum iw_error error = db_run(store, sql, parameters, count, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return IW_NOT_FOUND;
    order_read(db_at(&rows, 0, 0), order);
    order->file_rows = (unsigned)rows.count;
    *files = arena_array(store->context->arena, rows.count + 1, sizeof **files);
    for (size_t i = 0; i < rows.count; i++)
        file_read(db_at(&rows, i, order_columns), &(*files)[i]);
    qsort(*files, rows.count, sizeof **files, file_compare);
    return IW_OK;
}

enum iw_error orders_find(const struct store *store, int64_t account_id, int64_t id, struct order *order,
                          struct order_file **files)
{
    const struct db_value parameters[] = {db_integer(id), db_integer(account_id)};
    return order_fetch(store, ORDER_WITH_FILES "WHERE o.id = ? AND o.account_id = ?", parameters, 2, order,
                       files);
}

enum iw_error orders_find_by_key(const struct store *store, int64_t account_id, enum order_type type,
                                 const char *key, size_t key_length, struct order *order,
                                 struct order_file **files)
{
    const struct db_value parameters[] = {db_integer(account_id), db_text(order_type_name(type)),
                                          db_bytes(key, key_length)};
    return order_fetch(store,
                       ORDER_WITH_FILES "WHERE o.account_id = ? AND o.type = ? AND o.idempotency_key = ?",
                       parameters, 3, order, files);
}

enum iw_error orders_lock(const struct store *store, int64_t account_id, int64_t id, struct order *order,
                          struct order_file **files)
{
    const struct db_value parameters[] = {db_integer(id), db_integer(account_id)};
    struct db_rows rows;
    enum iw_error error = db_run(store, "SELECT id FROM orders WHERE id = ? AND account_id = ? FOR UPDATE",
                                 parameters, 2, &rows);
    if (error != IW_OK)
        return error;
    return rows.count == 0 ? IW_NOT_FOUND : orders_find(store, account_id, id, order, files);
}

enum iw_error orders_start(const struct store *store, int64_t id, enum order_status from,
                           enum order_status to, int64_t now_ms)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_text(order_status_name(to)), db_time(now_ms), db_time(now_ms),
                                          db_integer(id), db_text(order_status_name(from))};
    enum iw_error error =
        db_run(store,
               "UPDATE orders SET status = ?, started_at = ?, updated_at = ?, expires_at = NULL "
               "WHERE id = ? AND status = ?",
               parameters, 5, &rows);
    return error == IW_OK && rows.affected == 0 ? IW_NOT_FOUND : error;
}

enum iw_error orders_texts(const struct store *store, int64_t id, struct order_text **texts, size_t *count)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(id)};
    enum iw_error error =
        db_run(store,
               "SELECT t.id, f.id, t.text FROM order_watermarks w JOIN watermark_texts t ON t.id = w.text_id "
               "JOIN files f ON f.order_id = w.order_id AND f.role = 'main' AND f.position = w.file_position "
               "WHERE w.order_id = ? ORDER BY w.file_position, w.copy",
               parameters, 1, &rows);
    if (error != IW_OK)
        return error;
    *count = rows.count;
    *texts = arena_array(store->context->arena, rows.count + 1, sizeof **texts);
    for (size_t i = 0; i < rows.count; i++)
        (*texts)[i] = (struct order_text){.id = db_integer_of(db_at(&rows, i, 0)),
                                          .file_id = db_integer_of(db_at(&rows, i, 1)),
                                          .text = db_text_of(db_at(&rows, i, 2)),
                                          .length = db_at(&rows, i, 2)->length};
    return IW_OK;
}

enum iw_error orders_results(const struct store *store, int64_t id, struct order_result **results,
                             size_t *count)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(id)};
    enum iw_error error =
        db_run(store,
               "SELECT r.id, r.name, r.format, r.file_id FROM results r JOIN files f ON f.id = r.file_id "
               "WHERE r.order_id = ? ORDER BY f.position, r.copy",
               parameters, 1, &rows);
    if (error != IW_OK)
        return error;
    *count = rows.count;
    *results = arena_array(store->context->arena, rows.count + 1, sizeof **results);
    for (size_t i = 0; i < rows.count; i++)
        (*results)[i] = (struct order_result){.id = db_integer_of(db_at(&rows, i, 0)),
                                              .name = db_text_of(db_at(&rows, i, 1)),
                                              .format = format_by_name(db_text_of(db_at(&rows, i, 2))),
                                              .file_id = db_integer_of(db_at(&rows, i, 3))};
    return IW_OK;
}

enum { filter_parameters_max = 12 };

/* "FROM orders WHERE ..." of a filter and its parameters. */
struct narrowing {
    struct text sql;
    struct db_value parameters[filter_parameters_max];
    unsigned count;
};

static void narrow(struct narrowing *narrowing, const char *condition, struct db_value parameter)
{
    text_printf(&narrowing->sql, " AND %s", condition);
    narrowing->parameters[narrowing->count++] = parameter;
}

/* The keyword as a LIKE pattern; % _ and \ mean themselves. */
static const char *pattern_of(struct arena *arena, const char *keyword)
{
    struct text pattern;
    text_init(&pattern, arena);
    text_add(&pattern, "%", 1);
    for (; *keyword != '\0'; keyword++) {
        if (*keyword == '%' || *keyword == '_' || *keyword == '\\')
            text_add(&pattern, "\\", 1);
        text_add(&pattern, keyword, 1);
    }
    text_add(&pattern, "%", 1);
    return pattern.data;
}

/* Case is ignored and nothing else: LOWER and a binary comparison. */
static void narrow_by_keyword(struct narrowing *narrowing, struct arena *arena, const char *keyword)
{
    int64_t id = 0;
    const char *pattern = pattern_of(arena, keyword);
    if (!text_integer(keyword, 1, INT64_MAX, &id))
        id = 0;
    narrow(narrowing, "(LOWER(name) LIKE LOWER(?) COLLATE utf8mb4_bin", db_text(pattern));
    text_add_string(&narrowing->sql, " OR id = ? OR EXISTS (SELECT 1 FROM files f WHERE "
                                     "f.order_id = o.id AND LOWER(f.name) LIKE LOWER(?) "
                                     "COLLATE utf8mb4_bin))");
    narrowing->parameters[narrowing->count++] = db_integer(id);
    narrowing->parameters[narrowing->count++] = db_text(pattern);
}

/*
 * The index that narrows most.  Said outright: on a table that is mostly one
 * account's the optimizer would walk the primary key, whole rows and all.
 */
static const char *index_of(const struct order_filter *filter)
{
    if (filter->status >= 0)
        return "orders_list_status";
    return filter->type >= 0 ? "orders_list_type" : "orders_list";
}

static void narrowing_make(struct narrowing *narrowing, struct arena *arena,
                           const struct order_filter *filter)
{
    narrowing->count = 0;
    text_init(&narrowing->sql, arena);
    text_printf(&narrowing->sql, "FROM orders o FORCE INDEX (%s) WHERE account_id = ?", index_of(filter));
    narrowing->parameters[narrowing->count++] = db_integer(filter->account_id);
    if (filter->id_above > 0)
        narrow(narrowing, "id > ?", db_integer(filter->id_above));
    if (filter->id_up_to > 0)
        narrow(narrowing, "id <= ?", db_integer(filter->id_up_to));
    if (filter->status >= 0)
        narrow(narrowing, "status = ?", db_text(order_status_name((enum order_status)filter->status)));
    if (filter->type >= 0)
        narrow(narrowing, "type = ?", db_text(order_type_name((enum order_type)filter->type)));
    if (filter->channel >= 0)
        narrow(narrowing, "channel = ?", db_text(order_channel_name((enum order_channel)filter->channel)));
    if (filter->keyword != NULL)
        narrow_by_keyword(narrowing, arena, filter->keyword);
}

enum iw_error orders_count(const struct store *store, const struct order_filter *filter, int64_t *count)
{
    struct narrowing narrowing;
    struct db_rows rows;
    narrowing_make(&narrowing, store->context->arena, filter);
    const char *sql = arena_printf(store->context->arena, "SELECT COUNT(*) %s", narrowing.sql.data);
    enum iw_error error = db_run(store, sql, narrowing.parameters, narrowing.count, &rows);
    if (error == IW_OK)
        *count = db_integer_of(db_at(&rows, 0, 0));
    return error;
}

/*
 * Deferred join: the page's ids come from an index alone, only those rows are
 * read whole.
 */
enum iw_error orders_page(const struct store *store, const struct order_filter *filter, int64_t limit,
                          int64_t offset, struct order **orders, size_t *count)
{
    struct narrowing narrowing;
    struct db_rows rows;
    narrowing_make(&narrowing, store->context->arena, filter);
    narrowing.parameters[narrowing.count++] = db_integer(limit);
    narrowing.parameters[narrowing.count++] = db_integer(offset);
    const char *sql = arena_printf(store->context->arena,
                                   "SELECT " ORDER_COLUMNS " FROM (SELECT id %s ORDER BY id DESC LIMIT ? "
                                   "OFFSET ?) page JOIN orders o ON o.id = page.id ORDER BY o.id DESC",
                                   narrowing.sql.data);
    enum iw_error error = db_run(store, sql, narrowing.parameters, narrowing.count, &rows);
    if (error != IW_OK)
        return error;
    *count = rows.count;
    *orders = arena_array(store->context->arena, rows.count + 1, sizeof **orders);
    for (size_t i = 0; i < rows.count; i++)
        order_read(db_at(&rows, i, 0), &(*orders)[i]);
    return IW_OK;
}

/* Passes a row on as an order. */
struct stream {
    bool (*take)(void *user, const struct order *order);
    void *user;
};

static bool stream_row(void *user, const struct db_value *values, unsigned columns)
{
    const struct stream *stream = user;
    struct order order;
    if (columns != order_columns)
        abort();
    order_read(values, &order);
    return stream->take(stream->user, &order);
}

enum iw_error orders_stream(const struct store *store, const struct order_filter *filter,
                            bool (*take)(void *user, const struct order *order), void *user)
{
    struct narrowing narrowing;
    struct stream stream = {take, user};
    narrowing_make(&narrowing, store->context->arena, filter);
    /* The index gives the rows in this order: nothing is sorted or kept, on either side. */
    const char *sql = arena_printf(store->context->arena, "SELECT " ORDER_COLUMNS " %s ORDER BY id DESC",
                                   narrowing.sql.data);
    return db_stream(store, sql, narrowing.parameters, narrowing.count, stream_row, &stream);
}
