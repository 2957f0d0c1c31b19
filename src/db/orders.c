#include "db/orders.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/crypto.h"
#include "base/text.h"
#include "db/jobs.h"
#include "db/quotas.h"
#include "db/segments.h"
#include "db/texts.h"

/* The columns that order_read reads, in this order. */
#define ORDER_PLAIN_COLUMNS                                                                                  \
    "o.id, o.type, o.channel, o.status, o.name, o.body_digest, o.zero_copy, o.has_thumbnail, "               \
    "o.zip_store_key, o.file_count, o.completed_file_count, o.watermark_text, o.error_code, o.created_at, "  \
    "o.updated_at, o.expires_at, o.thumbnail_store_key, o.watermark_certainty, "                             \
    "o.watermark_is_same_picture, "
#define ORDER_COLUMNS ORDER_PLAIN_COLUMNS "o.metadata"

/* The columns that file_read reads, in this order. */
#define FILE_COLUMNS                                                                                         \
    "f.id, f.position, f.role = 'original', f.name, f.status, f.error_code, f.error_sentence, "              \
    "f.source_url, "                                                                                         \
    "f.note_code, f.note_sentence, f.size_bytes, f.result_bytes, f.protection_percent, "                     \
    "f.thumbnail_store_key"

/*
 * An order with all its files in one query.  No ORDER BY: sorting a few rows here is faster than the
 * optimizer's decision to use the order of the index.  Only one row has the metadata, up to 43 kB.
 */
#define ORDER_WITH_FILES                                                                                     \
    "SELECT " FILE_COLUMNS ", " ORDER_PLAIN_COLUMNS "IF(f.position = 1, o.metadata, NULL), o.trace_id "      \
    "FROM orders o JOIN files f ON f.order_id = o.id "

static void order_read(struct db_row *columns, struct order *order)
{
    *order = (struct order){0};
    order->id = db_next_integer(columns);
    /* If the schema has other words than the program, they are of different versions. */
    if (!order_type_read(db_next_text(columns), &order->type))
        abort();
    if (!order_channel_read(db_next_text(columns), &order->channel))
        abort();
    if (!order_status_read(db_next_text(columns), &order->status))
        abort();
    order->name = db_next_text(columns);
    order->body_digest = db_next_text(columns);
    order->is_zero_copy = db_next_bool(columns);
    order->has_thumbnail = db_next_bool(columns);
    order->zip_store_key = db_next_text(columns);
    order->file_count = (unsigned)db_next_integer(columns);
    order->completed_file_count = (unsigned)db_next_integer(columns);
    order->watermark_text = db_next_text(columns);
    order->error_code = db_next_text(columns);
    order->created_ms = db_next_integer(columns);
    order->updated_ms = db_next_integer(columns);
    order->expires_ms = db_next_integer(columns);
    order->thumbnail_store_key = db_next_text(columns);
    order->certainty = db_next_integer(columns);
    order->same_picture = texts_same_of(columns);
    order->metadata = db_next_text(columns);
}

static void file_read(struct db_row *columns, struct order_file *file)
{
    *file = (struct order_file){0};
    file->id = db_next_integer(columns);
    file->position = (unsigned)db_next_integer(columns);
    file->is_original = db_next_bool(columns);
    file->name = db_next_text(columns);
    if (!file_status_read(db_next_text(columns), &file->status))
        abort(); /* see order_read */
    file->error_code = db_next_text(columns);
    file->error_sentence = db_next_text(columns);
    file->source_url = db_next_text(columns);
    file->note_code = db_next_text(columns);
    file->note_sentence = db_next_text(columns);
    file->input_bytes = db_next_integer(columns);
    file->result_bytes = db_next_integer(columns);
    file->protection_percent = db_next_is_null(columns) ? -1 : (int)db_next_integer(columns);
    file->thumbnail_store_key = db_next_text(columns);
}

/* ---- writing ---- */

/* True for an order of uploads without sources, targets and originals: most orders. */
static bool is_all_plain(const struct order_row *row)
{
    for (unsigned i = 0; i < row->file_rows; i++) {
        const struct order_row_file *file = &row->files[i];
        if (file->source_url != NULL || file->target_url != NULL || file->is_original)
            return false;
    }
    return true;
}

static bool has_any_text(const struct order_row *row)
{
    bool has_text = false;
    for (unsigned i = 0; i < row->file_rows; i++)
        has_text = has_text || row->files[i].text_count > 0;
    return has_text;
}

/* The low bits of the reported value: auto_increment_increment, which is at most 65535. */
enum { step_bits = 16 };

