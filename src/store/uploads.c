#include "store/uploads.h"

#include <stddef.h>

#define PLACE_COLUMNS                                                                                        \
    "SELECT o.account_id, f.id, o.type, o.status, o.started_at IS NOT NULL, f.status <> 'pending', "         \
    "f.store_key, f.name FROM orders o JOIN files f ON f.order_id = o.id "                                   \
    "WHERE o.id = ? AND f.role = ? AND f.position = ? AND f.source_url IS NULL"

static enum iw_error words_read(struct context *context, const struct db_rows *rows, unsigned type_column,
                                enum order_type *type, unsigned status_column, enum order_status *status)
{
    if ((type == NULL || order_type_read(db_text_of(db_at(rows, 0, type_column)), type)) &&
        order_status_read(db_text_of(db_at(rows, 0, status_column)), status))
        return IW_OK;
    context_cause(context, "an order has a type or status that this version does not know");
    return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
}

enum iw_error uploads_find(const struct store *store, int64_t order_id, int64_t position, bool is_original,
                           bool for_change, struct upload_place *place)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(order_id), db_text(is_original ? "original" : "main"),
                                          db_integer(position)};
    enum iw_error error =
        db_run(store, for_change ? PLACE_COLUMNS " FOR UPDATE" : PLACE_COLUMNS, parameters, 3, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return IW_NOT_FOUND;
    *place = (struct upload_place){
        .account_id = db_integer_of(db_at(&rows, 0, 0)),
        .file_id = db_integer_of(db_at(&rows, 0, 1)),
        .is_started = db_integer_of(db_at(&rows, 0, 4)) != 0,
        .is_uploaded = db_integer_of(db_at(&rows, 0, 5)) != 0,
        .store_key = db_text_of(db_at(&rows, 0, 6)),
        .name = db_text_of(db_at(&rows, 0, 7)),
    };
    return words_read(store->context, &rows, 2, &place->order_type, 3, &place->order_status);
}

enum iw_error uploads_mark(const struct store *store, int64_t file_id, int64_t now_ms,
                           const struct upload_facts *facts)
{
    const struct db_value parameters[] = {
        db_text(facts->store_key),
        db_text(format_name(facts->format)),
        db_integer(facts->size_bytes),
        db_bytes(facts->sha256, 32),
        db_time(now_ms),
        db_time(now_ms),
        db_integer(file_id),
    };
    return db_run(store,
                  "UPDATE files SET status = 'uploaded', store_key = ?, format = ?, size_bytes = ?, "
                  "digest = ?, uploaded_at = ?, updated_at = ? WHERE id = ?",
                  parameters, sizeof parameters / sizeof parameters[0], NULL);
}

/* Rows of status, expiry, deletion, name, format, store key. */
static enum iw_error download_find(const struct store *store, const char *sql,
                                   const struct db_value *parameters, unsigned count,
                                   struct download_row *row)
{
    struct db_rows rows;
    enum iw_error error = db_run(store, sql, parameters, count, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return IW_NOT_FOUND;
    *row = (struct download_row){
        .expires_ms = db_integer_of(db_at(&rows, 0, 1)),
        .is_deleted = db_integer_of(db_at(&rows, 0, 2)) != 0,
        .name = db_text_of(db_at(&rows, 0, 3)),
        .format = format_by_name(db_text_of(db_at(&rows, 0, 4))),
        .store_key = db_text_of(db_at(&rows, 0, 5)),
    };
    return words_read(store->context, &rows, 0, NULL, 0, &row->order_status);
}

enum iw_error downloads_find_result(const struct store *store, int64_t order_id, int64_t result_id,
                                    struct download_row *row)
{
    const struct db_value parameters[] = {db_integer(result_id), db_integer(order_id)};
    return download_find(store,
                         "SELECT o.status, o.expires_at, o.files_deleted_at IS NOT NULL, r.name, r.format, "
                         "r.store_key FROM results r JOIN orders o ON o.id = r.order_id "
                         "WHERE r.id = ? AND r.order_id = ?",
                         parameters, 2, row);
}

enum iw_error downloads_find_archive(const struct store *store, int64_t order_id, struct download_row *row)
{
    const struct db_value parameters[] = {db_integer(order_id)};
    enum iw_error error =
        download_find(store,
                      "SELECT status, expires_at, files_deleted_at IS NOT NULL, name, '', zip_store_key "
                      "FROM orders WHERE id = ?",
                      parameters, 1, row);
    row->format = FORMAT_ZIP;
    return error;
}

enum iw_error downloads_find_thumbnail(const struct store *store, int64_t order_id, struct download_row *row)
{
    const struct db_value parameters[] = {db_integer(order_id)};
    return download_find(store,
                         "SELECT status, expires_at, files_deleted_at IS NOT NULL, name, 'webp', "
                         "thumbnail_store_key FROM orders WHERE id = ?",
                         parameters, 1, row);
}
