#include "db/webhooks.h"

#include "base/text.h"

#define WEBHOOK_COLUMNS                                                                                      \
    "SELECT id, name, url, is_active, inactive_reason, (SELECT MAX(s.signs_until) FROM webhook_secrets s "   \
    "WHERE s.webhook_id = webhooks.id), created_at, updated_at FROM "                                        \
    "webhooks WHERE account_id = ? AND deleted_at IS NULL "

/* Case is ignored. */
#define WEBHOOK_KEYWORD                                                                                      \
    "AND (? IS NULL OR name COLLATE utf8mb4_unicode_ci LIKE ? OR CONVERT(url USING utf8mb4) COLLATE "        \
    "utf8mb4_unicode_ci LIKE ? OR id = ?) "

enum iw_error webhooks_insert(const struct db *db, int64_t account_id, const char *name, const char *url,
                              int64_t now_ms, int64_t *id)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(account_id), db_text(name), db_text(url), db_time(now_ms),
                                      db_time(now_ms)};
    enum iw_error error = db_run(
        db, "INSERT INTO webhooks (account_id, name, url, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
        values, 5, &rows);
    if (error == IW_OK)
        *id = rows.inserted_id;
    return error;
}

enum iw_error webhooks_urls_lock(const struct db *db, int64_t account_id, int64_t except_id,
                                 struct query_texts *urls)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(except_id), db_integer(account_id)};
    enum iw_error error = db_run(db, "SELECT id FROM accounts WHERE id = ? FOR UPDATE", values + 1, 1, &rows);
    /* The first read without a lock follows it, and so sees the earlier commits of others. */
    return error == IW_OK ? query_texts(db,
                                        "SELECT url FROM webhooks WHERE id <> ? AND account_id = ? AND "
                                        "deleted_at IS NULL",
                                        values, 2, urls)
                          : error;
}

static void webhook_read(struct db_row *columns, struct webhook *webhook)
{
    *webhook = (struct webhook){0};
    webhook->id = db_next_integer(columns);
    webhook->name = db_next_text(columns);
    webhook->url = db_next_text(columns);
    webhook->is_active = db_next_bool(columns);
    webhook->inactive_reason = db_next_text(columns);
    webhook->secret_before_until_ms = db_next_integer(columns);
    webhook->created_ms = db_next_integer(columns);
    webhook->updated_ms = db_next_integer(columns);
}

static enum iw_error webhook_find_by(const struct db *db, const char *sql, int64_t account_id, int64_t id,
                                     struct webhook *webhook, bool *is_found)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(account_id), db_integer(id)};
    enum iw_error error = db_run(db, sql, values, 2, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    webhook_read(&columns, webhook);
    return IW_OK;
}

enum iw_error webhooks_find(const struct db *db, int64_t account_id, int64_t id, struct webhook *webhook,
                            bool *is_found)
{
    return webhook_find_by(db, WEBHOOK_COLUMNS "AND id = ?", account_id, id, webhook, is_found);
}

enum iw_error webhooks_lock(const struct db *db, int64_t account_id, int64_t id, struct webhook *webhook,
                            bool *is_found)
{
    return webhook_find_by(db, WEBHOOK_COLUMNS "AND id = ? FOR UPDATE", account_id, id, webhook, is_found);
}

/* The keyword as an id; 0, which no row has, for any other text. */
static int64_t id_of(const char *keyword)
{
    int64_t id = 0;
    return keyword != NULL && text_integer(keyword, 1, INT64_MAX, &id) ? id : 0;
}

enum iw_error webhooks_list(const struct db *db, int64_t account_id, const char *keyword,
                            const struct webhooks_page *page, struct webhook **webhooks, size_t *count)
{
    struct db_rows rows;
    const char *pattern = query_pattern(db->context->arena, keyword);
    const struct db_value values[] = {
        db_integer(account_id),     db_text(pattern),
        db_text(pattern),           db_text(pattern),
        db_integer(id_of(keyword)), db_integer(page->limit < 0 ? INT64_MAX : page->limit),
        db_integer(page->offset)};
    enum iw_error error =
        db_run(db, WEBHOOK_COLUMNS WEBHOOK_KEYWORD "ORDER BY id DESC LIMIT ? OFFSET ?", values, 7, &rows);
    if (error != IW_OK)
        return error;
    *webhooks = arena_array(db->context->arena, rows.count + 1, sizeof **webhooks);
    *count = rows.count;
    for (size_t i = 0; i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        webhook_read(&columns, &(*webhooks)[i]);
    }
    return IW_OK;
}

