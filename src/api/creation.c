#include "api/creation.h"

#include <string.h>

#include "api/views.h"
#include "api/targets.h"
#include "base/text.h"
#include "http/response.h"

static const struct {
    const char *extension;
    const char *format;
} formats[] = {{"jpg", "JPG"}, {"jpeg", "JPG"}, {"png", "PNG"}, {"webp", "WEBP"}};

void creation_key_read(const struct field_place *body, struct order_request *wanted)
{
    const struct json *key = field_string(body, "idempotencyKey", true, 1, order_key_code_points_max);
    wanted->key = key != NULL ? key->string : NULL;
    wanted->key_length = key != NULL ? key->length : 0;
}

void creation_common_read(const struct field_place *body, struct order_request *wanted)
{
    creation_key_read(body, wanted);
    const struct json *name = field_string(body, "orderName", false, 1, order_name_code_points_max);
    wanted->name = name != NULL ? name->string : NULL;
    json_digest(body->context->arena, body->object, wanted->body_digest);
}

void creation_files_read(struct request *request, const struct field_place *body,
                         const struct creation_source *source,
                         void (*item)(const struct field_place *place, struct order_request_file *file),
                         struct order_request *wanted)
{
    struct arena *arena = body->context->arena;
    const struct json *files = field_array(body, "files", true, 1, order_files_max);
    if (files == NULL)
        return;
    wanted->files = arena_array(arena, files->length, sizeof *wanted->files);
    for (const struct json *entry = files->first; entry != NULL; entry = entry->next) {
        unsigned index = wanted->file_count++;
        struct order_request_file *file = &wanted->files[index];
        struct field_place place = {body->context, entry, arena_printf(arena, "files[%u].", index)};
        if (!json_is(entry, JSON_KIND_OBJECT)) {
            field_bad(body, arena_printf(arena, "files[%u]", index), "is %s; it must be an object",
                      json_kind_name(entry->kind));
            continue;
        }
        file->name = field_file_name(&place, "fileName");
        file->source_url = targets_url(&place, source->name, source->is_required, request->config);
        if (item != NULL)
            item(&place, file);
    }
}

enum iw_error creation_make(struct request *request, struct order_request *wanted, struct order_view *view)
{
    if (request->context->detail_count > 0)
        order_targets_check(request->context, wanted);
    enum iw_error error = context_validated(request->context);
    if (error != IW_OK)
        return error;
    error = order_create(request->domain, &request->admission, wanted, view);
    if (error != IW_OK)
        return error;
    if (view->is_replay) {
        response_header(request, "Idempotent-Replayed", "true");
        return IW_OK;
    }
    response_status(request, 201);
    response_header_printf(request, "Location", "%s/api/v2/orders/%lld", request->config->api_public_url,
                           (long long)view->order.id);
    return IW_OK;
}

struct render *creation_begin(struct request *request, const struct order_view *view)
{
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_string(render, "orderName", view->order.name);
    render_id(render, "orderId", view->order.id);
    render_string(render, "status", order_status_name(view->order.status));
    return render;
}

void creation_file_render(struct render *render, const struct domain *domain, const struct order *order,
                          const struct order_file *file)
{
    render_string(render, "fileName", file->name);
    if (file->source_url != NULL)
        render_string(render, "originalFileUrl", file->source_url);
    else
        view_upload(render, domain, order, file);
}

void creation_format_render(struct render *render, const char *file_name)
{
    const char *dot = strrchr(file_name, '.'), *format = NULL;
    for (size_t i = 0; dot != NULL && i < sizeof formats / sizeof formats[0]; i++)
        if (text_equal_nocase(dot + 1, formats[i].extension))
            format = formats[i].format;
    render_string(render, "fileFormat", format);
    render_string(render, "fileType", "IMG");
}
