#include "db/users.h"

#include <stdio.h>
#include <string.h>

#include "db/quotas.h"

#define USER_COLUMNS                                                                                         \
    "SELECT s.id, s.role, s.email, s.name, s.language, s.password_hash, s.totp_sealed, s.totp_enabled_at, "  \
    "s.totp_step, s.is_admin, s.is_disabled, s.email_verified_at, s.created_at, s.last_sign_in_at, a.id, "   \
    "a.name, a.plan, a.status = 'suspended', a.requests_per_minute, " QUOTA_LIMIT_COLUMNS                    \
    " FROM users s JOIN accounts a ON a.id = s.account_id "                                                  \
    "LEFT JOIN account_usage u ON u.account_id = a.id "

static void user_read(struct db_row *columns, struct user *user)
{
    *user = (struct user){.id = 0};
    user->id = db_next_integer(columns);
    user_role_read(db_next_text(columns), &user->role);
    user->email = db_next_text(columns);
    user->name = db_next_text(columns);
    user_language_read(db_next_text(columns), &user->language);
    user->password_hash = db_next_text(columns);
    user->totp_sealed = db_next_bytes(columns, &user->totp_sealed_size);
    user->totp_enabled_ms = db_next_integer(columns);
    user->totp_step = db_next_integer(columns);
    user->is_admin = db_next_bool(columns);
    user->is_disabled = db_next_bool(columns);
    user->email_verified_ms = db_next_integer(columns);
    user->created_ms = db_next_integer(columns);
    user->last_sign_in_ms = db_next_integer(columns);
    user->account.id = db_next_integer(columns);
    user->account_name = db_next_text(columns);
    snprintf(user->account.plan, sizeof user->account.plan, "%s", db_next_text(columns));
    user->account.is_suspended = db_next_bool(columns);
    user->account.requests_per_minute = (unsigned)db_next_integer(columns);
    user->account.quotas = quotas_limits_of(columns);
}

static enum iw_error one(const struct db *db, const char *sql, struct db_value value, struct user *user,
                         bool *is_found)
{
    struct db_rows rows;
    enum iw_error error = db_run(db, sql, &value, 1, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    user_read(&columns, user);
    return IW_OK;
}

enum iw_error users_find(const struct db *db, int64_t id, struct user *user, bool *is_found)
{
    return one(db, USER_COLUMNS "WHERE s.id = ?", db_integer(id), user, is_found);
}

enum iw_error users_find_by_email(const struct db *db, const char *email, struct user *user, bool *is_found)
{
    return one(db, USER_COLUMNS "WHERE s.email = CONVERT(? USING ascii)", db_text(email), user, is_found);
}

enum iw_error users_lock(const struct db *db, int64_t id, struct user *user, bool *is_found)
{
    struct db_value value = db_integer(id);
    enum iw_error error = db_run(db, "SELECT id FROM users WHERE id = ? FOR UPDATE", &value, 1, NULL);
    return error == IW_OK ? users_find(db, id, user, is_found) : error;
}

enum iw_error users_insert(const struct db *db, const struct user *user, int64_t now_ms, int64_t *id)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(user->account.id),
                                      db_text(user_role_name(user->role)),
                                      db_text(user->email),
                                      db_text(user->name),
                                      db_text(user_language_name(user->language)),
                                      db_text(user->password_hash),
                                      db_integer(user->is_admin),
                                      db_time(user->email_verified_ms),
                                      db_time(now_ms)};
    enum iw_error error =
        db_run(db,
               "INSERT INTO users (account_id, role, email, name, language, password_hash, "
               "is_admin, email_verified_at, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
               values, 9, &rows);
    if (error == IW_OK)
        *id = rows.inserted_id;
    return error;
}

static void users_read(const struct db *db, const struct db_rows *rows, struct user **users, size_t *count)
{
    *users = arena_array(db->context->arena, rows->count + 1, sizeof **users);
    *count = rows->count;
    for (size_t i = 0; i < rows->count; i++) {
        struct db_row columns = db_row(rows, i);
        user_read(&columns, &(*users)[i]);
    }
}

enum iw_error users_of_account(const struct db *db, int64_t account_id, struct user **users, size_t *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(account_id)};
    enum iw_error error =
        db_run(db, USER_COLUMNS "WHERE s.account_id = ? ORDER BY s.role, s.id", values, 1, &rows);
    if (error == IW_OK)
        users_read(db, &rows, users, count);
    return error;
}

/* The worker's user of the database may read only these columns. */
enum iw_error users_owners(const struct db *db, int64_t account_id, struct user **users, size_t *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(account_id)};
    enum iw_error error = db_run(
        db,
        "SELECT id, email, language FROM users WHERE account_id = ? AND role = 'owner' AND NOT is_disabled",
        values, 1, &rows);
    if (error != IW_OK)
        return error;
    *users = arena_array(db->context->arena, rows.count + 1, sizeof **users);
    *count = rows.count;
    for (size_t row = 0; row < rows.count; row++) {
        struct db_row columns = db_row(&rows, row);
        struct user *user = &(*users)[row];
        *user = (struct user){0};
        user->id = db_next_integer(&columns);
        user->email = db_next_text(&columns);
        user_language_read(db_next_text(&columns), &user->language);
    }
    return IW_OK;
}

