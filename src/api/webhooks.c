/* Webhooks, their secrets and their events (contract 7). */
#include <string.h>

#include "api/creation.h"
#include "api/field.h"
#include "api/stream.h"
#include "api/tables.h"
#include "base/message.h"
#include "base/text.h"
#include "domain/webhooks/webhook.h"
#include "domain/webhooks/webhook_event.h"
#include "http/response.h"
#include "model/account.h"

#define BASE "/api/v2/orders/webhooks"

/* The webhook's id in the path.  WEBHOOK_NOT_FOUND if it is not a number. */
static enum iw_error path_id(struct request *request, int64_t *id)
{
    if (text_integer(request_capture(request, "webhookId"), 1, INT64_MAX, id))
        return IW_OK;
    return context_fail(request->context, IW_WEBHOOK_NOT_FOUND, NULL);
}

static void webhook_render(struct render *render, const struct webhook *webhook)
{
    render_integer(render, "id", webhook->id);
    render_string(render, "name", webhook->name);
    render_string(render, "url", webhook->url);
    render_boolean(render, "isActive", webhook->is_active);
    render_string(render, "inactiveReason", webhook->is_active ? NULL : webhook->inactive_reason);
    render_time(render, "createdAt", webhook->created_ms);
    render_time(render, "updatedAt", webhook->updated_ms);
}

static void event_render(struct render *render, const struct webhook_event *event)
{
    bool is_open = event->status == DELIVERY_PENDING || event->status == DELIVERY_SENDING;
    render_id(render, "eventId", event->id);
    render_string(render, "eventType", event->type);
    if (event->order_id != 0)
        render_id(render, "orderId", event->order_id);
    else
        render_null(render, "orderId");
    render_time(render, "occurredAt", event->occurred_ms);
    render_string(render, "status", delivery_state_name(is_open ? DELIVERY_PENDING : event->status));
    render_integer(render, "failedAttempts", event->failures);
    if (event->response_status != 0)
        render_integer(render, "responseStatus", event->response_status);
    else
        render_null(render, "responseStatus");
    render_string(render, "reason", event->reason);
    render_time(render, "lastAttemptAt", event->tried_ms);
    render_time(render, "nextAttemptAt", is_open ? event->available_ms : 0);
    render_time(render, "deliveredAt", event->delivered_ms);
}

static void text_read(const struct field_scope *scope, const char *name, const char **text, size_t *length)
{
    const struct json *member = json_member(scope->object, name);
    if (json_is(member, JSON_KIND_STRING)) {
        *text = json_string_of(member);
        *length = json_length(member);
    } else if (!json_is_absent(member)) {
        field_bad(scope, name, message_wrong_value, json_kind_name(member), "a string");
    }
}

/* Checks all fields, so that one response lists every fault. */
static enum iw_error fields_read(struct request *request, bool is_new, struct webhook_fields *fields)
{
    struct field_scope scope = {.context = request->context, .prefix = ""};
    *fields = (struct webhook_fields){.is_active = -1};
    enum iw_error error = request_json(request, NULL, &scope.object);
    if (error != IW_OK)
        return error;
    text_read(&scope, "name", &fields->name, &fields->name_length);
    text_read(&scope, "url", &fields->url, &fields->url_length);
    if (!is_new && !json_is_absent(json_member(scope.object, "isActive")))
        fields->is_active = field_boolean(&scope, "isActive", false);
    bool is_url_absent = json_is_absent(json_member(scope.object, "url"));
    webhook_fields_check(request->context, request->config, fields, is_new && is_url_absent);
    return context_validated(request->context);
}

static enum iw_error create(struct request *request)
{
    struct webhook_fields fields;
    struct webhook webhook;
    const char *secret;
    struct quota_state refusal;
    enum iw_error error = fields_read(request, true, &fields);
    if (error == IW_OK)
        error = webhook_create(request->domain, request->account, &fields, &webhook, &secret, &refusal);
    if (error == IW_USAGE_LIMIT_EXCEEDED)
        creation_usage_headers(request, &refusal);
    if (error != IW_OK)
        return error;
    response_status(request, 201);
    response_header_printf(request, "Location", "%s%s" BASE "/%lld", request->config->api_public_url,
                           request_prefix(request), (long long)webhook.id);
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    webhook_render(render, &webhook);
    render_string(render, "secret", secret);
    render_object_end(render);
    return IW_OK;
}

