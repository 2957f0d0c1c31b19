#include "store/closing.h"

#include <string.h>

static enum iw_error order_take(struct context *context, const struct db_rows *rows,
                                struct order_progress *order)
{
    *order = (struct order_progress){
        .id = db_integer_of(db_at(rows, 0, 0)),
        .account_id = db_integer_of(db_at(rows, 0, 1)),
        .is_zero_copy = db_integer_of(db_at(rows, 0, 4)) != 0,
        .file_count = db_integer_of(db_at(rows, 0, 5)),
        .completed_count = db_integer_of(db_at(rows, 0, 6)),
        .failed_count = db_integer_of(db_at(rows, 0, 7)),
        .result_count = db_integer_of(db_at(rows, 0, 8)),
        .thumbnail_store_key = db_text_of(db_at(rows, 0, 9)),
        .created_at_ms = db_integer_of(db_at(rows, 0, 10)),
        .expires_at_ms = db_integer_of(db_at(rows, 0, 11)),
    };
    if (order_type_read(db_text_of(db_at(rows, 0, 2)), &order->type) &&
        order_status_read(db_text_of(db_at(rows, 0, 3)), &order->status))
        return IW_OK;
    context_cause(context, "the order has a type or status that is unknown here");
    return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
}

enum iw_error closing_order_lock(const struct store *store, int64_t order_id, struct order_progress *order)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(order_id)};
    enum iw_error error =
        db_run(store,
               "SELECT id, account_id, type, status, zero_copy, file_count, completed_file_count, "
               "failed_file_count, result_count, thumbnail_store_key, created_at, expires_at FROM orders "
               "WHERE id = ? FOR "
               "UPDATE",
               values, 1, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return context_fail(store->context, IW_ORDER_NOT_FOUND, NULL);
    return order_take(store->context, &rows, order);
}

enum iw_error closing_order_count(const struct store *store, const struct order_progress *order,
                                  int64_t now_ms)
{
    const struct db_value values[] = {db_integer(order->completed_count),
                                      db_integer(order->failed_count),
                                      db_integer(order->result_count),
                                      db_integer(order->thumbnail_store_key != NULL),
                                      db_text(order->thumbnail_store_key),
                                      db_time(now_ms),
                                      db_integer(order->id)};
    return db_run(store,
                  "UPDATE orders SET completed_file_count = ?, failed_file_count = ?, result_count = ?, "
                  "has_thumbnail = ?, thumbnail_store_key = ?, updated_at = ? WHERE id = ?",
                  values, 7, NULL);
}

enum iw_error closing_order_close(const struct store *store, const struct order_progress *order,
                                  enum order_status next, int64_t now_ms, int64_t expires_at_ms)
{
    struct db_rows rows;
    const struct db_value values[] = {
        db_text(order_status_name(next)), db_time(now_ms),       db_time(now_ms),
        db_time(expires_at_ms),           db_integer(order->id), db_text(order_status_name(order->status))};
    enum iw_error error = db_run(store,
                                 "UPDATE orders SET status = ?, ended_at = COALESCE(ended_at, ?), updated_at "
                                 "= ?, expires_at = ? WHERE id = ? AND status = ?",
                                 values, 6, &rows);
    if (error != IW_OK || rows.affected == 1)
        return error;
    context_cause(store->context, "the order changed while it was locked");
    return context_fail(store->context, IW_SERVER_INTERNAL_ERROR, NULL);
}

enum iw_error closing_order_error(const struct store *store, int64_t order_id, enum iw_error code)
{
    const struct db_value values[] = {db_text(iw_error_code(code)), db_integer(order_id)};
    return db_run(store, "UPDATE orders SET error_code = ? WHERE id = ?", values, 2, NULL);
}

enum iw_error closing_archive_put(const struct store *store, int64_t order_id, const char *store_key,
                                  int64_t size_bytes, const uint8_t digest[32])
{
    const struct db_value values[] = {db_text(store_key), db_integer(size_bytes), db_bytes(digest, 32),
                                      db_integer(order_id)};
    return db_run(store,
                  "UPDATE orders SET zip_store_key = ?, zip_size_bytes = ?, zip_digest = ? WHERE id = ?",
                  values, 4, NULL);
}

enum iw_error closing_thumbnail_digest(const struct store *store, int64_t order_id, const uint8_t digest[32])
{
    const struct db_value values[] = {db_bytes(digest, 32), db_integer(order_id)};
    return db_run(store, "UPDATE orders SET thumbnail_digest = ? WHERE id = ?", values, 2, NULL);
}

