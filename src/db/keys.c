#include "db/keys.h"

#include <stdio.h>

#include "db/quotas.h"

/* A scope that only a newer version knows gives no right, and is a limit all the same. */
static unsigned scopes_of(struct db_row *columns)
{
    unsigned scopes = 0;
    const char *names = db_next_text(columns);
    return names == NULL || key_scopes_read(names, &scopes) ? scopes : scopes | KEY_SCOPE_UNKNOWN;
}

enum iw_error keys_find(const struct db *db, const uint8_t digest[32], struct account *account,
                        bool *is_found)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_bytes(digest, 32)};
    enum iw_error error = db_run(
        db,
        "SELECT k.id, k.account_id, k.expires_at, k.last_used_at, a.status = 'suspended', "
        "a.requests_per_minute, k.revoked_at, k.scopes, a.plan, " QUOTA_LIMIT_COLUMNS ", " QUOTA_USE_COLUMNS
        " FROM api_keys k JOIN accounts a ON a.id = k.account_id LEFT JOIN account_usage u ON "
        "u.account_id = a.id "
        "WHERE k.digest = ?",
        parameters, 1, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *account = (struct account){0};
    account->key_id = db_next_integer(&columns);
    account->id = db_next_integer(&columns);
    account->key_expires_ms = db_next_integer(&columns);
    account->key_last_used_ms = db_next_integer(&columns);
    account->is_suspended = db_next_bool(&columns);
    account->requests_per_minute = (unsigned)db_next_integer(&columns);
    account->key_revoked_ms = db_next_integer(&columns);
    account->key_scopes = scopes_of(&columns);
    snprintf(account->plan, sizeof account->plan, "%s", db_next_text(&columns));
    account->quotas = quotas_limits_of(&columns);
    account->used = quotas_use_of(&columns);
    return IW_OK;
}

enum iw_error keys_touch(const struct db *db, int64_t key_id, int64_t now_ms)
{
    const struct db_value parameters[] = {db_time(now_ms), db_integer(key_id), db_time(now_ms)};
    return db_run(db,
                  "UPDATE api_keys SET last_used_at = ? "
                  "WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)",
                  parameters, 3, NULL);
}

enum iw_error keys_insert(const struct db *db, const struct keys_row *row, int64_t *id)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(row->account_id),
                                      db_text(row->name),
                                      db_text(row->prefix),
                                      db_bytes(row->digest, 32),
                                      db_text(key_scopes_text(db->context->arena, row->scopes, ",")),
                                      db_time(row->created_ms),
                                      db_time(row->expires_ms),
                                      row->user_id > 0 ? db_integer(row->user_id) : db_null(),
                                      db_text(row->user_id > 0 ? row->user_email : NULL)};
    enum iw_error error = db_run(db,
                                 "INSERT INTO api_keys (account_id, name, prefix, digest, scopes, "
                                 "created_at, expires_at, user_id, user_email) VALUES (?, ?, ?, ?, ?, ?, ?, "
                                 "?, ?)",
                                 values, 9, &rows);
    if (error == IW_OK)
        *id = rows.inserted_id;
    return error;
}

#define KEY_COLUMNS                                                                                          \
    "SELECT k.id, k.account_id, a.name, k.name, k.prefix, k.scopes, k.created_at, k.expires_at, "            \
    "k.revoked_at, "                                                                                         \
    "k.last_used_at, k.user_id, k.user_email FROM api_keys k JOIN accounts a ON a.id = k.account_id "

static void keys_read(const struct db *db, const struct db_rows *rows, struct account_key **keys,
                      size_t *count)
{
    *keys = arena_array(db->context->arena, rows->count + 1, sizeof **keys);
    *count = rows->count;
    for (size_t row = 0; row < rows->count; row++) {
        struct db_row columns = db_row(rows, row);
        struct account_key *key = &(*keys)[row];
        *key = (struct account_key){0};
        key->id = db_next_integer(&columns);
        key->account_id = db_next_integer(&columns);
        key->account = db_next_text(&columns);
        key->name = db_next_text(&columns);
        key->prefix = db_next_text(&columns);
        key->scopes = scopes_of(&columns);
        key->created_at_ms = db_next_integer(&columns);
        key->expires_at_ms = db_next_integer(&columns);
        key->revoked_at_ms = db_next_integer(&columns);
        key->last_used_at_ms = db_next_integer(&columns);
        key->user_id = db_next_integer(&columns);
        key->user_email = db_next_text(&columns);
    }
}

enum iw_error keys_list(const struct db *db, int64_t account_id, struct account_key **keys, size_t *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(account_id), db_integer(account_id)};
    enum iw_error error =
        db_run(db, KEY_COLUMNS "WHERE ? = 0 OR k.account_id = ? ORDER BY k.id", values, 2, &rows);
    if (error == IW_OK)
        keys_read(db, &rows, keys, count);
    return error;
}

