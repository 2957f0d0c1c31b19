#include "db/tokens.h"

enum iw_error tokens_insert(const struct db *db, const struct tokens_row *row)
{
    const struct db_value values[] = {db_integer(row->user_id),  db_text(token_purpose_name(row->purpose)),
                                      db_bytes(row->digest, 32), db_integer(row->uses),
                                      db_time(row->created_ms),  db_time(row->expires_ms)};
    enum iw_error error = tokens_delete(db, row->user_id, row->purpose);
    if (error != IW_OK)
        return error;
    return db_run(db,
                  "INSERT INTO user_tokens (user_id, purpose, digest, uses_left, created_at, expires_at) "
                  "VALUES (?, ?, ?, ?, ?, ?)",
                  values, 6, NULL);
}

enum iw_error tokens_find(const struct db *db, enum token_purpose purpose, const uint8_t digest[32],
                          int64_t now_ms, int64_t *user_id)
{
    const struct db_value values[] = {db_bytes(digest, 32), db_text(token_purpose_name(purpose)),
                                      db_time(now_ms)};
    *user_id = 0;
    return query_number(db,
                        "SELECT user_id FROM user_tokens WHERE digest = ? AND purpose = ? AND "
                        "uses_left > 0 AND expires_at > ?",
                        values, 3, user_id);
}

enum iw_error tokens_take(const struct db *db, enum token_purpose purpose, const uint8_t digest[32],
                          int64_t now_ms, int64_t *user_id)
{
    int64_t affected = 0;
    const struct db_value values[] = {db_bytes(digest, 32), db_text(token_purpose_name(purpose)),
                                      db_time(now_ms)};
    enum iw_error error = query_change(db,
                                       "UPDATE user_tokens SET uses_left = uses_left - 1 WHERE digest = ? "
                                       "AND purpose = ? AND uses_left > 0 AND expires_at > ?",
                                       values, 3, &affected);
    *user_id = 0;
    return error == IW_OK && affected > 0
               ? query_number(db, "SELECT user_id FROM user_tokens WHERE digest = ?", values, 1, user_id)
               : error;
}

enum iw_error tokens_delete(const struct db *db, int64_t user_id, enum token_purpose purpose)
{
    const struct db_value values[] = {db_integer(user_id), db_text(token_purpose_name(purpose))};
    return db_run(db, "DELETE FROM user_tokens WHERE user_id = ? AND purpose = ?", values, 2, NULL);
}

enum iw_error tokens_forget(const struct db *db, int64_t now_ms, int64_t *count)
{
    const struct db_value values[] = {db_time(now_ms)};
    return query_change(db, "DELETE FROM user_tokens WHERE expires_at < ? LIMIT 1000", values, 1, count);
}

enum iw_error tokens_codes_set(const struct db *db, int64_t user_id, const uint8_t (*digests)[32],
                               unsigned count)
{
    const struct db_value user[] = {db_integer(user_id)};
    enum iw_error error = db_run(db, "DELETE FROM recovery_codes WHERE user_id = ?", user, 1, NULL);
    for (unsigned i = 0; error == IW_OK && i < count; i++) {
        const struct db_value values[] = {db_integer(user_id), db_bytes(digests[i], 32)};
        error = db_run(db, "INSERT INTO recovery_codes (user_id, digest) VALUES (?, ?)", values, 2, NULL);
    }
    return error;
}

enum iw_error tokens_code_take(const struct db *db, int64_t user_id, const uint8_t digest[32], bool *is_taken)
{
    int64_t affected = 0;
    const struct db_value values[] = {db_integer(user_id), db_bytes(digest, 32)};
    enum iw_error error =
        query_change(db, "DELETE FROM recovery_codes WHERE user_id = ? AND digest = ?", values, 2, &affected);
    *is_taken = affected > 0;
    return error;
}