enum iw_error closing_result_put(const struct store *store, const struct result *result, int64_t now_ms)
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
        store,
        "INSERT INTO results (order_id, file_id, copy, name, store_key, format, size_bytes, digest, "
        "width_px, height_px, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON DUPLICATE KEY "
        "UPDATE name = VALUES(name), store_key = VALUES(store_key), format = VALUES(format), "
        "size_bytes = VALUES(size_bytes), digest = VALUES(digest), width_px = VALUES(width_px), "
        "height_px = VALUES(height_px), created_at = VALUES(created_at)",
        values, 11, NULL);
}

enum iw_error closing_result_name(const struct store *store, int64_t result_id, const char *name)
{
    const struct db_value values[] = {db_text(name), db_integer(result_id)};
    return db_run(store, "UPDATE results SET name = ? WHERE id = ?", values, 2, NULL);
}

static void result_take(const struct db_rows *rows, size_t row, struct result *result)
{
    const struct db_value *digest = db_at(rows, row, 7);
    *result = (struct result){
        .order_id = db_integer_of(db_at(rows, row, 0)),
        .file_id = db_integer_of(db_at(rows, row, 1)),
        .copy = db_integer_of(db_at(rows, row, 2)),
        .name = db_text_of(db_at(rows, row, 3)),
        .store_key = db_text_of(db_at(rows, row, 4)),
        .format = format_by_name(db_text_of(db_at(rows, row, 5))),
        .size_bytes = db_integer_of(db_at(rows, row, 6)),
        .width_px = (uint32_t)db_integer_of(db_at(rows, row, 8)),
        .height_px = (uint32_t)db_integer_of(db_at(rows, row, 9)),
    };
    memcpy(result->digest, digest->text,
           digest->length < sizeof result->digest ? digest->length : sizeof result->digest);
}

enum iw_error closing_results(const struct store *store, int64_t order_id, struct result **results,
                              unsigned *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(order_id)};
    enum iw_error error =
        db_run(store,
               "SELECT r.order_id, r.file_id, r.copy, r.name, r.store_key, r.format, r.size_bytes, r.digest, "
               "r.width_px, r.height_px FROM results r JOIN files f ON f.id = r.file_id WHERE r.order_id = ? "
               "ORDER BY f.position, r.copy",
               values, 1, &rows);
    if (error != IW_OK)
        return error;
    *results = arena_array(store->context->arena, rows.count + 1, sizeof **results);
    *count = (unsigned)rows.count;
    for (size_t row = 0; row < rows.count; row++)
        result_take(&rows, row, &(*results)[row]);
    return IW_OK;
}

enum iw_error closing_file_error(const struct store *store, int64_t file_id, enum iw_error code,
                                 const char *sentence)
{
    const struct db_value values[] = {db_text(sentence), db_text(iw_error_code(code)), db_integer(file_id)};
    return db_run(store,
                  "UPDATE files SET error_sentence = IF(error_code IS NULL, LEFT(?, 500), error_sentence), "
                  "error_code = COALESCE(error_code, ?) WHERE id = ?",
                  values, 3, NULL);
}

enum iw_error closing_file_note(const struct store *store, int64_t file_id, const char *code,
                                const char *sentence)
{
    const struct db_value values[] = {db_text(code), db_text(sentence), db_integer(file_id)};
    return db_run(
        store,
        "UPDATE files SET note_code = ?, note_sentence = LEFT(?, 1000) WHERE id = ? AND note_code IS "
        "NULL",
        values, 3, NULL);
}

enum iw_error closing_file_end(const struct store *store, int64_t file_id, int64_t now_ms, bool *is_failed)
{
    struct db_rows rows;
    const struct db_value values[] = {db_time(now_ms), db_integer(file_id)};
    enum iw_error error =
        db_run(store,
               "UPDATE files SET status = IF(error_code IS NULL, 'complete', 'failed'), updated_at = ? WHERE "
               "id = ?",
               values, 2, NULL);
    if (error == IW_OK)
        error = db_run(store, "SELECT status = 'failed' FROM files WHERE id = ?", values + 1, 1, &rows);
    if (error == IW_OK)
        *is_failed = rows.count == 0 || db_integer_of(db_at(&rows, 0, 0)) != 0;
    return error;
}

enum iw_error closing_watermark_put(const struct store *store, int64_t order_id, const char *text,
                                    size_t length)
{
    const struct db_value values[] = {db_bytes(text, length), db_integer(order_id)};
    return db_run(store, "UPDATE orders SET watermark_text = ? WHERE id = ?", values, 2, NULL);
}

