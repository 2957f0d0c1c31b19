#include "db/results.h"

#include <string.h>

#include "db/orders.h"

enum iw_error results_write(const struct db *db, const struct result *result, int64_t now_ms)
{
    const struct db_value values[] = {db_integer(result->order_id),
                                      db_integer(result->file_id),
                                      db_integer(result->copy),
                                      db_text(result->name),
                                      db_text(result->store_key),
                                      db_text(format_name(result->format)),
                                      db_integer(result->size_bytes),
                                      db_bytes(result->digest, sizeof result->digest),
                                      db_integer(result->width_px),
                                      db_integer(result->height_px),
                                      db_time(now_ms)};
    return db_run(
        db,
        "INSERT INTO results (order_id, file_id, copy, name, store_key, format, size_bytes, digest, "
        "width_px, height_px, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON DUPLICATE KEY "
        "UPDATE name = VALUES(name), store_key = VALUES(store_key), format = VALUES(format), "
        "size_bytes = VALUES(size_bytes), digest = VALUES(digest), width_px = VALUES(width_px), "
        "height_px = VALUES(height_px), created_at = VALUES(created_at)",
        values, 11, NULL);
}

enum iw_error results_rename(const struct db *db, int64_t result_id, const char *name)
{
    const struct db_value values[] = {db_text(name), db_integer(result_id)};
    return db_run(db, "UPDATE results SET name = ? WHERE id = ?", values, 2, NULL);
}

/* The text of a copy, NULL for other results. */
#define WATERMARK_JOIN                                                                                       \
    "LEFT JOIN order_watermarks w ON w.order_id = r.order_id AND w.file_position = f.position AND w.copy = " \
    "r.copy LEFT JOIN watermark_texts t ON t.id = w.text_id "

enum iw_error results_list(const struct db *db, int64_t order_id, struct result **results, unsigned *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(order_id)};
    enum iw_error error = db_run(
        db,
        "SELECT r.order_id, r.file_id, r.copy, r.name, r.store_key, r.format, r.size_bytes, r.digest, "
        "r.width_px, r.height_px, t.text FROM results r JOIN files f ON f.id = r.file_id " WATERMARK_JOIN
        "WHERE r.order_id = ? ORDER BY f.position, r.copy",
        values, 1, &rows);
    if (error != IW_OK)
        return error;
    *results = arena_array(db->context->arena, rows.count + 1, sizeof **results);
    *count = (unsigned)rows.count;
    for (size_t row = 0; row < rows.count; row++) {
        struct result *result = &(*results)[row];
        size_t digest_length;
        struct db_row columns = db_row(&rows, row);
        *result = (struct result){0};
        result->order_id = db_next_integer(&columns);
        result->file_id = db_next_integer(&columns);
        result->copy = db_next_integer(&columns);
        result->name = db_next_text(&columns);
        result->store_key = db_next_text(&columns);
        result->format = format_by_name(db_next_text(&columns));
        result->size_bytes = db_next_integer(&columns);
        const void *digest = db_next_bytes(&columns, &digest_length);
        result->width_px = (uint32_t)db_next_integer(&columns);
        result->height_px = (uint32_t)db_next_integer(&columns);
        result->watermark = db_next_text(&columns);
        memcpy(result->digest, digest,
               digest_length < sizeof result->digest ? digest_length : sizeof result->digest);
    }
    return IW_OK;
}

enum iw_error results_list_names(const struct db *db, int64_t order_id, struct order_result **results,
                                 size_t *count)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(order_id)};
    enum iw_error error = db_run(
        db,
        "SELECT r.id, r.name, r.format, r.file_id, r.store_key, t.text FROM results r "
        "JOIN files f ON f.id = r.file_id " WATERMARK_JOIN "WHERE r.order_id = ? ORDER BY f.position, r.copy",
        parameters, 1, &rows);
    if (error != IW_OK)
        return error;
    *count = rows.count;
    *results = arena_array(db->context->arena, rows.count + 1, sizeof **results);
    for (size_t i = 0; i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        struct order_result *result = &(*results)[i];
        *result = (struct order_result){0};
        result->id = db_next_integer(&columns);
        result->name = db_next_text(&columns);
        result->format = format_by_name(db_next_text(&columns));
        result->file_id = db_next_integer(&columns);
        result->store_key = db_next_text(&columns);
        result->watermark = db_next_text(&columns);
    }
    return IW_OK;
}

