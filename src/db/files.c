#include "db/files.h"

#include "db/orders.h"

/* The account is read in a subquery, so that FOR UPDATE does not lock the account's row. */
#define UPLOAD_COLUMNS                                                                                       \
    "SELECT o.account_id, f.id, o.type, o.status, o.started_at IS NOT NULL, f.status <> 'pending', "         \
    "f.store_key, f.name, (SELECT a.status = 'suspended' FROM accounts a WHERE a.id = o.account_id), "       \
    "o.trace_id FROM orders o JOIN files f ON f.order_id = o.id "                                            \
    "WHERE o.id = ? AND f.role = ? AND f.position = ? AND f.source_url IS NULL"

enum iw_error files_upload_find(const struct db *db, const struct filekey *key, bool for_change,
                                struct upload_file *file, bool *is_found)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(key->order_id),
                                          db_text(key->kind == FILEKEY_ORIGINAL ? "original" : "main"),
                                          db_integer(key->number)};
    enum iw_error error =
        db_run(db, for_change ? UPLOAD_COLUMNS " FOR UPDATE" : UPLOAD_COLUMNS, parameters, 3, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *file = (struct upload_file){0};
    file->account_id = db_next_integer(&columns);
    file->id = db_next_integer(&columns);
    const char *type = db_next_text(&columns), *status = db_next_text(&columns);
    file->is_started = db_next_bool(&columns);
    file->is_uploaded = db_next_bool(&columns);
    file->store_key = db_next_text(&columns);
    file->name = db_next_text(&columns);
    file->is_suspended = db_next_bool(&columns);
    file->trace_id = db_next_text(&columns);
    return orders_words_read(db->context, type, &file->order_type, status, &file->order_status);
}

enum iw_error files_upload_write(const struct db *db, int64_t file_id, int64_t now_ms,
                                 const struct upload_facts *facts)
{
    const struct db_value parameters[] = {
        db_text(facts->store_key),
        db_text(format_name(facts->format)),
        db_integer(facts->size_bytes),
        facts->sha256 != NULL ? db_bytes(facts->sha256, 32) : db_null(),
        facts->etag != NULL ? db_text(facts->etag) : db_null(),
        db_time(now_ms),
        db_time(now_ms),
        db_integer(file_id),
    };
    return db_run(db,
                  "UPDATE files SET status = 'uploaded', store_key = ?, format = ?, size_bytes = ?, "
                  "digest = ?, etag = ?, uploaded_at = ?, updated_at = ? WHERE id = ?",
                  parameters, sizeof parameters / sizeof parameters[0], NULL);
}

enum iw_error files_refuse(const struct db *db, int64_t file_id, int64_t now_ms, enum iw_error code,
                           const char *sentence)
{
    const struct db_value values[] = {db_text(iw_error_code(code)), db_text(sentence), db_time(now_ms),
                                      db_integer(file_id)};
    return db_run(db,
                  "UPDATE files SET status = 'uploaded', store_key = NULL, error_code = ?, error_sentence = "
                  "LEFT(?, 500), updated_at = ? WHERE id = ?",
                  values, 4, NULL);
}

enum iw_error files_source_first(const struct db *db, int64_t order_id, const char *source_url,
                                 struct files_source *source)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(order_id), db_text(source_url)};
    enum iw_error error =
        db_run(db,
               "SELECT id, error_code, error_sentence, IF(digest IS NULL, NULL, store_key), format, "
               "size_bytes, digest "
               "FROM files WHERE order_id = ? AND BINARY source_url = ? ORDER BY id LIMIT 1",
               values, 2, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return context_fail(db->context, IW_NOT_FOUND, NULL);
    struct db_row columns = db_row(&rows, 0);
    *source = (struct files_source){0};
    source->file_id = db_next_integer(&columns);
    source->error_code = db_next_text(&columns);
    source->error_sentence = db_next_text(&columns);
    source->facts.store_key = db_next_text(&columns);
    const char *format = db_next_text(&columns);
    source->facts.size_bytes = db_next_integer(&columns);
    source->facts.sha256 = (const uint8_t *)db_next_text(&columns);
    if (source->facts.store_key != NULL)
        source->facts.format = format_by_name(format);
    return IW_OK;
}

