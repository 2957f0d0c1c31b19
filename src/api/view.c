#include "api/view.h"

#include "base/message.h"
#include "domain/orders/order_confirm.h"
#include "domain/orders/order_download.h"
#include "model/result.h"

void view_upload(struct render *render, const struct domain *domain, const struct order *order,
                 const struct order_file *file)
{
    struct arena *arena = domain->context->arena;
    bool is_pending = order->status == ORDER_PENDING;
    int64_t expires_ms = 0;
    const char *url = is_pending ? order_upload_url(domain, arena, order->id, file, &expires_ms) : NULL;
    render_string(render, "uploadUrl", url);
    render_string(render, "fileKey", order_upload_key(arena, order->id, file));
    render_time(render, "uploadUrlExpiresAt", expires_ms);
}

void view_order(struct render *render, const struct domain *domain, struct arena *scratch,
                const struct order *order)
{
    render_id(render, "orderId", order->id);
    render_string(render, "orderName", order->name);
    render_string(render, "type", order_type_name(order->type));
    render_string(render, "channel", order_channel_name(order->channel));
    render_string(render, "status", order_status_name(order->status));
    render_integer(render, "fileCount", order->file_count);
    render_integer(render, "completedFileCount", order->completed_file_count);
    render_string(render, "thumbnailImageUrl", order_thumbnail_url(domain, scratch, order, NULL));
    render_time(render, "createdAt", order->created_ms);
    render_time(render, "updatedAt", order->updated_ms);
    render_time(render, "expiresAt", order->expires_ms);
    render_time(render, "deletedAt", order_deleted_ms(order));
    if (order->metadata != NULL)
        render_lines(render, "metadata", order->metadata);
}

void view_file_id(struct render *render, const struct order *order, int64_t id)
{
    if (order->type == ORDER_ANTI_AI)
        render_integer(render, "fileId", id);
    else
        render_id(render, "fileId", id);
}

void view_size(struct render *render, const char *key, int64_t bytes)
{
    if (bytes > 0)
        render_integer(render, key, bytes);
    else
        render_null(render, key);
}

void view_protection(struct render *render, int percent)
{
    if (percent < 0) {
        render_null(render, "protection");
        return;
    }
    render_object_begin(render, "protection");
    render_integer(render, "share", percent);
    render_string(render, "word", result_word(percent));
    render_object_end(render);
}

void view_reason(struct render *render, const char *key, const char *code, const char *message)
{
    if (code == NULL) {
        render_null(render, key);
        return;
    }
    render_object_begin(render, key);
    render_string(render, "code", code);
    render_string(render, "message", message);
    message_parts_render(render, message);
    render_object_end(render);
}
