/* Audit log, request log, and the bodies of requests and webhook deliveries. */
#include <string.h>

#include "api/page.h"
#include "base/clock.h"
#include "base/text.h"
#include "console/tables.h"
#include "console/view.h"
#include "domain/accounts/account.h"
#include "domain/accounts/request_log.h"
#include "domain/webhooks/webhook_event.h"
#include "http/response.h"

enum { status_least = 100, status_most = 599, status_class = 100 };

static const int64_t day_ms = 24 * 60 * 60 * 1000;

static void event_render(struct render *render, const struct audit_event *event)
{
    render_object_begin(render, NULL);
    render_id(render, "id", event->id);
    render_time(render, "at", event->at_ms);
    render_string(render, "event", event->event);
    if (event->user_id == 0) {
        render_null(render, "user");
    } else {
        render_object_begin(render, "user");
        render_id(render, "id", event->user_id);
        render_string(render, "name", event->user_name);
        render_string(render, "email", event->user_email);
        render_object_end(render);
    }
    render_string(render, "address", event->address);
    render_lines(render, "details", event->details);
    render_object_end(render);
}

/* A list has the newest rows before an id; the response has the id for older rows. */
static int64_t before_read(struct request *request)
{
    int64_t id = INT64_MAX;
    const char *text = request_query(request, "before");
    if (text != NULL && !text_integer(text, 1, INT64_MAX, &id))
        context_detail(request->context, "before", "is \"%.*s\"; it must be the olderBefore of a list",
                       text_head(text, 40), text);
    return id;
}

static enum iw_error audit_show(struct request *request)
{
    struct page page;
    struct audit_rows events;
    page_read(request, &page);
    const struct audit_page range = {request->account->id, before_read(request),
                                     page.limit < 0 ? 1000 : page.limit, page_offset(&page)};
    enum iw_error error = context_validated(request->context);
    if (error == IW_OK)
        error = account_audit(request->domain, &range, &events);
    if (error != IW_OK)
        return error;
    struct render *render = page_begin(request, "events");
    for (size_t i = 0; i < events.count; i++)
        event_render(render, &events.items[i]);
    page_window_end(render, &page, events.total, events.older_id);
    return IW_OK;
}

/* ---- request log ---- */

/* Reads "2xx" or "404" as a range of statuses. */
static void status_read(struct request *request, struct request_log_filter *filter)
{
    int64_t number;
    const char *text = request_query(request, "status");
    filter->status_to = status_most;
    if (text == NULL)
        return;
    if (strlen(text) == 3 && text[0] >= '1' && text[0] <= '5' && strcmp(text + 1, "xx") == 0) {
        filter->status_from = (int64_t)(text[0] - '0') * status_class;
        filter->status_to = filter->status_from + status_class - 1;
    } else if (text_integer(text, status_least, status_most, &number)) {
        filter->status_from = filter->status_to = number;
    } else {
        context_detail(request->context, "status",
                       "is \"%.*s\"; it must be a status such as 404 or a class such as 2xx",
                       text_head(text, 40), text);
    }
}

static void filter_read(struct request *request, struct request_log_filter *filter)
{
    const char *key = request_query(request, "keyId");
    *filter = (struct request_log_filter){.account_id = request->account->id,
                                          .since_ms = clock_now_ms() - request_log_days * day_ms,
                                          .method = request_query(request, "method"),
                                          .code = request_query(request, "code"),
                                          .request_id = request_query(request, "requestId")};
    status_read(request, filter);
    if (key != NULL && !text_integer(key, 1, INT64_MAX, &filter->key_id))
        context_detail(request->context, "keyId", "is \"%.*s\"; it must be the id of a key",
                       text_head(key, 40), key);
}

static enum iw_error requests_show(struct request *request)
{
    struct page page;
    struct request_log_filter filter;
    struct request_log_rows rows;
    page_read(request, &page);
    filter_read(request, &filter);
    filter.before_id = before_read(request);
    filter.limit = page.limit < 0 ? 1000 : page.limit;
    filter.offset = page_offset(&page);
    bool is_search = filter.method != NULL || filter.status_from > 0 || filter.code != NULL ||
                     filter.key_id > 0 || filter.request_id != NULL;
    enum iw_error error = context_validated(request->context);
    if (error == IW_OK && is_search)
        error = page_search_take(request);
    if (error == IW_OK)
        error = request_log_list(request->domain, &filter, &rows);
    if (error != IW_OK)
        return error;
    struct render *render = page_begin(request, "requests");
    for (size_t i = 0; i < rows.count; i++) {
        render_object_begin(render, NULL);
        render_string(render, "requestId", rows.items[i].request_id);
        render_time(render, "at", rows.items[i].at_ms);
        render_string(render, "method", rows.items[i].method);
        render_string(render, "path", rows.items[i].path);
        render_integer(render, "status", rows.items[i].status);
        render_string(render, "code", rows.items[i].code[0] != '\0' ? rows.items[i].code : NULL);
        render_id(render, "keyId", rows.items[i].key_id);
        render_integer(render, "milliseconds", rows.items[i].ms);
        render_object_end(render);
    }
    page_window_end(render, &page, rows.total, rows.older_id);
    return IW_OK;
}

static enum iw_error bodies_show(struct request *request)
{
    struct request_log_row row;
    enum iw_error error = request_log_find_bodies(request->domain, request->account->id,
                                                  request_capture(request, "request"), &row);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_string(render, "requestBody", row.request_body);
    render_string(render, "responseBody", row.response_body);
    render_object_end(render);
    return IW_OK;
}

/* ---- webhook deliveries ---- */

static enum iw_error exchange_show(struct request *request)
{
    int64_t id, event_id;
    struct deliveries_exchange exchange;
    enum iw_error error = view_id(request, "webhookId", &id);
    if (error == IW_OK)
        error = view_id(request, "eventId", &event_id);
    if (error == IW_OK)
        error = webhook_event_exchange(request->domain, request->account->id, id, event_id, &exchange);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_array_begin(render, "headers");
    for (const char *line = exchange.headers; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        render_string_n(render, NULL, line, length);
        line += length + (line[length] == '\n');
    }
    render_array_end(render);
    render_string(render, "payload", exchange.payload);
    render_string(render, "responseBody", exchange.answer[0] != '\0' ? exchange.answer : NULL);
    render_object_end(render);
    return IW_OK;
}

const struct route console_activity[] = {
    {METHOD_GET, "/api/audit", audit_show, 0},
    {METHOD_GET, "/api/requests", requests_show, 0},
    {METHOD_GET, "/api/requests/{request}/bodies", bodies_show, 0},
    {METHOD_GET, "/api/webhooks/{webhookId}/events/{eventId}/bodies", exchange_show, 0},
    {.pattern = NULL},
};