static void order_add(struct query *query, const struct context *context, const struct order_row *row)
{
    enum order_status status = row->is_started ? ORDER_IN_PROGRESS : ORDER_PENDING;
    const struct db_value values[] = {
        db_integer(row->id),
        db_integer(row->account_id),
        db_text(order_type_name(row->type)),
        db_text(order_channel_name(row->channel)),
        db_text(order_status_name(status)),
        db_text(row->name),
        db_bytes(row->key, row->key_length),
        db_bytes(row->body_digest, 32),
        row->type == ORDER_ANTI_AI ? db_text(order_strength_name(row->strength)) : db_null(),
        db_text(row->result_suffix),
        db_integer(row->is_zero_copy),
        db_integer(row->file_rows > row->file_count),
        db_integer(row->file_count),
        db_text(context->request_id),
        db_text(context->trace.id),
        db_integer(context->trace.is_sampled),
        db_time(row->created_ms),
        db_time(row->created_ms),
        db_time(row->is_started ? row->created_ms : 0),
        db_time(row->is_started ? 0 : row->expires_ms),
        db_text(row->metadata),
    };
    query_append(
        query,
        "INSERT INTO orders (id, account_id, type, channel, status, name, idempotency_key, body_digest, "
        "strength, result_suffix, zero_copy, include_original, file_count, request_id, trace_id, "
        "is_trace_sampled, "
        "created_at, updated_at, started_at, expires_at, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "?, ?, ?, ?, ?, ?, ?, ?, ?, ?); ",
        values, sizeof values / sizeof values[0]);
}

static void files_add(struct query *query, const struct order_row *row)
{
    bool is_plain = is_all_plain(row);
    query_append(query,
                 is_plain ? "INSERT INTO files (order_id, position, name, updated_at) VALUES "
                          : "INSERT INTO files (order_id, position, name, updated_at, role, source_url, "
                            "target_url, target_key, target_expires_at, target_headers) VALUES ",
                 NULL, 0);
    for (unsigned i = 0; i < row->file_rows; i++) {
        const struct order_row_file *file = &row->files[i];
        const struct db_value plain[] = {db_integer(row->id), db_integer(file->position), db_text(file->name),
                                         db_time(row->created_ms)};
        const struct db_value rest[] = {db_text(file->is_original ? "original" : "main"),
                                        db_text(file->source_url),
                                        db_text(file->target_url),
                                        db_text(file->target_key),
                                        db_time(file->target_expires_ms),
                                        db_text(file->target_headers)};
        query_append(query, i == 0 ? "(?, ?, ?, ?" : ", (?, ?, ?, ?", plain, 4);
        if (!is_plain)
            query_append(query, ", ?, ?, ?, ?, ?, ?", rest, 6);
        query_append(query, ")", NULL, 0);
    }
    query_append(query, "; SET first = LAST_INSERT_ID(); ", NULL, 0);
}

static void texts_add(struct query *query, const struct order_row *row)
{
    const char *group = "(?, ?, ?, ?, ?, ?)";
    query_append(query,
                 "INSERT INTO order_watermarks (order_id, file_position, copy, text_id, account_id, number) "
                 "VALUES ",
                 NULL, 0);
    for (unsigned i = 0; i < row->file_rows; i++)
        for (unsigned copy = 1; copy <= row->files[i].text_count; copy++) {
            const struct db_value values[] = {db_integer(row->id),
                                              db_integer(row->files[i].position),
                                              db_integer(copy),
                                              db_integer(row->files[i].text_ids[copy - 1]),
                                              db_integer(row->account_id),
                                              db_unsigned(crypto_random_u64())};
            query_append(query, group, values, 6);
            group = ", (?, ?, ?, ?, ?, ?)";
        }
    query_append(query, "; ", NULL, 0);
}

/*
 * The compound statement for an order with these files: one round trip, all or nothing.  It reports the id of
 * the first file in last_insert_id, which the OK packet carries.  If the order has texts, its caller has
 * begun the transaction, because their registration is part of it.  A SELECT would be another result: a fifth
 * of the server's time for a small order.
 */
static void order_statement(struct query *query, const struct context *context, const struct order_row *row)
{
    bool has_texts = has_any_text(row);
    query_append(query, "BEGIN NOT ATOMIC DECLARE first BIGINT; ", NULL, 0);
    if (!has_texts)
        query_append(
            query, "DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; START TRANSACTION; ",
            NULL, 0);
    order_add(query, context, row);
    files_add(query, row);
    if (has_texts)
        texts_add(query, row);
    if (row->is_started) {
        jobs_insert_for_order_add(query, context->request_id, row->id);
        query_append(query, "; ", NULL, 0);
    }
    if (row->claim != NULL) {
        quotas_claim_add(query, row->claim);
        query_append(query, "; IF ROW_COUNT() = 0 THEN SIGNAL SQLSTATE '45000'; END IF; ", NULL, 0);
    }
    if (!has_texts)
        query_append(query, "COMMIT; ", NULL, 0);
    query_append(query, "SET last_insert_id = first << 16 | @@auto_increment_increment; END", NULL, 0);
}

/* If a proxy dropped the session tracking of the OK packet, the ids need a query. */
static enum iw_error file_ids_read(const struct db *db, const struct order_row *row, int64_t *file_ids)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(row->id)};
    enum iw_error error =
        db_run(db, "SELECT id FROM files WHERE order_id = ? ORDER BY id", parameters, 1, &rows);
    if (error == IW_OK && rows.count != row->file_rows) {
        context_cause(db->context, "%zu files of an order of %u", rows.count, row->file_rows);
        error = context_fail(db->context, IW_SERVER_INTERNAL_ERROR, NULL);
    }
    for (size_t i = 0; error == IW_OK && i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        file_ids[i] = db_next_integer(&columns);
    }
    return error;
}

