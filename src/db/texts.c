#include "db/texts.h"

#include <string.h>

#include "base/crypto.h"

enum { tries_max = 4, batch = 16 };

/* Finds the ids of up to batch texts.  Unused question marks repeat the last text. */
static enum iw_error batch_find(const struct db *db, int64_t account_id, struct text_entry *texts,
                                size_t count)
{
    struct db_rows rows;
    struct db_value values[1 + batch] = {db_integer(account_id)};
    for (size_t i = 0; i < batch; i++)
        values[1 + i] = db_bytes(texts[i < count ? i : count - 1].digest, sha256_bytes);
    enum iw_error error = db_run(
        db,
        "SELECT id, text_digest FROM watermark_texts WHERE account_id = ? AND text_digest IN (?, ?, ?, "
        "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        values, 1 + batch, &rows);
    for (size_t row = 0; error == IW_OK && row < rows.count; row++) {
        struct db_row columns = db_row(&rows, row);
        int64_t id = db_next_integer(&columns);
        const char *digest = db_next_text(&columns);
        for (size_t i = 0; i < count; i++)
            if (memcmp(digest, texts[i].digest, sha256_bytes) == 0)
                texts[i].id = id;
    }
    return error;
}

/*
 * Inserts a text, or finds the text that another transaction has inserted meanwhile. A duplicate gets only a
 * shared lock, because orders that refer to the text lock it in the order of their files.
 */
static enum iw_error text_insert(const struct db *db, int64_t account_id, struct text_entry *text,
                                 int64_t now_ms, int64_t *new_count)
{
    struct db_rows rows;
    for (int try = 0; try < tries_max && text->id == 0; try++) {
        const struct db_value values[] = {db_integer(account_id), db_bytes(text->text, text->length),
                                          db_bytes(text->digest, sha256_bytes), db_time(now_ms)};
        enum iw_error error = db_run(
            db, "INSERT INTO watermark_texts (account_id, text, text_digest, created_at) VALUES (?, ?, ?, ?)",
            values, 4, &rows);
        if (error == IW_TWIN_EXISTS) {
            context_clear(db->context);
            error = batch_find(db, account_id, text, 1);
        } else if (error == IW_OK) {
            text->id = rows.inserted_id;
            (*new_count)++;
        }
        if (error != IW_OK)
            return error;
    }
    return text->id != 0 ? IW_OK : context_fail(db->context, IW_SERVER_INTERNAL_ERROR, NULL);
}

enum iw_error texts_register(const struct db *db, int64_t account_id, struct text_entry *texts, size_t count,
                             int64_t now_ms, int64_t *new_count)
{
    enum iw_error error = IW_OK;
    *new_count = 0;
    for (size_t i = 0; error == IW_OK && i < count; i += batch)
        error = batch_find(db, account_id, texts + i, count - i < batch ? count - i : batch);
    for (size_t i = 0; error == IW_OK && i < count; i++)
        if (texts[i].id == 0)
            error = text_insert(db, account_id, &texts[i], now_ms, new_count);
    return error;
}

enum iw_error texts_find(const struct db *db, int64_t account_id, uint64_t number, const char **text,
                         size_t *length)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_unsigned(number), db_integer(account_id)};
    enum iw_error error = db_run(
        db,
        "SELECT t.text FROM order_watermarks w JOIN watermark_texts t ON t.id = w.text_id WHERE w.number = ? "
        "AND w.account_id = ?",
        parameters, 2, &rows);
    *text = NULL;
    if (error != IW_OK || rows.count == 0)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *text = db_next_bytes(&columns, length);
    return IW_OK;
}

enum iw_error texts_owner(const struct db *db, uint64_t number, struct text_owner *owner, bool *is_found)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_unsigned(number)};
    enum iw_error error = db_run(
        db,
        "SELECT a.id, a.name, t.text, t.created_at, w.order_id, w.file_position FROM order_watermarks w "
        "JOIN watermark_texts t ON t.id = w.text_id JOIN accounts a ON a.id = w.account_id WHERE "
        "w.number = ?",
        parameters, 1, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *owner = (struct text_owner){0};
    owner->account_id = db_next_integer(&columns);
    owner->account_name = db_next_text(&columns);
    owner->text = db_next_text(&columns);
    owner->created_at_ms = db_next_integer(&columns);
    owner->order_id = db_next_integer(&columns);
    owner->file_position = db_next_integer(&columns);
    return IW_OK;
}

enum iw_error texts_number(const struct db *db, int64_t order_id, int64_t file_position, int64_t copy,
                           uint64_t *number)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(order_id), db_integer(file_position), db_integer(copy)};
    enum iw_error error = db_run(
        db, "SELECT number FROM order_watermarks WHERE order_id = ? AND file_position = ? AND copy = ?",
        parameters, 3, &rows);
    if (error == IW_OK && rows.count == 0)
        return context_fail(db->context, IW_NOT_FOUND, "The copy has no number.");
    if (error != IW_OK)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *number = (uint64_t)db_next_integer(&columns);
    return IW_OK;
}

