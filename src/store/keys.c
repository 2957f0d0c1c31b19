#include "store/keys.h"

#include <string.h>

enum iw_error keys_find(const struct store *store, const uint8_t digest[32], struct account *account)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_bytes(digest, 32)};
    enum iw_error error =
        db_run(store,
               "SELECT k.id, k.account_id, k.expires_at, k.last_used_at, a.status = 'suspended', "
               "COALESCE(a.requests_per_minute, p.requests_per_minute), k.revoked_at "
               "FROM api_keys k JOIN accounts a ON a.id = k.account_id JOIN plans p ON p.name = a.plan "
               "WHERE k.digest = ?",
               parameters, 1, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return IW_NOT_FOUND;
    *account = (struct account){
        .key_id = db_integer_of(db_at(&rows, 0, 0)),
        .id = db_integer_of(db_at(&rows, 0, 1)),
        .key_expires_ms = db_integer_of(db_at(&rows, 0, 2)),
        .key_last_used_ms = db_integer_of(db_at(&rows, 0, 3)),
        .is_suspended = db_integer_of(db_at(&rows, 0, 4)) != 0,
        .requests_per_minute = (unsigned)db_integer_of(db_at(&rows, 0, 5)),
        .key_revoked_ms = db_integer_of(db_at(&rows, 0, 6)),
    };
    return IW_OK;
}

enum iw_error keys_touch(const struct store *store, int64_t key_id, int64_t now_ms)
{
    const struct db_value parameters[] = {db_time(now_ms), db_integer(key_id), db_time(now_ms)};
    return db_run(store,
                  "UPDATE api_keys SET last_used_at = ? "
                  "WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)",
                  parameters, 3, NULL);
}