enum iw_error files_tries(const struct db *db, int64_t order_id, struct files_try **tries, size_t *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(order_id)};
    enum iw_error error = db_run(
        db,
        "SELECT f.id, f.source_url, f.error_code, f.error_sentence, f.digest IS NOT NULL, "
        "j.failure_count FROM jobs j JOIN files f ON f.id = j.file_id WHERE j.order_id = ? AND j.kind = "
        "'fetch' ORDER BY f.id",
        values, 1, &rows);
    if (error != IW_OK)
        return error;
    *tries = arena_array(db->context->arena, rows.count + 1, sizeof **tries);
    *count = rows.count;
    for (size_t row = 0; row < rows.count; row++) {
        struct db_row columns = db_row(&rows, row);
        struct files_try *tried = &(*tries)[row];
        *tried = (struct files_try){0};
        tried->file_id = db_next_integer(&columns);
        tried->source_url = db_next_text(&columns);
        tried->error_code = db_next_text(&columns);
        tried->error_sentence = db_next_text(&columns);
        tried->is_fetched = db_next_bool(&columns);
        tried->failures = db_next_integer(&columns);
    }
    return IW_OK;
}

enum iw_error files_error_write(const struct db *db, int64_t file_id, enum iw_error code,
                                const char *sentence)
{
    const struct db_value values[] = {db_text(sentence), db_text(iw_error_code(code)), db_integer(file_id)};
    return db_run(db,
                  "UPDATE files SET error_sentence = IF(error_code IS NULL, LEFT(?, 500), error_sentence), "
                  "error_code = COALESCE(error_code, ?) WHERE id = ?",
                  values, 3, NULL);
}

enum iw_error files_result_write(const struct db *db, int64_t file_id, int64_t size_bytes, int percent)
{
    const struct db_value values[] = {db_integer(size_bytes), percent < 0 ? db_null() : db_integer(percent),
                                      db_integer(file_id)};
    return db_run(db,
                  "UPDATE files SET result_bytes = GREATEST(COALESCE(result_bytes, 0), ?), "
                  "protection_percent = ? WHERE id = ?",
                  values, 3, NULL);
}

enum iw_error files_thumbnail_write(const struct db *db, int64_t file_id, const char *store_key,
                                    const uint8_t digest[32], bool *is_first)
{
    struct db_rows rows = {0};
    const struct db_value values[] = {db_text(store_key), db_bytes(digest, 32), db_integer(file_id)};
    enum iw_error error =
        db_run(db,
               "UPDATE files SET thumbnail_store_key = ?, thumbnail_digest = ? WHERE id = ? "
               "AND thumbnail_store_key IS NULL",
               values, 3, &rows);
    *is_first = error == IW_OK && rows.affected == 1;
    return error;
}

enum iw_error files_note_write(const struct db *db, int64_t file_id, const char *code, const char *sentence)
{
    const struct db_value values[] = {db_text(code), db_text(sentence), db_integer(file_id)};
    return db_run(
        db,
        "UPDATE files SET note_code = ?, note_sentence = LEFT(?, 1000) WHERE id = ? AND note_code IS "
        "NULL",
        values, 3, NULL);
}

enum iw_error files_end(const struct db *db, int64_t file_id, int64_t now_ms, bool *is_failed)
{
    int64_t failed = 1;
    const struct db_value values[] = {db_time(now_ms), db_integer(file_id)};
    enum iw_error error =
        db_run(db,
               "UPDATE files SET status = IF(error_code IS NULL, 'complete', 'failed'), updated_at = ? WHERE "
               "id = ?",
               values, 2, NULL);
    if (error == IW_OK)
        error = query_number(db, "SELECT status = 'failed' FROM files WHERE id = ?", values + 1, 1, &failed);
    *is_failed = failed != 0;
    return error;
}

enum iw_error files_fail(const struct db *db, int64_t order_id, enum iw_error code, const char *sentence,
                         int64_t now_ms)
{
    const struct db_value values[] = {db_text(iw_error_code(code)), db_text(sentence), db_time(now_ms),
                                      db_integer(order_id)};
    return db_run(
        db,
        "UPDATE files SET status = 'failed', error_code = ?, error_sentence = ?, updated_at = ? WHERE "
        "order_id = ? AND status NOT IN ('complete', 'failed')",
        values, 4, NULL);
}

/* Files with a failed job other than a push.  Both question marks: the order. */
#define REOPENED_FILES                                                                                       \
    "order_id = ? AND id IN (SELECT file_id FROM jobs WHERE order_id = ? AND status IN ('failed', "          \
    "'refused') AND kind "                                                                                   \
    "NOT IN ('push', 'archive'))"