enum iw_error users_page(const struct db *db, const struct users_page *page, struct user **users,
                         size_t *count, int64_t *total)
{
    struct db_rows rows;
    const char *pattern = query_pattern(db->context->arena, page->keyword);
    const struct db_value values[] = {db_text(pattern), db_text(pattern),        db_text(pattern),
                                      db_text(pattern), db_integer(page->limit), db_integer(page->offset)};
    enum iw_error error = query_number(db,
                                       "SELECT COUNT(*) FROM users s JOIN accounts a ON a.id = s.account_id "
                                       "WHERE ? IS NULL OR s.email LIKE ? OR s.name LIKE ? OR a.name LIKE ?",
                                       values, 4, total);
    if (error == IW_OK)
        error = db_run(db,
                       USER_COLUMNS "WHERE ? IS NULL OR s.email LIKE ? OR s.name LIKE ? OR a.name LIKE ? "
                                    "ORDER BY s.id DESC LIMIT ? OFFSET ?",
                       values, 6, &rows);
    if (error == IW_OK)
        users_read(db, &rows, users, count);
    return error;
}

enum iw_error users_unverified(const struct db *db, int64_t before_ms, struct query_ids *ids)
{
    const struct db_value values[] = {db_time(before_ms)};
    return query_ids(
        db,
        "SELECT DISTINCT s.id FROM user_tokens t JOIN users s ON s.id = t.user_id WHERE t.purpose = "
        "'verify' AND s.email_verified_at IS NULL AND s.created_at < ? LIMIT 10",
        values, 1, ids);
}

enum iw_error users_owners_lock(const struct db *db, int64_t account_id, int64_t *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(account_id)};
    enum iw_error error = db_run(
        db, "SELECT id FROM users WHERE account_id = ? AND role = 'owner' AND NOT is_disabled FOR UPDATE",
        values, 1, &rows);
    *count = error == IW_OK ? (int64_t)rows.count : 0;
    return error;
}

enum iw_error users_profile_set(const struct db *db, int64_t id, const char *name,
                                enum user_language language)
{
    const struct db_value values[] = {db_text(name), db_text(user_language_name(language)), db_integer(id)};
    return db_run(db, "UPDATE users SET name = ?, language = ? WHERE id = ?", values, 3, NULL);
}

enum iw_error users_role_set(const struct db *db, int64_t id, enum user_role role)
{
    const struct db_value values[] = {db_text(user_role_name(role)), db_integer(id)};
    return db_run(db, "UPDATE users SET role = ? WHERE id = ?", values, 2, NULL);
}

enum iw_error users_flags_set(const struct db *db, int64_t id, bool is_admin, bool is_disabled)
{
    const struct db_value values[] = {db_integer(is_admin), db_integer(is_disabled), db_integer(id)};
    return db_run(db, "UPDATE users SET is_admin = ?, is_disabled = ? WHERE id = ?", values, 3, NULL);
}

enum iw_error users_password_set(const struct db *db, int64_t id, const char *hash)
{
    const struct db_value values[] = {db_text(hash), db_integer(id)};
    return db_run(db, "UPDATE users SET password_hash = ? WHERE id = ?", values, 2, NULL);
}

enum iw_error users_password_renew(const struct db *db, int64_t id, const char *before, const char *hash,
                                   bool *is_renewed)
{
    int64_t affected = 0;
    const struct db_value values[] = {db_text(hash), db_integer(id), db_text(before)};
    enum iw_error error =
        query_change(db,
                     "UPDATE users SET password_hash = ? WHERE id = ? AND password_hash = CONVERT(? USING "
                     "ascii) COLLATE ascii_bin",
                     values, 3, &affected);
    *is_renewed = affected > 0;
    return error;
}

enum iw_error users_email_verified(const struct db *db, int64_t id, int64_t now_ms)
{
    const struct db_value values[] = {db_time(now_ms), db_integer(id)};
    return db_run(db, "UPDATE users SET email_verified_at = COALESCE(email_verified_at, ?) WHERE id = ?",
                  values, 2, NULL);
}

enum iw_error users_signed_in(const struct db *db, int64_t id, int64_t now_ms)
{
    const struct db_value values[] = {db_time(now_ms), db_integer(id)};
    return db_run(db, "UPDATE users SET last_sign_in_at = ? WHERE id = ?", values, 2, NULL);
}

enum iw_error users_totp_set(const struct db *db, int64_t id, const uint8_t *sealed, size_t size)
{
    const struct db_value values[] = {sealed != NULL ? db_bytes(sealed, size) : db_null(), db_integer(id)};
    return db_run(db, "UPDATE users SET totp_sealed = ?, totp_enabled_at = NULL, totp_step = 0 WHERE id = ?",
                  values, 2, NULL);
}

enum iw_error users_totp_enable(const struct db *db, int64_t id, int64_t now_ms)
{
    const struct db_value values[] = {db_time(now_ms), db_integer(id)};
    return db_run(db, "UPDATE users SET totp_enabled_at = ? WHERE id = ?", values, 2, NULL);
}

enum iw_error users_totp_step(const struct db *db, int64_t id, int64_t step, bool *is_taken)
{
    int64_t affected = 0;
    const struct db_value values[] = {db_integer(step), db_integer(id), db_integer(step)};
    enum iw_error error = query_change(db, "UPDATE users SET totp_step = ? WHERE id = ? AND totp_step < ?",
                                       values, 3, &affected);
    *is_taken = affected > 0;
    return error;
}

enum iw_error users_delete(const struct db *db, int64_t id)
{
    const struct db_value values[] = {db_integer(id)};
    return db_run(db, "DELETE FROM users WHERE id = ?", values, 1, NULL);
}
