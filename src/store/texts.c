#include "store/texts.h"

#include "base/crypto.h"

enum { tries = 4 };

static enum iw_error text_find(const struct store *store, int64_t account_id,
                               const uint8_t digest[sha256_bytes], int64_t *id)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(account_id), db_bytes(digest, sha256_bytes)};
    enum iw_error error =
        db_run(store, "SELECT id FROM watermark_texts WHERE account_id = ? AND text_digest = ?", parameters,
               2, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return IW_NOT_FOUND;
    *id = db_integer_of(db_at(&rows, 0, 0));
    return IW_OK;
}

/* 0 is what a picture without a mark reads as in too many places. */
static uint64_t number_draw(void)
{
    uint64_t number;
    do
        number = crypto_random_u64();
    while (number == 0);
    return number;
}

/* TWIN_EXISTS: somebody wrote the same text meanwhile, or the number is taken. */
static enum iw_error text_insert(const struct store *store, int64_t account_id, const char *text,
                                 size_t length, const uint8_t digest[sha256_bytes], int64_t now_ms,
                                 int64_t *id)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_unsigned(number_draw()), db_integer(account_id),
                                          db_bytes(text, length), db_bytes(digest, sha256_bytes),
                                          db_time(now_ms)};
    enum iw_error error =
        db_run(store,
               "INSERT INTO watermark_texts (number, account_id, text, text_digest, created_at) "
               "VALUES (?, ?, ?, ?, ?)",
               parameters, 5, &rows);
    if (error == IW_OK)
        *id = rows.inserted_id;
    return error;
}

enum iw_error texts_register(const struct store *store, int64_t account_id, const char *text, size_t length,
                             int64_t now_ms, int64_t *id)
{
    uint8_t digest[sha256_bytes];
    crypto_sha256(text, length, digest);
    for (int try = 0; try < tries; try++) {
        enum iw_error error = text_find(store, account_id, digest, id);
        if (error == IW_NOT_FOUND)
            error = text_insert(store, account_id, text, length, digest, now_ms, id);
        if (error != IW_TWIN_EXISTS)
            return error;
    }
    return context_fail(store->context, IW_SERVER_INTERNAL_ERROR, NULL);
}

enum iw_error texts_find(const struct store *store, int64_t account_id, uint64_t number, const char **text,
                         size_t *length)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_unsigned(number), db_integer(account_id)};
    enum iw_error error = db_run(
        store, "SELECT text FROM watermark_texts WHERE number = ? AND account_id = ?", parameters, 2, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return IW_NOT_FOUND;
    *text = db_text_of(db_at(&rows, 0, 0));
    *length = db_at(&rows, 0, 0)->length;
    return IW_OK;
}

enum iw_error texts_number(const struct store *store, int64_t order_id, int64_t file_position, int64_t copy,
                           uint64_t *number)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(order_id), db_integer(file_position), db_integer(copy)};
    enum iw_error error =
        db_run(store,
               "SELECT t.number FROM order_watermarks w JOIN watermark_texts t ON t.id = w.text_id WHERE "
               "w.order_id = ? AND w.file_position = ? AND w.copy = ?",
               parameters, 3, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return IW_NOT_FOUND;
    *number = (uint64_t)db_integer_of(db_at(&rows, 0, 0));
    return IW_OK;
}