enum iw_error orders_insert(const struct db *db, const struct order_row *row, int64_t *file_ids)
{
    struct db_rows rows;
    struct query query;
    query_init(&query, db->context->arena);
    order_statement(&query, db->context, row);
    enum iw_error error = query_run(db, &query, &rows);
    if (error != IW_OK)
        return error;
    if (rows.session_id == 0)
        return file_ids_read(db, row, file_ids);
    /* The ids of one multi-row INSERT differ by the server's step. */
    int64_t first = rows.session_id >> step_bits, step = rows.session_id & ((1 << step_bits) - 1);
    for (unsigned i = 0; i < row->file_rows; i++)
        file_ids[i] = first + step * i;
    return IW_OK;
}

/* ---- reading ---- */

/* By position, originals last. */
static int file_compare(const void *a, const void *b)
{
    const struct order_file *one = a, *other = b;
    if (one->is_original != other->is_original)
        return one->is_original ? 1 : -1;
    return one->position < other->position ? -1 : one->position > other->position;
}

/* Reads an order with its files; false if there are no rows. */
static bool order_rows_read(struct arena *arena, const struct db_rows *rows, struct order *order,
                            struct order_file **files)
{
    if (rows->count == 0)
        return false;
    *files = arena_array(arena, rows->count + 1, sizeof **files);
    for (size_t i = 0; i < rows->count; i++) {
        struct order read;
        struct db_row columns = db_row(rows, i);
        file_read(&columns, &(*files)[i]);
        order_read(&columns, &read);
        read.trace_id = db_next_text(&columns);
        if (i == 0 || read.metadata != NULL)
            *order = read;
    }
    order->file_rows = (unsigned)rows->count;
    qsort(*files, rows->count, sizeof **files, file_compare);
    return true;
}

enum iw_error orders_find(const struct db *db, int64_t account_id, int64_t id, struct order *order,
                          struct order_file **files, bool *is_found)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(id), db_integer(account_id)};
    enum iw_error error =
        db_run(db, ORDER_WITH_FILES "WHERE o.id = ? AND o.account_id = ?", parameters, 2, &rows);
    *is_found = error == IW_OK && order_rows_read(db->context->arena, &rows, order, files);
    return error;
}

enum iw_error orders_type(const struct db *db, int64_t account_id, int64_t id, enum order_type *type,
                          const char **trace_id, bool *is_found)
{
    struct db_rows rows;
    enum order_status status;
    const struct db_value parameters[] = {db_integer(id), db_integer(account_id)};
    enum iw_error error =
        db_run(db, "SELECT type, status, trace_id FROM orders WHERE id = ? AND account_id = ?", parameters, 2,
               &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    const char *type_word = db_next_text(&columns), *status_word = db_next_text(&columns);
    *trace_id = db_next_text(&columns);
    return orders_words_read(db->context, type_word, type, status_word, &status);
}

enum iw_error orders_find_by_key(const struct db *db, const struct orders_key *key, struct order *order,
                                 struct order_file **files, bool *is_found)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(key->account_id), db_text(order_type_name(key->type)),
                                          db_bytes(key->key, key->key_length)};
    enum iw_error error =
        db_run(db, ORDER_WITH_FILES "WHERE o.account_id = ? AND o.type = ? AND o.idempotency_key = ?",
               parameters, 3, &rows);
    *is_found = error == IW_OK && order_rows_read(db->context->arena, &rows, order, files);
    return error;
}

enum iw_error orders_lock(const struct db *db, int64_t account_id, int64_t id, struct order *order,
                          struct order_file **files, bool *is_found)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(id), db_integer(account_id)};
    enum iw_error error =
        db_run(db, "SELECT id FROM orders WHERE id = ? AND account_id = ? FOR UPDATE", parameters, 2, &rows);
    *is_found = false;
    if (error != IW_OK || rows.count == 0)
        return error;
    return orders_find(db, account_id, id, order, files, is_found);
}

/* The status of a locked order is not the one that was read. */
static enum iw_error status_changed(struct context *context)
{
    context_cause(context, "the order changed while it was locked");
    return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
}

enum iw_error orders_start(const struct db *db, int64_t id, enum order_status from, enum order_status to,
                           int64_t now_ms)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_text(order_status_name(to)), db_time(now_ms), db_time(now_ms),
                                          db_integer(id), db_text(order_status_name(from))};
    enum iw_error error = quotas_order_started(db, id);
    if (error != IW_OK)
        return error;
    error = db_run(db,
                   "UPDATE orders SET status = ?, started_at = ?, updated_at = ?, expires_at = NULL "
                   "WHERE id = ? AND status = ?",
                   parameters, 5, &rows);
    if (error != IW_OK)
        return error;
    return rows.affected == 1 ? segments_status_write(db, id, to) : status_changed(db->context);
}

