#include "store/webhooks.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define WEBHOOK_COLUMNS                                                                                      \
    "SELECT id, name, url, is_active, inactive_reason, (SELECT MAX(s.signs_until) FROM webhook_secrets s "   \
    "WHERE s.webhook_id = webhooks.id), created_at, updated_at FROM "                                        \
    "webhooks WHERE account_id = ? AND deleted_at IS NULL "

/* A keyword as LIKE wants it, its wildcards taken literally; names compare without regard to case. */
#define WEBHOOK_KEYWORD                                                                                      \
    "AND (? IS NULL OR name COLLATE utf8mb4_unicode_ci LIKE ? OR CONVERT(url USING utf8mb4) COLLATE "        \
    "utf8mb4_unicode_ci LIKE ? OR id = ?) "

enum { event_columns = 11 };

#define EVENT_COLUMNS                                                                                        \
    "SELECT e.id, e.order_id, e.type, e.occurred_at, d.status, d.failure_count, d.response_status, "         \
    "d.reason, d.available_at, d.tried_at, d.delivered_at FROM webhook_deliveries d JOIN webhook_events e "  \
    "ON e.id = d.event_id WHERE d.webhook_id = ? "

#define EVENT_KEYWORD "AND (? IS NULL OR CONVERT(e.type USING utf8mb4) LIKE ? OR e.id = ? OR e.order_id = ?) "

enum iw_error webhooks_insert(const struct store *store, int64_t account_id, const char *name,
                              const char *url, int64_t now_ms, int64_t *id)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(account_id), db_text(name), db_text(url), db_time(now_ms),
                                      db_time(now_ms)};
    enum iw_error error = db_run(
        store, "INSERT INTO webhooks (account_id, name, url, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
        values, 5, &rows);
    if (error == IW_OK)
        *id = rows.inserted_id;
    return error;
}

static void webhook_take(const struct db_rows *rows, size_t row, struct webhook *webhook)
{
    *webhook = (struct webhook){
        .id = db_integer_of(db_at(rows, row, 0)),
        .name = db_text_of(db_at(rows, row, 1)),
        .url = db_text_of(db_at(rows, row, 2)),
        .is_active = db_integer_of(db_at(rows, row, 3)) != 0,
        .inactive_reason = db_text_of(db_at(rows, row, 4)),
        .secret_before_until_ms = db_integer_of(db_at(rows, row, 5)),
        .created_ms = db_integer_of(db_at(rows, row, 6)),
        .updated_ms = db_integer_of(db_at(rows, row, 7)),
    };
}

static enum iw_error webhook_find_by(const struct store *store, const char *sql, int64_t account_id,
                                     int64_t id, struct webhook *webhook)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(account_id), db_integer(id)};
    enum iw_error error = db_run(store, sql, values, 2, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return IW_NOT_FOUND;
    webhook_take(&rows, 0, webhook);
    return IW_OK;
}

enum iw_error webhooks_find(const struct store *store, int64_t account_id, int64_t id,
                            struct webhook *webhook)
{
    return webhook_find_by(store, WEBHOOK_COLUMNS "AND id = ?", account_id, id, webhook);
}

enum iw_error webhooks_lock(const struct store *store, int64_t account_id, int64_t id,
                            struct webhook *webhook)
{
    return webhook_find_by(store, WEBHOOK_COLUMNS "AND id = ? FOR UPDATE", account_id, id, webhook);
}

/* "%keyword%" with LIKE's own signs escaped, or NULL. */
static const char *pattern_of(struct arena *arena, const char *keyword)
{
    struct text pattern;
    if (keyword == NULL)
        return NULL;
    text_init(&pattern, arena);
    text_add_string(&pattern, "%");
    for (; *keyword != '\0'; keyword++) {
        if (strchr("\\%_", *keyword) != NULL)
            text_add_string(&pattern, "\\");
        text_add(&pattern, keyword, 1);
    }
    text_add_string(&pattern, "%");
    return pattern.data;
}

/* The keyword as an id; 0, which no row has, when it is none. */
static int64_t id_of(const char *keyword)
{
    int64_t id = 0;
    return keyword != NULL && text_integer(keyword, 1, INT64_MAX, &id) ? id : 0;
}

static struct db_value page_limit(const struct webhooks_page *page)
{
    return db_integer(page->limit < 0 ? INT64_MAX : page->limit);
}

enum iw_error webhooks_list(const struct store *store, int64_t account_id, const char *keyword,
                            const struct webhooks_page *page, struct webhook **webhooks, size_t *count)
{
    struct db_rows rows;
    const char *pattern = pattern_of(store->context->arena, keyword);
    const struct db_value values[] = {db_integer(account_id),  db_text(pattern),           db_text(pattern),
                                      db_text(pattern),        db_integer(id_of(keyword)), page_limit(page),
                                      db_integer(page->offset)};
    enum iw_error error =
        db_run(store, WEBHOOK_COLUMNS WEBHOOK_KEYWORD "ORDER BY id DESC LIMIT ? OFFSET ?", values, 7, &rows);
    if (error != IW_OK)
        return error;
    *webhooks = arena_array(store->context->arena, rows.count + 1, sizeof **webhooks);
    *count = rows.count;
    for (size_t row = 0; row < rows.count; row++)
        webhook_take(&rows, row, &(*webhooks)[row]);
    return IW_OK;
}