enum iw_error texts_list(const struct db *db, int64_t order_id, struct order_text **texts, size_t *count)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(order_id)};
    enum iw_error error =
        db_run(db,
               "SELECT t.id, f.id, t.text FROM order_watermarks w JOIN watermark_texts t ON t.id = w.text_id "
               "JOIN files f ON f.order_id = w.order_id AND f.role = 'main' AND f.position = w.file_position "
               "WHERE w.order_id = ? ORDER BY w.file_position, w.copy",
               parameters, 1, &rows);
    if (error != IW_OK)
        return error;
    *count = rows.count;
    *texts = arena_array(db->context->arena, rows.count + 1, sizeof **texts);
    for (size_t i = 0; i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        struct order_text *text = &(*texts)[i];
        *text = (struct order_text){0};
        text->id = db_next_integer(&columns);
        text->file_id = db_next_integer(&columns);
        text->text = db_next_bytes(&columns, &text->length);
    }
    return IW_OK;
}

enum iw_error texts_candidates(const struct db *db, int64_t account_id, unsigned most, uint64_t **numbers,
                               size_t *count)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(account_id), db_integer(most)};
    enum iw_error error =
        db_run(db, "SELECT number FROM order_watermarks WHERE account_id = ? ORDER BY order_id DESC LIMIT ?",
               parameters, 2, &rows);
    if (error != IW_OK)
        return error;
    *count = rows.count;
    *numbers = arena_array(db->context->arena, rows.count + 1, sizeof **numbers);
    for (size_t i = 0; i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        (*numbers)[i] = (uint64_t)db_next_integer(&columns);
    }
    return IW_OK;
}

enum iw_error texts_view_write(const struct db *db, int64_t order_id, int64_t file_position, const void *view,
                               size_t length)
{
    const struct db_value parameters[] = {db_bytes(view, length), db_integer(order_id),
                                          db_integer(file_position)};
    return db_run(db,
                  "UPDATE order_watermarks SET picture_view = ? WHERE order_id = ? AND file_position = ? AND "
                  "copy = 1",
                  parameters, 3, NULL);
}

enum iw_error texts_view(const struct db *db, int64_t account_id, uint64_t number, const void **view,
                         size_t *length)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_unsigned(number), db_integer(account_id)};
    enum iw_error error =
        db_run(db,
               "SELECT f.picture_view FROM order_watermarks w JOIN order_watermarks f ON f.order_id = "
               "w.order_id AND f.file_position = w.file_position AND f.copy = 1 WHERE w.number = ? AND "
               "w.account_id = ? AND f.picture_view IS NOT NULL",
               parameters, 2, &rows);
    *view = NULL;
    *length = 0;
    if (error != IW_OK || rows.count == 0)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *view = db_next_bytes(&columns, length);
    return IW_OK;
}

struct db_value texts_same_value(enum same_picture same)
{
    return same == SAME_PICTURE_UNKNOWN ? db_null() : db_integer(same == SAME_PICTURE_YES);
}

enum same_picture texts_same_of(struct db_row *columns)
{
    if (db_next_is_null(columns))
        return SAME_PICTURE_UNKNOWN;
    return db_next_bool(columns) ? SAME_PICTURE_YES : SAME_PICTURE_NO;
}

enum iw_error texts_reading_write(const struct db *db, int64_t order_id, uint64_t number,
                                  enum same_picture same)
{
    const struct db_value parameters[] = {db_integer(order_id), db_unsigned(number), texts_same_value(same)};
    return db_run(db, "INSERT IGNORE INTO readings (order_id, number, is_same_picture) VALUES (?, ?, ?)",
                  parameters, 3, NULL);
}

enum iw_error texts_findings(const struct db *db, int64_t order_id, struct text_finding **findings,
                             size_t *count)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(order_id)};
    enum iw_error error =
        db_run(db,
               "SELECT t.text, o.id, o.name, f.name, o.created_at, r.is_same_picture FROM readings r JOIN "
               "order_watermarks w ON w.number = r.number JOIN watermark_texts t ON t.id = w.text_id JOIN "
               "orders o ON o.id = w.order_id JOIN files f ON f.order_id = w.order_id AND f.role = 'main' "
               "AND f.position = "
               "w.file_position WHERE r.order_id = ? ORDER BY w.order_id DESC, w.file_position, w.copy",
               parameters, 1, &rows);
    if (error != IW_OK)
        return error;
    *count = rows.count;
    *findings = arena_array(db->context->arena, rows.count + 1, sizeof **findings);
    for (size_t i = 0; i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        struct text_finding *finding = &(*findings)[i];
        *finding = (struct text_finding){0};
        finding->text = db_next_text(&columns);
        finding->order_id = db_next_integer(&columns);
        finding->order_name = db_next_text(&columns);
        finding->file_name = db_next_text(&columns);
        finding->created_at_ms = db_next_integer(&columns);
        finding->same = texts_same_of(&columns);
    }
    return IW_OK;
}