enum iw_error webhooks_count(const struct db *db, int64_t account_id, const char *keyword, int64_t *count)
{
    const char *pattern = query_pattern(db->context->arena, keyword);
    const struct db_value values[] = {db_integer(account_id), db_text(pattern), db_text(pattern),
                                      db_text(pattern), db_integer(id_of(keyword))};
    return query_number(
        db, "SELECT COUNT(*) FROM webhooks WHERE account_id = ? AND deleted_at IS NULL " WEBHOOK_KEYWORD,
        values, 5, count);
}

enum iw_error webhooks_update(const struct db *db, const struct webhook *webhook, int64_t now_ms)
{
    const char *reason = webhook->is_active ? NULL : webhook->inactive_reason;
    const struct db_value values[] = {
        db_text(webhook->url), db_text(webhook->name), db_text(webhook->url),  db_integer(webhook->is_active),
        db_text(reason),       db_time(now_ms),        db_integer(webhook->id)};
    /* MariaDB assigns from left to right, so the IF reads the old values of is_active and url. */
    return db_run(db,
                  "UPDATE webhooks SET first_failure_at = IF(is_active AND url = ?, first_failure_at, NULL), "
                  "name = ?, url = ?, is_active = ?, inactive_reason = ?, updated_at = ? WHERE id = ?",
                  values, 7, NULL);
}

enum iw_error webhooks_delete(const struct db *db, int64_t id, int64_t now_ms)
{
    const struct db_value values[] = {db_time(now_ms), db_time(now_ms), db_integer(id)};
    return db_run(db, "UPDATE webhooks SET deleted_at = ?, is_active = FALSE, updated_at = ? WHERE id = ?",
                  values, 3, NULL);
}

enum iw_error webhooks_secret_add(const struct db *db, int64_t id, const void *sealed, size_t sealed_size,
                                  int64_t before_until_ms, int64_t now_ms)
{
    const struct db_value expired[] = {db_integer(id), db_time(now_ms)};
    const struct db_value previous[] = {db_time(before_until_ms), db_integer(id)};
    const struct db_value secret[] = {db_integer(id), db_bytes(sealed, sealed_size), db_time(now_ms)};
    const struct db_value updated[] = {db_time(now_ms), db_integer(id)};
    enum iw_error error =
        db_run(db, "DELETE FROM webhook_secrets WHERE webhook_id = ? AND signs_until <= ?", expired, 2, NULL);
    if (error == IW_OK)
        error = db_run(
            db, "UPDATE webhook_secrets SET signs_until = ? WHERE webhook_id = ? AND signs_until IS NULL",
            previous, 2, NULL);
    if (error == IW_OK)
        error = db_run(db, "INSERT INTO webhook_secrets (webhook_id, sealed, created_at) VALUES (?, ?, ?)",
                       secret, 3, NULL);
    if (error != IW_OK)
        return error;
    return db_run(db, "UPDATE webhooks SET updated_at = ? WHERE id = ?", updated, 2, NULL);
}

enum iw_error webhooks_forget(const struct db *db, int64_t before_ms, int64_t *count)
{
    const struct db_value values[] = {db_time(before_ms)};
    return query_change(db,
                        "DELETE FROM webhooks WHERE deleted_at < ? AND NOT EXISTS (SELECT 1 FROM "
                        "webhook_deliveries d WHERE d.webhook_id = webhooks.id) LIMIT 500",
                        values, 1, count);
}

enum iw_error webhooks_inspect(const struct db *db, const char *account, struct query_table *table)
{
    static const char *const columns[] = {"webhookId", "account", "name",   "url",       "active",
                                          "why",       "pending", "failed", "delivered", "failingSince"};
    const struct db_value values[] = {db_text(account), db_text(account), db_text(account)};
    *table = (struct query_table){.name = "webhooks", .columns = columns};
    return db_run(db,
                  "SELECT w.id, a.name, w.name, w.url, w.is_active, w.inactive_reason, COUNT(IF(d.status IN "
                  "('PENDING', "
                  "'SENDING'), 1, NULL)), COUNT(IF(d.status = 'FAILED', 1, NULL)), COUNT(IF(d.status = "
                  "'DELIVERED', 1, NULL)), "
                  "w.first_failure_at FROM webhooks w JOIN accounts a ON a.id = w.account_id LEFT JOIN "
                  "webhook_deliveries d ON "
                  "d.webhook_id = w.id WHERE w.deleted_at IS NULL AND (? IS NULL OR a.name = ? OR CAST(a.id "
                  "AS CHAR) = ?) GROUP "
                  "BY w.id ORDER BY w.id",
                  values, 3, &table->rows);
}
