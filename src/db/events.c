#include "db/events.h"

#include <stdlib.h>

#include "base/text.h"
#include "db/query.h"

#define EVENT_COLUMNS                                                                                        \
    "SELECT e.id, e.order_id, e.type, e.occurred_at, d.status, d.failure_count, d.response_status, "         \
    "d.reason, d.available_at, d.tried_at, d.delivered_at FROM webhook_deliveries d JOIN webhook_events e "  \
    "ON e.id = d.event_id WHERE d.webhook_id = ? "

#define EVENT_FILTER                                                                                         \
    "AND (? IS NULL OR CONVERT(e.type USING utf8mb4) LIKE ? OR e.id = ? OR e.order_id = ?) AND (? IS NULL "  \
    "OR FIND_IN_SET(d.status, ?)) "

enum { filter_values = 7 };

enum iw_error events_insert(const struct db *db, const struct events_row *row, bool *is_written)
{
    int64_t affected = 0;
    enum iw_error error;
    if (row->order_id == 0) {
        const struct db_value values[] = {db_integer(row->id), db_integer(row->account_id),
                                          db_text(row->type), db_time(row->occurred_ms)};
        error = query_change(
            db, "INSERT INTO webhook_events (id, account_id, type, occurred_at) VALUES (?, ?, ?, ?)", values,
            4, &affected);
    } else {
        const struct db_value values[] = {db_integer(row->id),        db_integer(row->account_id),
                                          db_integer(row->order_id),  db_text(row->type),
                                          db_integer(row->order_id),  db_time(row->occurred_ms),
                                          db_integer(row->account_id)};
        error = query_change(
            db,
            "INSERT INTO webhook_events (id, account_id, order_id, type, sequence, occurred_at) SELECT ?, "
            "?, ?, ?, (SELECT COALESCE(MAX(before_it.sequence), 0) + 1 FROM webhook_events before_it WHERE "
            "before_it.order_id = ?), ? FROM DUAL WHERE EXISTS (SELECT 1 FROM webhooks w WHERE "
            "w.account_id = ? AND w.is_active AND w.deleted_at IS NULL)",
            values, 7, &affected);
    }
    *is_written = affected > 0;
    return error;
}

/* Returns the keyword as an id; 0, which no row has, for any other text. */
static int64_t id_of(const char *keyword)
{
    int64_t id = 0;
    return keyword != NULL && text_integer(keyword, 1, INT64_MAX, &id) ? id : 0;
}

/* Reads the columns of EVENT_COLUMNS. */
static void event_read(struct db_row *columns, struct webhook_event *event)
{
    *event = (struct webhook_event){0};
    event->id = db_next_integer(columns);
    event->order_id = db_next_integer(columns);
    event->type = db_next_text(columns);
    event->occurred_ms = db_next_integer(columns);
    event->status = delivery_state_by_name(db_next_text(columns));
    event->failures = db_next_integer(columns);
    event->response_status = db_next_integer(columns);
    event->reason = db_next_text(columns);
    event->available_ms = db_next_integer(columns);
    event->tried_ms = db_next_integer(columns);
    event->delivered_ms = db_next_integer(columns);
}

/* Fills the parameters of a list: the webhook and EVENT_FILTER. */
static void filter_write(struct arena *arena, int64_t webhook_id, const struct events_filter *filter,
                         struct db_value values[filter_values])
{
    const char *pattern = query_pattern(arena, filter->keyword);
    int64_t id = id_of(filter->keyword);
    const struct db_value all[filter_values] = {
        db_integer(webhook_id), db_text(pattern),        db_text(pattern),       db_integer(id),
        db_integer(id),         db_text(filter->states), db_text(filter->states)};
    for (unsigned i = 0; i < filter_values; i++)
        values[i] = all[i];
}