/* Adds "FROM orders WHERE ..." of a filter. */
static void filter_add(struct query *query, const struct order_filter *filter)
{
    const struct db_value account_id = db_integer(filter->account_id);
    /*
     * The most selective index.  Without FORCE INDEX the optimizer scans the primary key if one account
     * owns most of the table.
     */
    query_append(query,
                 filter->status >= 0 ? "FROM orders o FORCE INDEX (orders_list_status) WHERE account_id = ?"
                 : filter->type >= 0 ? "FROM orders o FORCE INDEX (orders_list_type) WHERE account_id = ?"
                                     : "FROM orders o FORCE INDEX (orders_list) WHERE account_id = ?",
                 &account_id, 1);
    const struct {
        bool is_set;
        const char *sql;
        struct db_value value;
    } conditions[] = {
        {filter->id_above > 0, " AND id > ?", db_integer(filter->id_above)},
        {filter->id_up_to > 0, " AND id <= ?", db_integer(filter->id_up_to)},
        {filter->status >= 0, " AND status = ?",
         db_text(filter->status >= 0 ? order_status_name((enum order_status)filter->status) : NULL)},
        {filter->type >= 0, " AND type = ?",
         db_text(filter->type >= 0 ? order_type_name((enum order_type)filter->type) : NULL)},
        {filter->channel >= 0, " AND channel = ?",
         db_text(filter->channel >= 0 ? order_channel_name((enum order_channel)filter->channel) : NULL)},
    };
    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++)
        if (conditions[i].is_set)
            query_append(query, conditions[i].sql, &conditions[i].value, 1);
    for (unsigned i = 0; i < filter->metadata_count; i++) {
        const struct db_value line = db_text(filter->metadata[i]);
        query_append(query, " AND LOCATE(CONCAT('\n', ?), CONCAT('\n', metadata)) > 0", &line, 1);
    }
}

enum iw_error orders_count(const struct db *db, const struct order_filter *filter, int64_t *count)
{
    struct query query;
    query_init(&query, db->context->arena);
    query_append(&query, "SELECT COUNT(*) ", NULL, 0);
    filter_add(&query, filter);
    return query_number(db, query.sql.data, query.parameters, query.count, count);
}

static void orders_read(struct arena *arena, const struct db_rows *rows, struct order **orders, size_t *count)
{
    *count = rows->count;
    *orders = arena_array(arena, rows->count + 1, sizeof **orders);
    for (size_t i = 0; i < rows->count; i++) {
        struct db_row columns = db_row(rows, i);
        order_read(&columns, &(*orders)[i]);
    }
}

/* A deferred join: an index yields the ids of the page, and only those rows are read. */
enum iw_error orders_page(const struct db *db, const struct order_filter *filter, int64_t limit,
                          int64_t offset, struct order **orders, size_t *count)
{
    struct query query;
    struct db_rows rows;
    const struct db_value range[] = {db_integer(limit), db_integer(offset)};
    query_init(&query, db->context->arena);
    query_append(&query, "SELECT " ORDER_COLUMNS " FROM (SELECT id ", NULL, 0);
    filter_add(&query, filter);
    query_append(
        &query, " ORDER BY id DESC LIMIT ? OFFSET ?) page JOIN orders o ON o.id = page.id ORDER BY o.id DESC",
        range, 2);
    enum iw_error error = query_run(db, &query, &rows);
    if (error != IW_OK)
        return error;
    orders_read(db->context->arena, &rows, orders, count);
    return IW_OK;
}

/* Converts each row to an order. */
struct orders_taker {
    bool (*take)(void *user, const struct order *order);
    void *user;
    bool is_stopped;
};

static bool stream_row(void *user, struct db_row *columns)
{
    struct orders_taker *taker = user;
    struct order order;
    order_read(columns, &order);
    taker->is_stopped = !taker->take(taker->user, &order);
    return !taker->is_stopped;
}

enum iw_error orders_stream(const struct db *db, const struct order_filter *filter,
                            bool (*take)(void *user, const struct order *order), void *user)
{
    struct query query;
    struct orders_taker taker = {.take = take, .user = user};
    query_init(&query, db->context->arena);
    query_append(&query, "SELECT " ORDER_COLUMNS " ", NULL, 0);
    filter_add(&query, filter);
    /* The index yields the rows in this order: neither side sorts or buffers them. */
    query_append(&query, " ORDER BY id DESC", NULL, 0);
    return db_stream(db, query.sql.data, query.parameters, query.count, stream_row, &taker);
}

/* As many question marks as orders_ids_max. */
#define TEN_IDS "?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
#define HUNDRED_IDS                                                                                          \
    TEN_IDS ", " TEN_IDS ", " TEN_IDS ", " TEN_IDS ", " TEN_IDS ", " TEN_IDS ", " TEN_IDS ", " TEN_IDS       \
            ", " TEN_IDS ", " TEN_IDS
#define ORDERS_OF_IDS                                                                                        \
    "SELECT " ORDER_COLUMNS " FROM orders o FORCE INDEX (PRIMARY) WHERE account_id = ? AND id IN ("

/* The statement for the ids and its parameters.  Unused question marks are 0, which is no id. */
static const char *ids_statement(int64_t account_id, const struct query_ids *ids,
                                 struct db_value values[1 + orders_ids_max], unsigned *count)
{
    unsigned marks = ids->count <= 10 ? 10 : orders_ids_max;
    if (ids->count > orders_ids_max)
        abort();
    values[0] = db_integer(account_id);
    for (unsigned i = 0; i < marks; i++)
        values[1 + i] = db_integer(i < ids->count ? ids->items[i] : 0);
    *count = 1 + marks;
    return marks == 10 ? ORDERS_OF_IDS TEN_IDS ") ORDER BY id DESC"
                       : ORDERS_OF_IDS HUNDRED_IDS ") ORDER BY id DESC";
}

