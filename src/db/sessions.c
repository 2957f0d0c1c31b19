#include "db/sessions.h"

#define SESSION_COLUMNS                                                                                      \
    "SELECT id, user_id, address, user_agent, created_at, seen_at, expires_at FROM user_sessions "

static void session_read(struct db_row *columns, struct user_session *session)
{
    *session = (struct user_session){0};
    session->id = db_next_integer(columns);
    session->user_id = db_next_integer(columns);
    session->address = db_next_text(columns);
    session->user_agent = db_next_text(columns);
    session->created_ms = db_next_integer(columns);
    session->seen_ms = db_next_integer(columns);
    session->expires_ms = db_next_integer(columns);
}

enum iw_error sessions_insert(const struct db *db, const struct user_session *session,
                              const uint8_t digest[32])
{
    const struct db_value values[] = {db_integer(session->user_id), db_bytes(digest, 32),
                                      db_text(session->address),    db_text(session->user_agent),
                                      db_time(session->created_ms), db_time(session->created_ms),
                                      db_time(session->expires_ms)};
    return db_run(db,
                  "INSERT INTO user_sessions (user_id, digest, address, user_agent, created_at, seen_at, "
                  "expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
                  values, 7, NULL);
}

enum iw_error sessions_find(const struct db *db, const uint8_t digest[32], struct user_session *session,
                            bool *is_found)
{
    struct db_rows rows;
    const struct db_value values[] = {db_bytes(digest, 32)};
    enum iw_error error = db_run(db, SESSION_COLUMNS "WHERE digest = ?", values, 1, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    session_read(&columns, session);
    return IW_OK;
}

enum iw_error sessions_touch(const struct db *db, int64_t id, const char *address, int64_t now_ms)
{
    const struct db_value values[] = {db_time(now_ms), db_text(address), db_integer(id), db_time(now_ms)};
    return db_run(db, "UPDATE user_sessions SET seen_at = ?, address = ? WHERE id = ? AND seen_at < ?",
                  values, 4, NULL);
}

enum iw_error sessions_page(const struct db *db, const struct sessions_page *page,
                            struct user_session **sessions, size_t *count, int64_t *total)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(page->user_id), db_time(page->seen_ms),
                                      db_time(page->now_ms), db_integer(page->limit),
                                      db_integer(page->offset)};
    enum iw_error error = query_number(
        db, "SELECT COUNT(*) FROM user_sessions WHERE user_id = ? AND seen_at > ? AND expires_at > ?", values,
        3, total);
    if (error == IW_OK)
        error = db_run(db,
                       SESSION_COLUMNS "WHERE user_id = ? AND seen_at > ? AND expires_at > ? "
                                       "ORDER BY id DESC LIMIT ? OFFSET ?",
                       values, 5, &rows);
    if (error != IW_OK)
        return error;
    *sessions = arena_array(db->context->arena, rows.count + 1, sizeof **sessions);
    *count = rows.count;
    for (size_t i = 0; i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        session_read(&columns, &(*sessions)[i]);
    }
    return IW_OK;
}

enum iw_error sessions_end(const struct db *db, int64_t user_id, int64_t id, int64_t *count)
{
    const struct db_value values[] = {db_integer(user_id), db_integer(id)};
    return query_change(db, "DELETE FROM user_sessions WHERE user_id = ? AND id = ?", values, 2, count);
}

enum iw_error sessions_end_others(const struct db *db, int64_t user_id, int64_t except_id)
{
    const struct db_value values[] = {db_integer(user_id), db_integer(except_id)};
    return db_run(db, "DELETE FROM user_sessions WHERE user_id = ? AND id <> ?", values, 2, NULL);
}

enum iw_error sessions_trim(const struct db *db, int64_t user_id, int64_t most)
{
    int64_t edge_id = 0;
    const struct db_value find[] = {db_integer(user_id), db_integer(most)};
    enum iw_error error =
        query_number(db, "SELECT id FROM user_sessions WHERE user_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?",
                     find, 2, &edge_id);
    const struct db_value values[] = {db_integer(user_id), db_integer(edge_id)};
    return error == IW_OK && edge_id > 0
               ? db_run(db, "DELETE FROM user_sessions WHERE user_id = ? AND id <= ?", values, 2, NULL)
               : error;
}

enum iw_error sessions_forget(const struct db *db, int64_t seen_ms, int64_t now_ms, int64_t *count)
{
    const struct db_value values[] = {db_time(seen_ms), db_time(now_ms)};
    return query_change(db, "DELETE FROM user_sessions WHERE seen_at < ? OR expires_at < ? LIMIT 1000",
                        values, 2, count);
}