static enum iw_error count_run(const struct store *store, const char *sql, const struct db_value *values,
                               unsigned value_count, int64_t *count)
{
    struct db_rows rows;
    enum iw_error error = db_run(store, sql, values, value_count, &rows);
    if (error == IW_OK)
        *count = db_integer_of(db_at(&rows, 0, 0));
    return error;
}

enum iw_error webhooks_count(const struct store *store, int64_t account_id, const char *keyword,
                             int64_t *count)
{
    const char *pattern = pattern_of(store->context->arena, keyword);
    const struct db_value values[] = {db_integer(account_id), db_text(pattern), db_text(pattern),
                                      db_text(pattern), db_integer(id_of(keyword))};
    return count_run(
        store, "SELECT COUNT(*) FROM webhooks WHERE account_id = ? AND deleted_at IS NULL " WEBHOOK_KEYWORD,
        values, 5, count);
}

enum iw_error webhooks_update(const struct store *store, const struct webhook *webhook, int64_t now_ms)
{
    const char *reason = webhook->is_active ? NULL : webhook->inactive_reason;
    const struct db_value values[] = {
        db_text(webhook->url), db_text(webhook->name), db_text(webhook->url),  db_integer(webhook->is_active),
        db_text(reason),       db_time(now_ms),        db_integer(webhook->id)};
    /* From left to right: what stands in the row before decides whose failures those were. */
    return db_run(store,
                  "UPDATE webhooks SET first_failure_at = IF(is_active AND url = ?, first_failure_at, NULL), "
                  "name = ?, url = ?, is_active = ?, inactive_reason = ?, updated_at = ? WHERE id = ?",
                  values, 7, NULL);
}

enum iw_error webhooks_delete(const struct store *store, int64_t id, int64_t now_ms)
{
    const struct db_value values[] = {db_time(now_ms), db_time(now_ms), db_integer(id)};
    return db_run(store, "UPDATE webhooks SET deleted_at = ?, is_active = FALSE, updated_at = ? WHERE id = ?",
                  values, 3, NULL);
}

static enum iw_error secrets_age(const struct store *store, int64_t id, int64_t until_ms, int64_t now_ms)
{
    const struct db_value over[] = {db_integer(id), db_time(now_ms)};
    const struct db_value values[] = {db_time(until_ms), db_integer(id)};
    enum iw_error error =
        db_run(store, "DELETE FROM webhook_secrets WHERE webhook_id = ? AND signs_until <= ?", over, 2, NULL);
    if (error != IW_OK)
        return error;
    return db_run(store,
                  "UPDATE webhook_secrets SET signs_until = ? WHERE webhook_id = ? AND signs_until IS NULL",
                  values, 2, NULL);
}

enum iw_error webhooks_secret_add(const struct store *store, int64_t id, const void *sealed,
                                  size_t sealed_size, int64_t before_until_ms, int64_t now_ms)
{
    const struct db_value secret[] = {db_integer(id), db_bytes(sealed, sealed_size), db_time(now_ms)};
    const struct db_value values[] = {db_time(now_ms), db_integer(id)};
    enum iw_error error = secrets_age(store, id, before_until_ms, now_ms);
    if (error == IW_OK)
        error = db_run(store, "INSERT INTO webhook_secrets (webhook_id, sealed, created_at) VALUES (?, ?, ?)",
                       secret, 3, NULL);
    if (error != IW_OK)
        return error;
    return db_run(store, "UPDATE webhooks SET updated_at = ? WHERE id = ?", values, 2, NULL);
}

enum iw_error webhooks_event_insert(const struct store *store, int64_t id, int64_t account_id,
                                    int64_t order_id, const char *type, int64_t now_ms, bool *is_written)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(id),        db_integer(account_id), db_integer(order_id),
                                      db_text(type),         db_integer(order_id),   db_time(now_ms),
                                      db_integer(account_id)};
    enum iw_error error = db_run(
        store,
        "INSERT INTO webhook_events (id, account_id, order_id, type, sequence, occurred_at) SELECT ?, "
        "?, ?, ?, (SELECT COALESCE(MAX(before_it.sequence), 0) + 1 FROM webhook_events before_it WHERE "
        "before_it.order_id = ?), ? FROM DUAL WHERE EXISTS (SELECT 1 FROM webhooks w WHERE "
        "w.account_id = ? AND w.is_active AND w.deleted_at IS NULL)",
        values, 7, &rows);
    if (error == IW_OK)
        *is_written = rows.affected > 0;
    return error;
}