static enum iw_error list(struct request *request)
{
    struct page page;
    struct webhook_rows rows;
    page_read(request, &page);
    const struct webhooks_page range = {page.limit, page_offset(&page)};
    enum iw_error error = context_validated(request->context);
    if (error == IW_OK)
        error = webhook_list(request->domain, request->account->id, page.keyword, &range, &rows);
    if (error != IW_OK)
        return error;
    struct render *render = page_begin(request, "webhooks");
    for (size_t i = 0; i < rows.count; i++) {
        render_object_begin(render, NULL);
        webhook_render(render, &rows.items[i]);
        render_object_end(render);
    }
    page_end(render, &page, rows.total);
    return IW_OK;
}

static enum iw_error detail(struct request *request)
{
    int64_t id;
    struct webhook webhook;
    enum iw_error error = path_id(request, &id);
    if (error == IW_OK)
        error = webhook_find(request->domain, request->account->id, id, &webhook);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    webhook_render(render, &webhook);
    render_time(render, "previousSecretExpiresAt",
                webhook_overlap_end_ms(&webhook)); /* null if only one secret signs */
    render_object_end(render);
    return IW_OK;
}

static enum iw_error change(struct request *request)
{
    int64_t id;
    struct webhook_fields fields;
    struct webhook webhook;
    enum iw_error error = path_id(request, &id);
    if (error == IW_OK)
        error = webhook_find(request->domain, request->account->id, id, &webhook);
    if (error == IW_OK)
        error = fields_read(request, false, &fields);
    if (error == IW_OK)
        error = webhook_change(request->domain, request->account->id, id, &fields, &webhook);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_integer(render, "id", webhook.id);
    render_string(render, "name", webhook.name);
    render_string(render, "url", webhook.url);
    render_boolean(render, "isActive", webhook.is_active);
    render_time(render, "updatedAt", webhook.updated_ms);
    render_object_end(render);
    return IW_OK;
}

static enum iw_error remove_one(struct request *request)
{
    int64_t id;
    enum iw_error error = path_id(request, &id);
    if (error == IW_OK)
        error = webhook_remove(request->domain, request->account->id, id);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_integer(render, "id", id);
    render_boolean(render, "deleted", true);
    render_object_end(render);
    return IW_OK;
}

static enum iw_error rotate(struct request *request)
{
    int64_t id;
    struct webhook webhook;
    const char *secret;
    enum iw_error error = path_id(request, &id);
    if (error == IW_OK)
        error = webhook_rotate(request->domain, request->account->id, id, &webhook, &secret);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_integer(render, "id", id);
    render_string(render, "secret", secret);
    render_time(render, "previousSecretExpiresAt", webhook.secret_before_until_ms);
    render_time(render, "updatedAt", webhook.updated_ms);
    render_object_end(render);
    return IW_OK;
}

static enum iw_error event_answer(struct request *request, const struct webhook_event *event)
{
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    event_render(render, event);
    render_object_end(render);
    return IW_OK;
}

static enum iw_error test(struct request *request)
{
    int64_t id;
    struct webhook_event event;
    enum iw_error error = path_id(request, &id);
    if (error == IW_OK)
        error = webhook_try(request->domain, request->account->id, id, &event);
    return error == IW_OK ? event_answer(request, &event) : error;
}

static bool event_take(void *user, const struct webhook_event *event)
{
    struct stream *stream = user;
    bool is_shown;
    if (!stream_item(stream, &is_shown))
        return false;
    if (is_shown) {
        render_object_begin(stream->render, NULL);
        event_render(stream->render, event);
        render_object_end(stream->render);
    }
    return stream_pass(stream);
}