enum iw_error orders_of_ids(const struct db *db, int64_t account_id, const struct query_ids *ids,
                            struct order **orders, size_t *count)
{
    unsigned parameters;
    struct db_rows rows;
    struct db_value values[1 + orders_ids_max];
    const char *sql = ids_statement(account_id, ids, values, &parameters);
    enum iw_error error = db_run(db, sql, values, parameters, &rows);
    if (error == IW_OK)
        orders_read(db->context->arena, &rows, orders, count);
    return error;
}

enum iw_error orders_stream_ids(const struct db *db, int64_t account_id, const struct query_ids *ids,
                                bool (*take)(void *user, const struct order *order), void *user)
{
    enum iw_error error = IW_OK;
    struct orders_taker taker = {.take = take, .user = user};
    for (unsigned at = 0; error == IW_OK && !taker.is_stopped && at < ids->count; at += orders_ids_max) {
        unsigned parameters, left = ids->count - at;
        struct db_value values[1 + orders_ids_max];
        const struct query_ids part = {.items = ids->items + at,
                                       .count = left < orders_ids_max ? left : orders_ids_max};
        const char *sql = ids_statement(account_id, &part, values, &parameters);
        error = db_each(db, sql, values, parameters, stream_row, &taker);
    }
    return error;
}

/* The callback of orders_names. */
struct names_taker {
    bool (*take)(void *user, const struct order_names *names);
    void *user;
};

static bool names_row(void *user, struct db_row *columns)
{
    const struct names_taker *taker = user;
    struct order_names names = {.order_id = db_next_integer(columns)};
    names.order = db_next_text(columns);
    names.file = db_next_text(columns);
    names.text = db_next_text(columns);
    return taker->take(taker->user, &names);
}

enum iw_error orders_names(const struct db *db, const struct order_filter *filter,
                           bool (*take)(void *user, const struct order_names *names), void *user)
{
    struct query query;
    struct names_taker taker = {take, user};
    bool has_files = filter->keyword != NULL;
    query_init(&query, db->context->arena);
    query_append(&query,
                 has_files ? "SELECT o.id, o.name, " TEXTS_NAMES "FROM (SELECT id, name, type "
                           : "SELECT id, name, NULL, NULL ",
                 NULL, 0);
    filter_add(&query, filter);
    query_append(&query, " ORDER BY id DESC", NULL, 0);
    if (has_files)
        query_append(&query,
                     " LIMIT 9223372036854775807) o STRAIGHT_JOIN files f ON f.order_id = o.id" TEXTS_JOINS,
                     NULL, 0);
    return db_each(db, query.sql.data, query.parameters, query.count, names_row, &taker);
}

/* ---- Progress and end of an order ---- */

enum iw_error orders_words_read(struct context *context, const char *type_word, enum order_type *type,
                                const char *status_word, enum order_status *status)
{
    if ((type == NULL || order_type_read(type_word, type)) && order_status_read(status_word, status))
        return IW_OK;
    context_cause(context, "an order has a type or status that this version does not know");
    return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
}

enum iw_error orders_progress_lock(const struct db *db, int64_t order_id, struct order_progress *order)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(order_id)};
    enum iw_error error =
        db_run(db,
               "SELECT id, account_id, type, status, zero_copy, file_count, completed_file_count, "
               "failed_file_count, result_count, thumbnail_store_key, created_at, started_at, expires_at, "
               "(SELECT plan FROM accounts a WHERE a.id = account_id), trace_id, result_suffix FROM orders "
               "WHERE id = ? FOR UPDATE",
               values, 1, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return context_fail(db->context, IW_ORDER_NOT_FOUND, NULL);
    struct db_row columns = db_row(&rows, 0);
    *order = (struct order_progress){0};
    order->id = db_next_integer(&columns);
    order->account_id = db_next_integer(&columns);
    const char *type = db_next_text(&columns), *status = db_next_text(&columns);
    order->is_zero_copy = db_next_bool(&columns);
    order->file_count = db_next_integer(&columns);
    order->completed_count = db_next_integer(&columns);
    order->failed_count = db_next_integer(&columns);
    order->result_count = db_next_integer(&columns);
    order->thumbnail_store_key = db_next_text(&columns);
    order->created_at_ms = db_next_integer(&columns);
    order->started_at_ms = db_next_integer(&columns);
    order->expires_at_ms = db_next_integer(&columns);
    order->plan = db_next_text(&columns);
    order->trace_id = db_next_text(&columns);
    order->result_suffix = db_next_text(&columns);
    return orders_words_read(db->context, type, &order->type, status, &order->status);
}

enum iw_error orders_progress_write(const struct db *db, const struct order_progress *order, int64_t now_ms)
{
    const struct db_value values[] = {db_integer(order->completed_count),
                                      db_integer(order->failed_count),
                                      db_integer(order->result_count),
                                      db_integer(order->thumbnail_store_key != NULL),
                                      db_text(order->thumbnail_store_key),
                                      db_time(now_ms),
                                      db_integer(order->id)};
    return db_run(db,
                  "UPDATE orders SET completed_file_count = ?, failed_file_count = ?, result_count = ?, "
                  "has_thumbnail = ?, thumbnail_store_key = ?, updated_at = ? WHERE id = ?",
                  values, 7, NULL);
}