enum iw_error closing_results_forget(const struct store *store, int64_t order_id, int64_t file_id,
                                     int64_t copy)
{
    const struct db_value values[] = {db_integer(order_id), db_integer(file_id), db_integer(copy)};
    if (copy < 0)
        return db_run(store, "DELETE FROM results WHERE order_id = ?", values, 1, NULL);
    return db_run(store, "DELETE FROM results WHERE order_id = ? AND file_id = ? AND copy = ?", values, 3,
                  NULL);
}

enum iw_error closing_files_fail(const struct store *store, int64_t order_id, enum iw_error code,
                                 int64_t now_ms)
{
    const struct db_value values[] = {db_text(iw_error_code(code)), db_text(iw_error_sentence(code)),
                                      db_time(now_ms), db_integer(order_id)};
    return db_run(
        store,
        "UPDATE files SET status = 'failed', error_code = ?, error_sentence = ?, updated_at = ? WHERE "
        "order_id = ? AND status NOT IN ('complete', 'failed')",
        values, 4, NULL);
}

/* Files with a failed job that is no push; no question mark but the order's. */
#define REOPENED_FILES                                                                                       \
    "order_id = ? AND id IN (SELECT file_id FROM jobs WHERE order_id = ? AND status = 'failed' AND kind "    \
    "NOT IN ('push', 'archive'))"

enum iw_error closing_files_reopen(const struct store *store, int64_t order_id, int64_t now_ms,
                                   int64_t *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_time(now_ms), db_integer(order_id), db_integer(order_id)};
    enum iw_error error =
        db_run(store, "SELECT COUNT(*) FROM files WHERE status = 'failed' AND " REOPENED_FILES, values + 1, 2,
               &rows);
    if (error != IW_OK)
        return error;
    *count = db_integer_of(db_at(&rows, 0, 0));
    return db_run(
        store,
        "UPDATE files SET status = IF(store_key IS NULL, 'pending', 'uploaded'), error_code = NULL, "
        "error_sentence = NULL, updated_at = ? WHERE " REOPENED_FILES,
        values, 3, NULL);
}

static enum iw_error texts_read(const struct store *store, const char *sql, const struct db_value *values,
                                unsigned value_count, const char ***texts, unsigned *count)
{
    struct db_rows rows;
    enum iw_error error = db_run(store, sql, values, value_count, &rows);
    if (error != IW_OK)
        return error;
    *texts = arena_array(store->context->arena, rows.count + 1, sizeof **texts);
    *count = (unsigned)rows.count;
    for (unsigned i = 0; i < *count; i++)
        (*texts)[i] = db_text_of(db_at(&rows, i, 0));
    return IW_OK;
}

enum iw_error closing_places(const struct store *store, int64_t order_id, struct result_slot **places,
                             unsigned *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(order_id)};
    enum iw_error error = db_run(
        store,
        "SELECT f.position, COALESCE(w.copy, 0), f.name, COUNT(w.copy) OVER (PARTITION BY f.position), "
        "COALESCE(r.format, f.format), r.id, r.name FROM files f LEFT JOIN order_watermarks w ON "
        "w.order_id = f.order_id AND w.file_position = f.position LEFT JOIN results r ON r.file_id = "
        "f.id AND r.copy = COALESCE(w.copy, 0) WHERE f.order_id = ? AND f.role = 'main' ORDER BY "
        "f.position, w.copy",
        values, 1, &rows);
    if (error != IW_OK)
        return error;
    *places = arena_array(store->context->arena, rows.count + 1, sizeof **places);
    *count = (unsigned)rows.count;
    for (unsigned i = 0; i < *count; i++)
        (*places)[i] = (struct result_slot){.position = db_integer_of(db_at(&rows, i, 0)),
                                            .copy = db_integer_of(db_at(&rows, i, 1)),
                                            .file_name = db_text_of(db_at(&rows, i, 2)),
                                            .copy_count = db_integer_of(db_at(&rows, i, 3)),
                                            .format = format_by_name(db_text_of(db_at(&rows, i, 4))),
                                            .result_id = db_integer_of(db_at(&rows, i, 5)),
                                            .result_name = db_text_of(db_at(&rows, i, 6))};
    return IW_OK;
}

/* As many question marks as closing_orders_max; unused ones are 0, which no order has. */
#define ORDER_IDS "(?, ?, ?, ?, ?, ?, ?, ?)"

static void ids_fill(struct db_value values[closing_orders_max], const int64_t *order_ids, unsigned count)
{
    for (unsigned i = 0; i < closing_orders_max; i++)
        values[i] = db_integer(i < count ? order_ids[i] : 0);
}