enum iw_error events_list(const struct db *db, int64_t webhook_id, const struct events_filter *filter,
                          const struct webhooks_page *page, struct webhook_event **events, size_t *count)
{
    struct db_rows rows;
    struct db_value values[filter_values + 2];
    filter_write(db->context->arena, webhook_id, filter, values);
    values[filter_values] = db_integer(page->limit < 0 ? INT64_MAX : page->limit);
    values[filter_values + 1] = db_integer(page->offset);
    enum iw_error error = db_run(db, EVENT_COLUMNS EVENT_FILTER "ORDER BY d.event_id DESC LIMIT ? OFFSET ?",
                                 values, filter_values + 2, &rows);
    if (error != IW_OK)
        return error;
    *events = arena_array(db->context->arena, rows.count + 1, sizeof **events);
    *count = rows.count;
    for (size_t i = 0; i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        event_read(&columns, &(*events)[i]);
    }
    return IW_OK;
}

/* Converts each row to an event. */
struct event_stream {
    bool (*take)(void *user, const struct webhook_event *event);
    void *user;
};

static bool stream_row(void *user, struct db_row *columns)
{
    const struct event_stream *stream = user;
    struct webhook_event event;
    event_read(columns, &event);
    return stream->take(stream->user, &event);
}

enum iw_error events_stream(const struct db *db, int64_t webhook_id, const struct events_filter *filter,
                            bool (*take)(void *user, const struct webhook_event *event), void *user)
{
    struct event_stream stream = {take, user};
    struct db_value values[filter_values];
    filter_write(db->context->arena, webhook_id, filter, values);
    /* The index webhook_deliveries_once yields the rows in this order, so nothing is sorted or buffered. */
    return db_stream(db, EVENT_COLUMNS EVENT_FILTER "ORDER BY d.event_id DESC", values, filter_values,
                     stream_row, &stream);
}

enum iw_error events_count(const struct db *db, int64_t webhook_id, const struct events_filter *filter,
                           int64_t *count)
{
    struct db_value values[filter_values];
    filter_write(db->context->arena, webhook_id, filter, values);
    return query_number(
        db,
        "SELECT COUNT(*) FROM webhook_deliveries d JOIN webhook_events e ON e.id = d.event_id "
        "WHERE d.webhook_id = ? " EVENT_FILTER,
        values, filter_values, count);
}

enum iw_error events_find(const struct db *db, int64_t webhook_id, int64_t event_id,
                          struct webhook_event *event, bool *is_found)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(webhook_id), db_integer(event_id)};
    enum iw_error error = db_run(db, EVENT_COLUMNS "AND d.event_id = ?", values, 2, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    event_read(&columns, event);
    return IW_OK;
}

enum iw_error events_subject(const struct db *db, int64_t event_id, struct delivery_subject *subject)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(event_id)};
    enum iw_error error = db_run(
        db,
        "SELECT e.account_id, e.type, e.occurred_at, e.sequence, e.order_id, o.trace_id, o.is_trace_sampled "
        "FROM webhook_events e LEFT JOIN orders o ON o.id = e.order_id WHERE e.id = ?",
        values, 1, &rows);
    if (error == IW_OK && rows.count == 0)
        return context_fail(db->context, IW_NOT_FOUND, "The event was deleted.");
    if (error != IW_OK)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *subject = (struct delivery_subject){.event_id = event_id};
    subject->account_id = db_next_integer(&columns);
    subject->event_type = db_next_text(&columns);
    subject->occurred_ms = db_next_integer(&columns);
    subject->sequence = db_next_integer(&columns);
    subject->order_id = db_next_integer(&columns);
    subject->trace_id = db_next_text(&columns);
    subject->is_trace_sampled = db_next_bool(&columns);
    return IW_OK;
}

enum iw_error events_forget(const struct db *db, int64_t before_ms, int64_t *count)
{
    const struct db_value values[] = {db_time(before_ms)};
    return query_change(
        db,
        "DELETE FROM webhook_events WHERE occurred_at < ? AND NOT EXISTS (SELECT 1 FROM "
        "webhook_deliveries d WHERE d.event_id = webhook_events.id) ORDER BY occurred_at LIMIT 500",
        values, 1, count);
}