enum iw_error orders_close(const struct db *db, const struct order_progress *order, enum order_status next,
                           int64_t now_ms, int64_t expires_at_ms)
{
    struct db_rows rows;
    const struct db_value values[] = {
        db_text(order_status_name(next)), db_time(now_ms),       db_time(now_ms),
        db_time(expires_at_ms),           db_integer(order->id), db_text(order_status_name(order->status))};
    enum iw_error error = quotas_order_ended(db, order->id);
    if (error != IW_OK)
        return error;
    error = db_run(db,
                   "UPDATE orders SET status = ?, ended_at = COALESCE(ended_at, ?), updated_at "
                   "= ?, expires_at = ? WHERE id = ? AND status = ?",
                   values, 6, &rows);
    if (error != IW_OK)
        return error;
    return rows.affected == 1 ? segments_status_write(db, order->id, next) : status_changed(db->context);
}

enum iw_error orders_error_write(const struct db *db, int64_t order_id, enum iw_error code)
{
    const struct db_value values[] = {db_text(iw_error_code(code)), db_integer(order_id)};
    return db_run(db, "UPDATE orders SET error_code = ? WHERE id = ?", values, 2, NULL);
}

enum iw_error orders_archive_write(const struct db *db, int64_t order_id, const char *store_key,
                                   int64_t size_bytes, const uint8_t digest[32])
{
    const struct db_value values[] = {db_text(store_key), db_integer(size_bytes), db_bytes(digest, 32),
                                      db_integer(order_id)};
    return db_run(db, "UPDATE orders SET zip_store_key = ?, zip_size_bytes = ?, zip_digest = ? WHERE id = ?",
                  values, 4, NULL);
}

enum iw_error orders_watermark_write(const struct db *db, int64_t order_id, const char *text, size_t length,
                                     int64_t certainty, enum same_picture same)
{
    const struct db_value values[] = {db_bytes(text, length), db_integer(certainty), texts_same_value(same),
                                      db_integer(order_id)};
    return db_run(db,
                  "UPDATE orders SET watermark_text = ?, watermark_certainty = ?, "
                  "watermark_is_same_picture = ? WHERE id = ?",
                  values, 4, NULL);
}

enum iw_error orders_status(const struct db *db, int64_t order_id, enum order_status *status)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(order_id)};
    enum iw_error error = db_run(db, "SELECT status FROM orders WHERE id = ?", values, 1, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return context_fail(db->context, IW_ORDER_NOT_FOUND, NULL);
    struct db_row columns = db_row(&rows, 0);
    return orders_words_read(db->context, NULL, NULL, db_next_text(&columns), status);
}

/* ---- Retention ---- */

enum iw_error orders_ended_keep(const struct db *db, int64_t *order_ids, unsigned *count)
{
    struct query_ids ended;
    struct db_value values[orders_batch_max];
    /* Unused question marks are 0, which is no id. */
    for (unsigned i = 0; i < orders_batch_max; i++)
        values[i] = db_integer(i < *count ? order_ids[i] : 0);
    enum iw_error error =
        query_ids(db,
                  "SELECT id FROM orders WHERE status NOT IN ('pending', 'inProgress') AND id "
                  "IN (?, ?, ?, ?, ?, ?, ?, ?)",
                  values, orders_batch_max, &ended);
    if (error != IW_OK)
        return error;
    *count = ended.count;
    memcpy(order_ids, ended.items, ended.count * sizeof *order_ids);
    return IW_OK;
}

enum iw_error orders_overdue(const struct db *db, enum order_status status, int64_t now_ms, unsigned most,
                             unsigned skipped, struct query_ids *order_ids)
{
    const struct db_value values[] = {db_text(order_status_name(status)), db_time(now_ms), db_integer(most),
                                      db_integer(skipped)};
    return query_ids(
        db,
        "SELECT id FROM orders o WHERE status = ? AND expires_at <= ? AND (status <> 'pending' OR NOT EXISTS "
        "(SELECT 1 FROM accounts a WHERE a.id = o.account_id AND a.status = 'suspended')) ORDER BY "
        "expires_at, id LIMIT "
        "? OFFSET ?",
        values, 4, order_ids);
}

/* A step of a walk through orders: rows of an id and whether it is wanted. */
static enum iw_error step_read(const struct db *db, const char *sql, const struct db_value *values,
                               unsigned count, int64_t *after_id, struct query_ids *order_ids)
{
    struct db_rows rows;
    size_t most = (size_t)values[count - 1].integer;
    enum iw_error error = db_run(db, sql, values, count, &rows);
    if (error != IW_OK)
        return error;
    order_ids->count = 0;
    order_ids->items = arena_array(db->context->arena, rows.count + 1, sizeof *order_ids->items);
    *after_id = 0;
    for (size_t i = 0; i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        int64_t id = db_next_integer(&columns);
        if (db_next_bool(&columns))
            order_ids->items[order_ids->count++] = id;
        if (i + 1 == most)
            *after_id = id;
    }
    return IW_OK;
}