enum iw_error closing_ended(const struct store *store, int64_t *order_ids, unsigned *count)
{
    struct db_rows rows;
    struct db_value values[closing_orders_max];
    ids_fill(values, order_ids, *count);
    enum iw_error error = db_run(
        store, "SELECT id FROM orders WHERE status NOT IN ('pending', 'inProgress') AND id IN " ORDER_IDS,
        values, closing_orders_max, &rows);
    if (error != IW_OK)
        return error;
    for (*count = 0; *count < rows.count; (*count)++)
        order_ids[*count] = db_integer_of(db_at(&rows, *count, 0));
    return IW_OK;
}

enum iw_error closing_inputs_forget(const struct store *store, const int64_t *order_ids, unsigned count)
{
    struct db_value values[closing_orders_max];
    ids_fill(values, order_ids, count);
    return db_run(store,
                  "UPDATE files SET store_key = NULL, target_url = NULL, target_headers = NULL WHERE "
                  "order_id IN " ORDER_IDS,
                  values, closing_orders_max, NULL);
}

enum iw_error closing_files_forget(const struct store *store, int64_t order_id, int64_t now_ms)
{
    const struct db_value values[] = {db_time(now_ms), db_integer(order_id)};
    return db_run(
        store,
        "UPDATE orders SET has_thumbnail = FALSE, thumbnail_store_key = NULL, zip_store_key = NULL, "
        "files_deleted_at = ? WHERE id = ?",
        values, 2, NULL);
}

enum iw_error closing_usage_add(const struct store *store, int64_t account_id, const char *day, int64_t count)
{
    const struct db_value values[] = {db_integer(account_id), db_text(day), db_integer(count)};
    return db_run(store,
                  "INSERT INTO usage_days (account_id, day, result_count) VALUES (?, ?, ?) ON DUPLICATE KEY "
                  "UPDATE result_count = result_count + VALUES(result_count)",
                  values, 3, NULL);
}

static enum iw_error ids_read(const struct store *store, const char *sql, const struct db_value *values,
                              unsigned value_count, int64_t **ids, unsigned *count)
{
    struct db_rows rows;
    enum iw_error error = db_run(store, sql, values, value_count, &rows);
    if (error != IW_OK)
        return error;
    *ids = arena_array(store->context->arena, rows.count + 1, sizeof **ids);
    *count = (unsigned)rows.count;
    for (unsigned i = 0; i < *count; i++)
        (*ids)[i] = db_integer_of(db_at(&rows, i, 0));
    return IW_OK;
}

enum iw_error closing_uncleared(const struct store *store, int64_t id_from, unsigned most,
                                int64_t **order_ids, unsigned *count)
{
    const struct db_value values[] = {db_integer(id_from), db_integer(most)};
    return ids_read(store,
                    "SELECT o.id FROM orders o WHERE o.id >= ? AND o.status NOT IN ('pending', 'inProgress') "
                    "AND EXISTS (SELECT 1 FROM files f WHERE f.order_id = o.id AND f.store_key IS NOT NULL) "
                    "ORDER BY o.id LIMIT ?",
                    values, 2, order_ids, count);
}

enum iw_error closing_overdue(const struct store *store, enum order_status status, int64_t now_ms,
                              unsigned most, unsigned skipped, int64_t **order_ids, unsigned *count)
{
    const struct db_value values[] = {db_text(order_status_name(status)), db_time(now_ms), db_integer(most),
                                      db_integer(skipped)};
    return ids_read(
        store,
        "SELECT id FROM orders WHERE status = ? AND expires_at <= ? ORDER BY expires_at, id LIMIT "
        "? OFFSET ?",
        values, 4, order_ids, count);
}

enum iw_error closing_keys(const struct store *store, int64_t order_id, const char ***keys, unsigned *count)
{
    const struct db_value values[] = {db_integer(order_id), db_integer(order_id), db_integer(order_id),
                                      db_integer(order_id)};
    return texts_read(
        store,
        "SELECT store_key FROM results WHERE order_id = ? UNION ALL SELECT zip_store_key FROM "
        "orders WHERE id = ? AND zip_store_key IS NOT NULL UNION ALL SELECT thumbnail_store_key "
        "FROM orders WHERE id = ? AND thumbnail_store_key IS NOT NULL UNION ALL SELECT store_key FROM files "
        "WHERE order_id = ? AND store_key IS NOT NULL",
        values, 4, keys, count);
}

enum iw_error closing_order_status(const struct store *store, int64_t order_id, enum order_status *status)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(order_id)};
    enum iw_error error = db_run(store, "SELECT status FROM orders WHERE id = ?", values, 1, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0 || !order_status_read(db_text_of(db_at(&rows, 0, 0)), status))
        return context_fail(store->context, IW_ORDER_NOT_FOUND, NULL);
    return IW_OK;
}