enum iw_error files_reopen(const struct db *db, int64_t order_id, int64_t now_ms, int64_t *count)
{
    const struct db_value values[] = {db_time(now_ms), db_integer(order_id), db_integer(order_id)};
    enum iw_error error = query_number(
        db, "SELECT COUNT(*) FROM files WHERE status = 'failed' AND " REOPENED_FILES, values + 1, 2, count);
    if (error != IW_OK)
        return error;
    return db_run(
        db,
        "UPDATE files SET status = IF(store_key IS NULL, 'pending', 'uploaded'), error_code = NULL, "
        "error_sentence = NULL, updated_at = ? WHERE " REOPENED_FILES,
        values, 3, NULL);
}

enum iw_error files_inputs_forget(const struct db *db, const int64_t *order_ids, unsigned count)
{
    struct db_value values[orders_batch_max];
    /* Unused question marks are 0, which is no id. */
    for (unsigned i = 0; i < orders_batch_max; i++)
        values[i] = db_integer(i < count ? order_ids[i] : 0);
    return db_run(db,
                  "UPDATE files SET store_key = NULL, target_url = NULL, target_headers = NULL WHERE "
                  "order_id IN (?, ?, ?, ?, ?, ?, ?, ?)",
                  values, orders_batch_max, NULL);
}

enum iw_error files_store_bytes(const struct db *db, struct query_count **counts, unsigned *count)
{
    return query_counts(
        db,
        "SELECT 'inputs', COALESCE(SUM(size_bytes), 0) FROM files WHERE store_key IS NOT NULL "
        "UNION ALL SELECT 'results', COALESCE(SUM(r.size_bytes), 0) FROM results r JOIN orders o ON o.id = "
        "r.order_id WHERE o.files_deleted_at IS NULL "
        "UNION ALL SELECT 'archives', COALESCE(SUM(zip_size_bytes), 0) FROM orders WHERE zip_store_key IS "
        "NOT NULL",
        counts, count);
}

enum iw_error files_stored_next(const struct db *db, struct files_step *step)
{
    struct db_rows rows;
    const struct db_value from = db_integer(step->after_order_id);
    step->count = 0;
    enum iw_error error =
        db_run(db,
               "SELECT COALESCE(MAX(id), 0), COUNT(*) FROM (SELECT id FROM orders WHERE id > ? ORDER BY id "
               "LIMIT 50) step",
               &from, 1, &rows);
    if (error != IW_OK)
        return error;
    struct db_row columns = db_row(&rows, 0);
    const struct db_value last = db_integer(db_next_integer(&columns));
    step->orders = db_next_integer(&columns);
    if (step->orders == 0)
        return IW_OK;
    const struct db_value values[] = {from, last, from, last, from, last, from, last, from, last};
    error = db_run(
        db,
        "SELECT r.store_key, r.size_bytes, r.order_id, r.digest FROM results r JOIN orders o ON o.id = "
        "r.order_id WHERE o.files_deleted_at IS NULL AND r.order_id > ? AND r.order_id <= ? "
        "UNION ALL SELECT zip_store_key, COALESCE(zip_size_bytes, -1), id, zip_digest FROM orders WHERE "
        "zip_store_key IS NOT NULL AND id > ? AND id <= ? "
        "UNION ALL SELECT thumbnail_store_key, -1, order_id, thumbnail_digest FROM files WHERE "
        "thumbnail_store_key IS NOT NULL AND order_id > ? AND order_id <= ? "
        "UNION ALL SELECT o.thumbnail_store_key, -1, o.id, o.thumbnail_digest FROM orders o WHERE "
        "o.thumbnail_store_key IS NOT NULL AND o.id > ? AND o.id <= ? AND NOT EXISTS (SELECT 1 FROM files f "
        "WHERE f.order_id = o.id AND f.thumbnail_store_key = o.thumbnail_store_key) "
        "UNION ALL SELECT f.store_key, COALESCE(f.size_bytes, -1), f.order_id, f.digest FROM files f JOIN "
        "orders o ON o.id = f.order_id WHERE f.store_key IS NOT NULL AND o.status IN ('pending', "
        "'inProgress') AND f.order_id > ? AND f.order_id <= ?",
        values, 10, &rows);
    if (error != IW_OK)
        return error;
    step->files = arena_array(db->context->arena, rows.count + 1, sizeof *step->files);
    for (; step->count < rows.count; step->count++) {
        size_t digest_length;
        struct db_row file = db_row(&rows, step->count);
        struct files_stored *stored = &step->files[step->count];
        stored->store_key = db_next_text(&file);
        stored->size_bytes = db_next_integer(&file);
        stored->order_id = db_next_integer(&file);
        stored->digest = db_next_bytes(&file, &digest_length);
        if (digest_length != 32)
            stored->digest = NULL;
    }
    step->after_order_id = db_integer_of(&last);
    return IW_OK;
}