/* Orders in progress have no expires_at: the index has them by id. */
enum iw_error orders_stuck(const struct db *db, int64_t *after_id, int64_t before_id, unsigned most,
                           struct query_ids *order_ids)
{
    const struct db_value values[] = {db_integer(*after_id), db_integer(before_id), db_integer(most)};
    return step_read(
        db,
        "SELECT o.id, EXISTS (SELECT 1 FROM jobs j WHERE j.order_id = o.id AND j.status = 'queued' AND "
        "j.attempt >= 20) FROM orders o FORCE INDEX (orders_upkeep) WHERE o.status = 'inProgress' AND "
        "o.expires_at IS NULL AND o.id > ? AND o.id < ? ORDER BY o.id LIMIT ?",
        values, 3, after_id, order_ids);
}

enum iw_error orders_outdated(const struct db *db, int64_t *after_id, int64_t before_id,
                              int64_t ended_before_ms, unsigned most, struct query_ids *order_ids)
{
    const struct db_value values[] = {db_time(ended_before_ms), db_integer(*after_id), db_integer(before_id),
                                      db_integer(most)};
    return step_read(
        db,
        "SELECT id, status IN ('failed', 'detected', 'undetected', 'expired') AND ended_at < ? AND "
        "NOT EXISTS (SELECT 1 FROM files f WHERE f.order_id = o.id AND f.store_key IS NOT NULL) "
        "FROM orders o FORCE INDEX (PRIMARY) WHERE id > ? AND id < ? ORDER BY id LIMIT ?",
        values, 4, after_id, order_ids);
}

enum iw_error orders_forget(const struct db *db, int64_t order_id)
{
    static const char *const statements[] = {
        "DELETE FROM jobs WHERE order_id = ?", "DELETE FROM results WHERE order_id = ?",
        "DELETE FROM readings WHERE order_id = ?", "DELETE FROM files WHERE order_id = ?",
        "DELETE FROM orders WHERE id = ?"};
    const struct db_value values[] = {db_integer(order_id)};
    enum iw_error error = segments_order_forget(db, order_id);
    for (size_t i = 0; error == IW_OK && i < sizeof statements / sizeof statements[0]; i++)
        error = db_run(db, statements[i], values, 1, NULL);
    return error;
}

enum iw_error orders_uncleared(const struct db *db, int64_t id_from, unsigned most,
                               struct query_ids *order_ids)
{
    const struct db_value values[] = {db_integer(id_from), db_integer(most)};
    return query_ids(
        db,
        "SELECT o.id FROM orders o WHERE o.id >= ? AND o.status NOT IN ('pending', 'inProgress') "
        "AND EXISTS (SELECT 1 FROM files f WHERE f.order_id = o.id AND f.store_key IS NOT NULL) "
        "ORDER BY o.id LIMIT ?",
        values, 2, order_ids);
}

/* The thumbnail of an order of an earlier release stands only in orders. */
enum iw_error orders_store_keys(const struct db *db, int64_t order_id, struct query_texts *keys)
{
    const struct db_value values[] = {db_integer(order_id), db_integer(order_id), db_integer(order_id),
                                      db_integer(order_id), db_integer(order_id)};
    return query_texts(
        db,
        "SELECT store_key FROM results WHERE order_id = ? UNION ALL SELECT zip_store_key FROM "
        "orders WHERE id = ? AND zip_store_key IS NOT NULL UNION ALL (SELECT thumbnail_store_key "
        "FROM files WHERE order_id = ? AND thumbnail_store_key IS NOT NULL UNION SELECT thumbnail_store_key "
        "FROM orders WHERE id = ? AND thumbnail_store_key IS NOT NULL) UNION ALL SELECT store_key FROM "
        "files WHERE order_id = ? AND store_key IS NOT NULL",
        values, 5, keys);
}

enum iw_error orders_files_forget(const struct db *db, int64_t order_id, int64_t now_ms)
{
    const struct db_value values[] = {db_time(now_ms), db_integer(order_id)};
    enum iw_error error = db_run(
        db,
        "UPDATE orders SET has_thumbnail = FALSE, thumbnail_store_key = NULL, thumbnail_digest = NULL, "
        "zip_store_key = NULL, files_deleted_at = ? WHERE id = ?",
        values, 2, NULL);
    if (error != IW_OK)
        return error;
    return db_run(db,
                  "UPDATE files SET thumbnail_store_key = NULL, thumbnail_digest = NULL WHERE order_id = ?",
                  values + 1, 1, NULL);
}

/* ---- For operators and monitoring ---- */

enum iw_error orders_count_all(const struct db *db, int64_t *count)
{
    return query_number(db, "SELECT COUNT(*) FROM orders", NULL, 0, count);
}

enum iw_error orders_search(const struct db *db, const struct orders_search *search,
                            struct query_table *table)
{
    static const char *const columns[] = {"orderId", "accountId", "account", "type",  "status",
                                          "files",   "done",      "failed",  "error", "createdAt"};
    const struct db_value values[] = {db_text(search->account),    db_text(search->account),
                                      db_text(search->account),    db_text(search->status),
                                      db_text(search->status),     db_text(search->request_id),
                                      db_text(search->request_id), db_text(search->name),
                                      db_text(search->name),       db_integer(search->most)};
    *table = (struct query_table){.name = "orders", .columns = columns};
    return db_run(
        db,
        "SELECT CAST(o.id AS CHAR), o.account_id, a.name, o.type, o.status, o.file_count, "
        "o.completed_file_count, o.failed_file_count, o.error_code, o.created_at FROM orders o JOIN "
        "accounts a ON a.id = o.account_id WHERE (? IS NULL OR a.name = ? OR CAST(a.id AS CHAR) = ?) AND "
        "(? IS NULL OR o.status = ?) AND (? IS NULL OR o.request_id = CONVERT(? USING ascii)) AND (? IS NULL "
        "OR INSTR(o.name, "
        "?) > 0) ORDER BY o.id DESC LIMIT ?",
        values, sizeof values / sizeof values[0], &table->rows);
}