/* Reads the filters of a list of events.  A delivery that is being sent is shown as pending. */
static void events_filter_read(struct request *request, const struct page *page, struct events_filter *filter)
{
    const char *status = request_query(request, "status");
    *filter = (struct events_filter){.keyword = page->keyword, .states = status};
    if (status == NULL || status[0] == '\0')
        filter->states = NULL;
    else if (strcmp(status, delivery_state_name(DELIVERY_PENDING)) == 0)
        filter->states = "PENDING,SENDING";
    else if (strcmp(status, delivery_state_name(DELIVERY_DELIVERED)) != 0 &&
             strcmp(status, delivery_state_name(DELIVERY_FAILED)) != 0)
        context_detail(request->context, "status", "is \"%.*s\"; it must be PENDING, DELIVERED or FAILED",
                       text_head(status, 40), status);
}

static enum iw_error events_page(struct request *request, int64_t id, const struct page *page,
                                 const struct events_filter *filter)
{
    struct webhook_event_rows rows;
    const struct webhooks_page range = {page->limit, page_offset(page)};
    enum iw_error error = webhook_events(request->domain, request->account->id, id, filter, &range, &rows);
    if (error != IW_OK)
        return error;
    struct render *render = page_begin(request, "events");
    for (size_t i = 0; i < rows.count; i++) {
        render_object_begin(render, NULL);
        event_render(render, &rows.items[i]);
        render_object_end(render);
    }
    page_end(render, page, rows.total);
    return IW_OK;
}

static enum iw_error events(struct request *request)
{
    int64_t id;
    struct page page;
    struct events_filter filter;
    enum iw_error error = path_id(request, &id);
    if (error != IW_OK)
        return error;
    page_read(request, &page);
    events_filter_read(request, &page, &filter);
    error = context_validated(request->context);
    if (error == IW_OK)
        error = page_place_take(request, &page);
    if (error != IW_OK)
        return error;
    if (page.limit != page_limit_all)
        return events_page(request, id, &page, &filter);
    struct stream stream;
    stream_init(&stream, request, &page, "events");
    return stream_end(&stream, webhook_events_stream(request->domain, request->account->id, id, &filter,
                                                     event_take, &stream));
}

static enum iw_error retry(struct request *request)
{
    int64_t id, event_id;
    struct webhook_event event;
    enum iw_error error = path_id(request, &id);
    if (error != IW_OK)
        return error;
    if (!text_integer(request_capture(request, "eventId"), 1, INT64_MAX, &event_id))
        event_id = 0;
    error = webhook_event_retry(request->domain, request->account->id, id, event_id, &event);
    return error == IW_OK ? event_answer(request, &event) : error;
}

const struct route api_webhooks[] = {
    {METHOD_POST, BASE, create, ROUTE_SCOPE(KEY_SCOPE_WEBHOOKS)},
    {METHOD_GET, BASE, list, ROUTE_SCOPE(KEY_SCOPE_READ | KEY_SCOPE_WEBHOOKS)},
    {METHOD_GET, BASE "/{webhookId}", detail, ROUTE_SCOPE(KEY_SCOPE_READ | KEY_SCOPE_WEBHOOKS)},
    {METHOD_PUT, BASE "/{webhookId}", change, ROUTE_SCOPE(KEY_SCOPE_WEBHOOKS)},
    {METHOD_DELETE, BASE "/{webhookId}", remove_one, ROUTE_SCOPE(KEY_SCOPE_WEBHOOKS)},
    {METHOD_POST, BASE "/{webhookId}/rotate-secret", rotate, ROUTE_SCOPE(KEY_SCOPE_WEBHOOKS)},
    {METHOD_POST, BASE "/{webhookId}/test", test, ROUTE_SCOPE(KEY_SCOPE_WEBHOOKS)},
    {METHOD_GET, BASE "/{webhookId}/events", events, ROUTE_SCOPE(KEY_SCOPE_READ | KEY_SCOPE_WEBHOOKS)},
    {METHOD_POST, BASE "/{webhookId}/events/{eventId}/retry", retry, ROUTE_SCOPE(KEY_SCOPE_WEBHOOKS)},
    {.pattern = NULL},
};