enum iw_error webhooks_event_insert_test(const struct store *store, int64_t id, int64_t account_id,
                                         const char *type, int64_t now_ms)
{
    const struct db_value values[] = {db_integer(id), db_integer(account_id), db_text(type), db_time(now_ms)};
    return db_run(store, "INSERT INTO webhook_events (id, account_id, type, occurred_at) VALUES (?, ?, ?, ?)",
                  values, 4, NULL);
}

enum iw_error webhooks_event_spread(const struct store *store, int64_t event_id, int64_t account_id,
                                    int64_t webhook_id, int64_t now_ms)
{
    const struct db_value values[] = {db_integer(event_id),  db_time(now_ms),        db_time(now_ms),
                                      db_time(now_ms),       db_integer(account_id), db_integer(webhook_id),
                                      db_integer(webhook_id)};
    return db_run(store,
                  "INSERT INTO webhook_deliveries (webhook_id, event_id, available_at, created_at, "
                  "updated_at) SELECT id, ?, ?, ?, ? FROM webhooks WHERE account_id = ? AND is_active AND "
                  "deleted_at IS NULL AND (? = 0 OR id = ?)",
                  values, 7, NULL);
}

/* The columns of EVENT_COLUMNS. */
static void event_take(const struct db_value *columns, struct webhook_event *event)
{
    *event = (struct webhook_event){
        .id = db_integer_of(&columns[0]),
        .order_id = db_integer_of(&columns[1]),
        .type = db_text_of(&columns[2]),
        .occurred_ms = db_integer_of(&columns[3]),
        .status = delivery_state_by_name(db_text_of(&columns[4])),
        .failures = db_integer_of(&columns[5]),
        .response_status = db_integer_of(&columns[6]),
        .reason = db_text_of(&columns[7]),
        .available_ms = db_integer_of(&columns[8]),
        .tried_ms = db_integer_of(&columns[9]),
        .delivered_ms = db_integer_of(&columns[10]),
    };
}

enum iw_error webhooks_event_list(const struct store *store, int64_t webhook_id, const char *keyword,
                                  const struct webhooks_page *page, struct webhook_event **events,
                                  size_t *count)
{
    struct db_rows rows;
    const char *pattern = pattern_of(store->context->arena, keyword);
    int64_t id = id_of(keyword);
    const struct db_value values[] = {db_integer(webhook_id),  db_text(pattern), db_text(pattern),
                                      db_integer(id),          db_integer(id),   page_limit(page),
                                      db_integer(page->offset)};
    enum iw_error error = db_run(
        store, EVENT_COLUMNS EVENT_KEYWORD "ORDER BY d.event_id DESC LIMIT ? OFFSET ?", values, 7, &rows);
    if (error != IW_OK)
        return error;
    *events = arena_array(store->context->arena, rows.count + 1, sizeof **events);
    *count = rows.count;
    for (size_t row = 0; row < rows.count; row++)
        event_take(db_at(&rows, row, 0), &(*events)[row]);
    return IW_OK;
}

/* Passes a row on as an event. */
struct event_stream {
    bool (*take)(void *user, const struct webhook_event *event);
    void *user;
};

static bool stream_row(void *user, const struct db_value *values, unsigned columns)
{
    const struct event_stream *stream = user;
    struct webhook_event event;
    if (columns != event_columns)
        abort();
    event_take(values, &event);
    return stream->take(stream->user, &event);
}

enum iw_error webhooks_event_stream(const struct store *store, int64_t webhook_id, const char *keyword,
                                    bool (*take)(void *user, const struct webhook_event *event), void *user)
{
    struct event_stream stream = {take, user};
    const char *pattern = pattern_of(store->context->arena, keyword);
    int64_t id = id_of(keyword);
    const struct db_value values[] = {db_integer(webhook_id), db_text(pattern), db_text(pattern),
                                      db_integer(id), db_integer(id)};
    /* The index webhook_deliveries_once gives the rows in this order: nothing is sorted or kept. */
    return db_stream(store, EVENT_COLUMNS EVENT_KEYWORD "ORDER BY d.event_id DESC", values, 5, stream_row,
                     &stream);
}

enum iw_error webhooks_event_count(const struct store *store, int64_t webhook_id, const char *keyword,
                                   int64_t *count)
{
    const char *pattern = pattern_of(store->context->arena, keyword);
    int64_t id = id_of(keyword);
    const struct db_value values[] = {db_integer(webhook_id), db_text(pattern), db_text(pattern),
                                      db_integer(id), db_integer(id)};
    return count_run(store,
                     "SELECT COUNT(*) FROM webhook_deliveries d JOIN webhook_events e ON e.id = d.event_id "
                     "WHERE d.webhook_id = ? " EVENT_KEYWORD,
                     values, 5, count);
}

enum iw_error webhooks_event_find(const struct store *store, int64_t webhook_id, int64_t event_id,
                                  struct webhook_event *event)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(webhook_id), db_integer(event_id)};
    enum iw_error error = db_run(store, EVENT_COLUMNS "AND d.event_id = ?", values, 2, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return IW_NOT_FOUND;
    event_take(db_at(&rows, 0, 0), event);
    return IW_OK;
}
