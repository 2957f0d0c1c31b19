#include "worker/payload.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/render.h"
#include "db/events.h"
#include "domain/orders/order_download.h"
#include "domain/orders/order_query.h"
#include "domain/webhooks/webhook.h"
#include "domain/webhooks/webhook_secret.h"

/* The status is that of the event, even if the order has expired since. */
static enum iw_error order_render(struct render *render, struct domain *domain,
                                  const struct delivery_subject *subject)
{
    struct order_view view;
    enum iw_error error = order_find(domain, subject->account_id, subject->order_id, &view);
    if (error != IW_OK)
        return error;
    const struct order *order = &view.order;
    enum order_status status = order->status;
    webhook_event_status(subject->event_type, order->watermark_text != NULL, &status);
    render_id(render, "orderId", order->id);
    render_string(render, "orderName", order->name);
    render_string(render, "type", order_type_name(order->type));
    render_string(render, "status", order_status_name(status));
    render_integer(render, "fileCount", order->file_count);
    render_time(render, "createdAt", order->created_ms);
    render_time(render, "updatedAt", order->updated_ms);
    if (order->metadata != NULL)
        render_lines(render, "metadata", order->metadata);
    if (order->status == ORDER_COMPLETE && !order->is_zero_copy) {
        struct order_download download;
        error = order_download_make(domain, order, &download);
        if (error == IW_OK && download.url != NULL)
            render_string(render, "downloadUrl", download.url);
    }
    if (status == ORDER_DETECTED)
        render_string(render, "watermarkText", order->watermark_text);
    if (status == ORDER_DETECTED && order->certainty > 0)
        render_integer(render, "certainty", order->certainty);
    if (status == ORDER_DETECTED && order->same_picture != SAME_PICTURE_UNKNOWN)
        render_boolean(render, "isSamePicture", order->same_picture == SAME_PICTURE_YES);
    const char *errors = order_errors(domain->context->arena, &view);
    if (errors != NULL)
        render_string(render, "errors", errors);
    return error;
}

static enum iw_error body_render(struct text *body, struct domain *domain,
                                 const struct delivery_subject *subject, int64_t webhook_id)
{
    struct render render;
    enum iw_error error = IW_OK;
    render_init(&render, body);
    render_object_begin(&render, NULL);
    render_id(&render, "eventId", subject->event_id);
    render_string(&render, "eventType", subject->event_type);
    render_time(&render, "occurredAt", subject->occurred_ms);
    render_object_begin(&render, "data");
    if (subject->order_id != 0)
        error = order_render(&render, domain, subject);
    else
        render_integer(&render, "webhookId", webhook_id);
    render_integer(&render, "sequence", subject->sequence);
    render_object_end(&render);
    render_object_end(&render);
    return error;
}

/* Adds a signature for each secret, separated by blanks; false if a secret cannot be decrypted. */
static bool signatures_add(struct text *signatures, struct domain *domain,
                           const struct deliveries_lease *receiver, const char *id, int64_t timestamp_s,
                           const struct text *body)
{
    for (unsigned i = 0; i < receiver->secret_count; i++) {
        struct webhook_secret secret;
        if (!webhook_secret_open(&secret, domain->secret_box, receiver->account_id,
                                 receiver->secrets[i].sealed, receiver->secrets[i].size))
            return false;
        text_printf(
            signatures, " %s",
            webhook_secret_sign(signatures->arena, secret.bytes, sizeof secret.bytes, id, timestamp_s, body));
        crypto_wipe(&secret, sizeof secret);
    }
    return receiver->secret_count > 0;
}

static enum iw_error payload_sign(struct domain *domain, const struct deliveries_lease *receiver,
                                  int64_t event_id, const struct text *body, struct payload *payload)
{
    struct arena *arena = domain->context->arena;
    struct text signatures;
    int64_t now_s = clock_now_ms() / 1000;
    const char *id = arena_printf(arena, "%" PRId64, event_id);
    text_init(&signatures, arena);
    text_add_string(&signatures, "webhook-signature:");
    if (!signatures_add(&signatures, domain, receiver, id, now_s, body)) {
        domain->context->reason = "secret_unreadable";
        context_cause(domain->context, "a secret of webhook %" PRId64 " was sealed with another key",
                      receiver->webhook_id);
        return context_fail(domain->context, IW_SERVER_INTERNAL_ERROR, NULL);
    }
    payload->headers[0] = "Content-Type: application/json";
    payload->headers[1] = arena_printf(arena, "webhook-id: %s", id);
    payload->headers[2] = arena_printf(arena, "webhook-timestamp: %" PRId64, now_s);
    payload->headers[3] = signatures.data;
    payload->headers[4] =
        arena_printf(arena, "traceparent: %s", trace_parent(arena, &domain->context->trace));
    return IW_OK;
}

static void trace_set(struct context *context, const struct delivery_subject *subject)
{
    trace_begin(&context->trace, context->arena, subject->trace_id);
    if (subject->trace_id != NULL)
        context->trace.is_sampled = subject->is_trace_sampled;
    context->order_id = subject->order_id;
}

enum iw_error payload_build(struct domain *domain, const struct deliveries_lease *receiver, int64_t event_id,
                            struct payload *payload)
{
    struct delivery_subject subject;
    struct text body;
    text_init(&body, domain->context->arena);
    enum iw_error error = events_subject(&domain->db, event_id, &subject);
    if (error != IW_OK)
        return error;
    trace_set(domain->context, &subject);
    error = body_render(&body, domain, &subject, receiver->webhook_id);
    if (error != IW_OK)
        return error;
    payload->body = body.data;
    payload->body_bytes = body.length;
    return payload_sign(domain, receiver, event_id, &body, payload);
}