static const char *const inspected_order_columns[] = {
    "orderId",      "accountId", "type",           "channel", "status",    "orderName", "strength",
    "zeroCopy",     "fileCount", "completed",      "failed",  "results",   "thumbnail", "archive",
    "archiveBytes", "error",     "requestId",      "traceId", "createdAt", "updatedAt", "startedAt",
    "endedAt",      "expiresAt", "filesDeletedAt", "metadata"};
static const char order_sql[] =
    "SELECT CAST(id AS CHAR), account_id, type, channel, status, name, strength, zero_copy, file_count, "
    "completed_file_count, failed_file_count, result_count, thumbnail_store_key, zip_store_key, "
    "zip_size_bytes, error_code, request_id, trace_id, created_at, updated_at, started_at, ended_at, "
    "expires_at, files_deleted_at, "
    "REPLACE(REPLACE(TRIM(TRAILING '\n' FROM metadata), '\t', '='), '\n', '; ') FROM orders WHERE id = ?";

static const char *const file_columns[] = {
    "fileId",     "position", "role",     "fileName", "status",   "storeKey",          "sizeBytes",
    "uploadedAt", "error",    "sentence", "note",     "noteText", "protectionPercent", "resultBytes"};
static const char file_sql[] = "SELECT id, position, role, name, status, store_key, size_bytes, uploaded_at, "
                               "error_code, error_sentence, note_code, note_sentence, protection_percent, "
                               "result_bytes FROM files WHERE "
                               "order_id = ? ORDER BY position, role";

static const char *const result_columns[] = {"resultId", "fileId",    "copy",    "name",     "storeKey",
                                             "format",   "sizeBytes", "widthPx", "heightPx", "createdAt"};
static const char result_sql[] = "SELECT id, file_id, copy, name, store_key, format, size_bytes, width_px, "
                                 "height_px, created_at FROM results WHERE order_id = ? ORDER BY id";

static const char *const job_columns[] = {"jobId",      "kind",      "fileId",   "status",      "attempt",
                                          "failures",   "deaths",    "reason",   "availableAt", "owner",
                                          "leaseUntil", "requestId", "updatedAt"};
static const char job_sql[] = "SELECT id, kind, file_id, status, attempt, failure_count, death_count, "
                              "reason, available_at, lease_owner, "
                              "lease_until, request_id, updated_at FROM jobs WHERE order_id = ? ORDER BY id";

static const char *const history_columns[] = {"at", "what"};
static const char history_sql[] =
    "SELECT at, what FROM ("
    "SELECT created_at AS at, 'created' AS what FROM orders WHERE id = ? "
    "UNION ALL SELECT uploaded_at, CONCAT('file ', id, ' uploaded') FROM files WHERE order_id = ? AND "
    "uploaded_at IS NOT NULL "
    "UNION ALL SELECT started_at, 'started' FROM orders WHERE id = ? AND started_at IS NOT NULL "
    "UNION ALL SELECT updated_at, CONCAT(kind, IF(file_id = 0, '', CONCAT(' of file ', file_id)), ' ', "
    "status, IF(reason IS NULL, '', CONCAT(' (', reason, ')'))) FROM jobs WHERE order_id = ? "
    "UNION ALL SELECT ended_at, 'ended' FROM orders WHERE id = ? AND ended_at IS NOT NULL "
    "UNION ALL SELECT files_deleted_at, 'files deleted' FROM orders WHERE id = ? AND files_deleted_at IS NOT "
    "NULL) AS events ORDER BY at";

enum iw_error orders_inspect(const struct db *db, int64_t order_id,
                             struct query_table tables[orders_inspect_tables])
{
    static const struct {
        const char *name;
        const char *const *columns;
        const char *sql;
        unsigned parameters;
    } parts[orders_inspect_tables] = {{"order", inspected_order_columns, order_sql, 1},
                                      {"files", file_columns, file_sql, 1},
                                      {"results", result_columns, result_sql, 1},
                                      {"jobs", job_columns, job_sql, 1},
                                      {"history", history_columns, history_sql, 6}};
    struct db_value values[6];
    for (int i = 0; i < 6; i++)
        values[i] = db_integer(order_id);
    for (int i = 0; i < orders_inspect_tables; i++) {
        tables[i] = (struct query_table){.name = parts[i].name, .columns = parts[i].columns};
        enum iw_error error = db_run(db, parts[i].sql, values, parts[i].parameters, &tables[i].rows);
        if (error != IW_OK)
            return error;
        if (tables[0].rows.count == 0)
            return context_fail(db->context, IW_ORDER_NOT_FOUND, NULL);
    }
    return IW_OK;
}