enum iw_error results_slots(const struct db *db, int64_t order_id, struct result_slot **slots,
                            unsigned *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(order_id)};
    enum iw_error error = db_run(
        db,
        "SELECT f.position, COALESCE(w.copy, 0), f.name, COUNT(w.copy) OVER (PARTITION BY f.position), "
        "COALESCE(r.format, f.format), r.id, r.name FROM files f LEFT JOIN order_watermarks w ON "
        "w.order_id = f.order_id AND w.file_position = f.position LEFT JOIN results r ON r.file_id = "
        "f.id AND r.copy = COALESCE(w.copy, 0) WHERE f.order_id = ? AND f.role = 'main' ORDER BY "
        "f.position, w.copy",
        values, 1, &rows);
    if (error != IW_OK)
        return error;
    *slots = arena_array(db->context->arena, rows.count + 1, sizeof **slots);
    *count = (unsigned)rows.count;
    for (unsigned i = 0; i < *count; i++) {
        struct db_row columns = db_row(&rows, i);
        struct result_slot *slot = &(*slots)[i];
        *slot = (struct result_slot){0};
        slot->position = db_next_integer(&columns);
        slot->copy = db_next_integer(&columns);
        slot->file_name = db_next_text(&columns);
        slot->copy_count = db_next_integer(&columns);
        slot->format = format_by_name(db_next_text(&columns));
        slot->result_id = db_next_integer(&columns);
        slot->result_name = db_next_text(&columns);
    }
    return IW_OK;
}

enum iw_error results_forget(const struct db *db, int64_t order_id, int64_t file_id, int64_t copy)
{
    const struct db_value values[] = {db_integer(order_id), db_integer(file_id), db_integer(copy)};
    if (copy < 0)
        return db_run(db, "DELETE FROM results WHERE order_id = ?", values, 1, NULL);
    return db_run(db, "DELETE FROM results WHERE order_id = ? AND file_id = ? AND copy = ?", values, 3, NULL);
}

/* The columns: status, expiry, deletion, name, format, store key, suspension, account, trace, channel. */
static enum iw_error download_read(const struct db *db, const char *sql, const struct db_value *parameters,
                                   unsigned count, struct download_row *row, bool *is_found)
{
    struct db_rows rows;
    enum iw_error error = db_run(db, sql, parameters, count, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *row = (struct download_row){0};
    const char *status = db_next_text(&columns);
    row->expires_ms = db_next_integer(&columns);
    row->is_deleted = db_next_bool(&columns);
    row->name = db_next_text(&columns);
    row->format = format_by_name(db_next_text(&columns));
    row->store_key = db_next_text(&columns);
    row->is_suspended = db_next_bool(&columns);
    row->account_id = db_next_integer(&columns);
    row->trace_id = db_next_text(&columns);
    if (!order_channel_read(db_next_text(&columns), &row->order_channel))
        row->order_channel = ORDER_CHANNEL_API;
    return orders_words_read(db->context, NULL, NULL, status, &row->order_status);
}

enum iw_error results_find(const struct db *db, int64_t order_id, int64_t result_id, struct download_row *row,
                           bool *is_found)
{
    const struct db_value parameters[] = {db_integer(result_id), db_integer(order_id)};
    return download_read(
        db,
        "SELECT o.status, o.expires_at, o.files_deleted_at IS NOT NULL, r.name, r.format, "
        "r.store_key, a.status = 'suspended', a.id, o.trace_id, o.channel FROM results r JOIN orders o ON "
        "o.id = "
        "r.order_id JOIN accounts a ON a.id = o.account_id WHERE r.id = ? AND r.order_id = ?",
        parameters, 2, row, is_found);
}

enum iw_error results_find_archive(const struct db *db, int64_t order_id, struct download_row *row,
                                   bool *is_found)
{
    const struct db_value parameters[] = {db_integer(order_id)};
    enum iw_error error = download_read(
        db,
        "SELECT o.status, o.expires_at, o.files_deleted_at IS NOT NULL, o.name, '', o.zip_store_key, "
        "a.status = 'suspended', a.id, o.trace_id, o.channel FROM orders o JOIN accounts a ON a.id = "
        "o.account_id "
        "WHERE o.id = ?",
        parameters, 1, row, is_found);
    row->format = FORMAT_ZIP;
    return error;
}

enum iw_error results_find_thumbnail(const struct db *db, int64_t order_id, int64_t position,
                                     struct download_row *row, bool *is_found)
{
    static const char of_order[] =
        "SELECT o.status, o.expires_at, o.files_deleted_at IS NOT NULL, o.name, 'webp', "
        "o.thumbnail_store_key, a.status = 'suspended', a.id, o.trace_id, o.channel FROM orders o JOIN "
        "accounts a "
        "ON a.id = o.account_id WHERE o.id = ?";
    static const char of_file[] =
        "SELECT o.status, o.expires_at, o.files_deleted_at IS NOT NULL, f.name, 'webp', "
        "f.thumbnail_store_key, a.status = 'suspended', a.id, o.trace_id, o.channel FROM orders o JOIN "
        "accounts a "
        "ON a.id = o.account_id JOIN files f ON f.order_id = o.id AND f.role = 'main' "
        "WHERE o.id = ? AND f.position = ?";
    const struct db_value parameters[] = {db_integer(order_id), db_integer(position)};
    return download_read(db, position == 0 ? of_order : of_file, parameters, position == 0 ? 1 : 2, row,
                         is_found);
}
