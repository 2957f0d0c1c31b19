#include "db/invitations.h"

#define INVITATION_COLUMNS                                                                                   \
    "SELECT i.id, i.account_id, a.name, i.email, i.role, i.created_at, i.expires_at FROM invitations i "     \
    "JOIN accounts a ON a.id = i.account_id "

static void invitation_read(struct db_row *columns, struct invitation *invitation)
{
    *invitation = (struct invitation){.role = USER_MEMBER};
    invitation->id = db_next_integer(columns);
    invitation->account_id = db_next_integer(columns);
    invitation->account_name = db_next_text(columns);
    invitation->email = db_next_text(columns);
    user_role_read(db_next_text(columns), &invitation->role);
    invitation->created_ms = db_next_integer(columns);
    invitation->expires_ms = db_next_integer(columns);
}

enum iw_error invitations_insert(const struct db *db, const struct invitation *invitation,
                                 const uint8_t digest[32], int64_t *id)
{
    struct db_rows rows;
    const struct db_value values[] = {
        db_integer(invitation->account_id),        db_text(invitation->email),
        db_text(user_role_name(invitation->role)), db_bytes(digest, 32),
        db_time(invitation->created_ms),           db_time(invitation->expires_ms)};
    enum iw_error error =
        db_run(db, "DELETE FROM invitations WHERE account_id = ? AND email = ?", values, 2, NULL);
    if (error == IW_OK)
        error = db_run(db,
                       "INSERT INTO invitations (account_id, email, role, digest, created_at, expires_at) "
                       "VALUES (?, ?, ?, ?, ?, ?)",
                       values, 6, &rows);
    if (error == IW_OK)
        *id = rows.inserted_id;
    return error;
}

enum iw_error invitations_count(const struct db *db, int64_t account_id, const char *except_email,
                                int64_t now_ms, int64_t *count)
{
    const struct db_value values[] = {db_integer(account_id), db_time(now_ms), db_text(except_email)};
    return query_number(
        db,
        "SELECT COUNT(*) FROM invitations WHERE account_id = ? AND expires_at > ? AND email <> "
        "CONVERT(? USING ascii) COLLATE ascii_bin",
        values, 3, count);
}

enum iw_error invitations_find(const struct db *db, const uint8_t digest[32], int64_t now_ms,
                               struct invitation *invitation, bool *is_found)
{
    struct db_rows rows;
    const struct db_value values[] = {db_bytes(digest, 32), db_time(now_ms)};
    enum iw_error error =
        db_run(db, INVITATION_COLUMNS "WHERE i.digest = ? AND i.expires_at > ?", values, 2, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    invitation_read(&columns, invitation);
    return IW_OK;
}

enum iw_error invitations_list(const struct db *db, int64_t account_id, int64_t now_ms,
                               struct invitation **invitations, size_t *count)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(account_id), db_time(now_ms)};
    enum iw_error error = db_run(
        db, INVITATION_COLUMNS "WHERE i.account_id = ? AND i.expires_at > ? ORDER BY i.id", values, 2, &rows);
    if (error != IW_OK)
        return error;
    *invitations = arena_array(db->context->arena, rows.count + 1, sizeof **invitations);
    *count = rows.count;
    for (size_t i = 0; i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        invitation_read(&columns, &(*invitations)[i]);
    }
    return IW_OK;
}

enum iw_error invitations_delete(const struct db *db, int64_t account_id, int64_t id, int64_t *count)
{
    const struct db_value values[] = {db_integer(account_id), db_integer(id)};
    return query_change(db, "DELETE FROM invitations WHERE account_id = ? AND id = ?", values, 2, count);
}

enum iw_error invitations_forget(const struct db *db, int64_t now_ms, int64_t *count)
{
    const struct db_value values[] = {db_time(now_ms)};
    return query_change(db, "DELETE FROM invitations WHERE expires_at < ? LIMIT 1000", values, 1, count);
}