enum iw_error keys_page(const struct db *db, int64_t account_id, const struct keys_page *page,
                        struct account_key **keys, size_t *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(account_id), db_integer(page->limit),
                                      db_integer(page->offset)};
    enum iw_error error = db_run(db, KEY_COLUMNS "WHERE k.account_id = ? ORDER BY k.id DESC LIMIT ? OFFSET ?",
                                 values, 3, &rows);
    if (error == IW_OK)
        keys_read(db, &rows, keys, count);
    return error;
}

enum iw_error keys_of_users(const struct db *db, int64_t account_id, int64_t now_ms,
                            struct keys_of_user **users, size_t *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(account_id), db_time(now_ms)};
    enum iw_error error =
        db_run(db,
               "SELECT user_id, COUNT(*) FROM api_keys WHERE account_id = ? AND user_id IS NOT NULL AND "
               "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?) GROUP BY user_id",
               values, 2, &rows);
    if (error != IW_OK)
        return error;
    *users = arena_array(db->context->arena, rows.count + 1, sizeof **users);
    *count = rows.count;
    for (size_t i = 0; i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        (*users)[i].user_id = db_next_integer(&columns);
        (*users)[i].count = db_next_integer(&columns);
    }
    return IW_OK;
}

enum iw_error keys_revoke_of_user(const struct db *db, int64_t account_id, int64_t user_id, int64_t now_ms,
                                  int64_t *count)
{
    const struct db_value values[] = {db_time(now_ms), db_integer(account_id), db_integer(user_id)};
    return query_change(
        db, "UPDATE api_keys SET revoked_at = ? WHERE account_id = ? AND user_id = ? AND revoked_at IS NULL",
        values, 3, count);
}

enum iw_error keys_count(const struct db *db, int64_t account_id, int64_t now_ms, int64_t *total,
                         int64_t *valid)
{
    struct db_rows rows;
    const struct db_value values[] = {db_time(now_ms), db_integer(account_id)};
    enum iw_error error = db_run(db,
                                 "SELECT COUNT(*), COUNT(IF(revoked_at IS NULL AND (expires_at IS NULL OR "
                                 "expires_at > ?), 1, NULL)) FROM api_keys WHERE account_id = ?",
                                 values, 2, &rows);
    if (error != IW_OK)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *total = db_next_integer(&columns);
    *valid = db_next_integer(&columns);
    return IW_OK;
}

enum iw_error keys_get(const struct db *db, int64_t account_id, int64_t id, struct account_key *key,
                       bool *is_found)
{
    struct db_rows rows;
    size_t count;
    struct account_key *keys;
    const struct db_value values[] = {db_integer(account_id), db_integer(id)};
    enum iw_error error = db_run(db, KEY_COLUMNS "WHERE k.account_id = ? AND k.id = ?", values, 2, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    keys_read(db, &rows, &keys, &count);
    *key = keys[0];
    return IW_OK;
}

enum iw_error keys_revoke(const struct db *db, int64_t id, int64_t now_ms)
{
    struct db_rows rows;
    const struct db_value find[] = {db_integer(id)};
    const struct db_value values[] = {db_time(now_ms), db_integer(id)};
    enum iw_error error = db_run(db, "SELECT id FROM api_keys WHERE id = ?", find, 1, &rows);
    if (error == IW_OK && rows.count == 0)
        return context_fail(db->context, IW_NOT_FOUND, "No key has this id.");
    if (error != IW_OK)
        return error;
    return db_run(db, "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, ?) WHERE id = ?", values, 2,
                  NULL);
}

enum iw_error keys_expire(const struct db *db, int64_t id, int64_t expires_at_ms)
{
    struct db_rows rows;
    const struct db_value find[] = {db_integer(id)};
    const struct db_value values[] = {db_time(expires_at_ms), db_integer(id)};
    enum iw_error error = db_run(db, "SELECT 1 FROM api_keys WHERE id = ?", find, 1, &rows);
    if (error == IW_OK && rows.count == 0)
        return context_fail(db->context, IW_NOT_FOUND,
                            "The key %lld does not exist; imgwardctl key list shows the keys.",
                            (long long)id);
    return error == IW_OK ? db_run(db, "UPDATE api_keys SET expires_at = ? WHERE id = ?", values, 2, NULL)
                          : error;
}

enum iw_error keys_find_by_prefix(const struct db *db, const char *prefix, int64_t *id)
{
    struct db_rows rows;
    const struct db_value values[] = {db_text(prefix)};
    enum iw_error error =
        db_run(db, "SELECT id FROM api_keys WHERE prefix = CONVERT(? USING ascii) LIMIT 2", values, 1, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count != 1)
        return context_fail(db->context, IW_NOT_FOUND,
                            rows.count == 0 ? "No key begins like this."
                                            : "Several keys begin like this; use the id of the key.");
    struct db_row columns = db_row(&rows, 0);
    *id = db_next_integer(&columns);
    return IW_OK;
}
