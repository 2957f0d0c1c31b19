#include "api/creation.h"

#include <string.h>

#include "api/view.h"
#include "api/targets.h"
#include "base/message.h"
#include "base/text.h"
#include "http/response.h"
#include "model/account.h"
#include "model/format.h"

static const char suffix_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

const struct request_array creation_files = {"files", order_files_max};

void creation_key_read(const struct field_scope *body, struct order_request *requested)
{
    const struct json *key = field_string(body, "idempotencyKey", true, 1, order_key_code_points_max);
    requested->key = json_string_of(key);
    requested->key_length = json_length(key);
}

/* Reads one member of metadata that is not null. */
static void pair_read(const struct field_scope *body, const struct field_scope *metadata, const char *key,
                      struct text *lines)
{
    size_t length = text_code_points(key, strlen(key));
    if (length < 1 || length > order_metadata_key_code_points_max)
        field_bad(body, "metadata", "has a key of %zu characters, \"%.*s\"; 1 to %d are allowed", length,
                  text_head(key, 40), key, order_metadata_key_code_points_max);
    else if (text_has_control(key, strlen(key)))
        field_bad(body, "metadata", "has a key with control characters, such as line breaks or tabs");
    else {
        const struct json *value = field_string(metadata, key, true, 0, order_metadata_value_code_points_max);
        if (value != NULL)
            text_printf(lines, "%s\t%s\n", key, json_string_of(value));
    }
}

static void metadata_read(const struct field_scope *body, struct order_request *requested)
{
    struct field_scope metadata;
    struct text lines;
    if (!field_object(body, "metadata", false, &metadata))
        return;
    text_init(&lines, body->context->arena);
    unsigned count = 0;
    const struct json *value;
    for (const char *key = NULL; (value = json_member_next(metadata.object, &key)) != NULL;)
        if (!json_is_absent(value) && ++count <= order_metadata_pairs_max)
            pair_read(body, &metadata, key, &lines);
    if (count > order_metadata_pairs_max)
        field_bad(body, "metadata", "has %u keys; at most %d are allowed", count, order_metadata_pairs_max);
    requested->metadata = lines.length > 0 ? lines.data : NULL;
}

void creation_common_read(const struct field_scope *body, struct order_request *requested)
{
    creation_key_read(body, requested);
    const struct json *name = field_string(body, "orderName", false, 1, order_name_code_points_max);
    requested->name = json_string_of(name);
    metadata_read(body, requested);
    json_digest(body->object, requested->body_digest);
}

void creation_suffix_read(const struct field_scope *body, struct order_request *requested)
{
    const struct json *suffix = field_string(body, "resultSuffix", false, 1, order_suffix_bytes_max);
    const char *text = json_string_of(suffix);
    if (text != NULL && text[strspn(text, suffix_characters)] != '\0')
        field_bad(body, "resultSuffix",
                  "is \"%.*s\"; it may have the letters A to Z and a to z, digits, \"-\" and \"_\"",
                  text_head(text, 40), text);
    requested->result_suffix = text;
}

void creation_files_read(struct request *request, const struct field_scope *body,
                         const struct creation_source *source,
                         void (*item)(const struct field_scope *scope, struct order_request_file *file),
                         struct order_request *requested)
{
    struct arena *arena = body->context->arena;
    const struct json *files = field_array(body, "files", true, 1, order_files_max);
    if (files == NULL)
        return;
    requested->files = arena_array(arena, json_length(files), sizeof *requested->files);
    const struct json *json;
    while ((json = json_item(files, requested->file_count)) != NULL) {
        unsigned index = requested->file_count++;
        struct order_request_file *file = &requested->files[index];
        struct field_scope scope = {body->context, json, arena_printf(arena, "files[%u].", index)};
        if (!json_is(json, JSON_KIND_OBJECT)) {
            field_bad(body, arena_printf(arena, "files[%u]", index), message_wrong_value,
                      json_kind_name(json), "an object");
            continue;
        }
        file->name = field_file_name(&scope, "fileName", formats_taken(request->config, requested->type));
        file->source_url = targets_url(&scope, source->name, source->is_required, request->config);
        if (item != NULL)
            item(&scope, file);
    }
}

static void usage_headers(struct request *request, const struct quota_state *state)
{
    response_header_always(request, "UsageLimit-Name", quota_name(state->quota));
    response_header_always(request, "UsageLimit-Limit",
                           arena_printf(request->arena, "%lld", (long long)state->limit));
    response_header_always(request, "UsageLimit-Used",
                           arena_printf(request->arena, "%lld", (long long)state->used));
}

void creation_usage_headers(struct request *request, const struct quota_state *refusal)
{
    usage_headers(request, refusal);
    response_header_always(request, "UsageLimit-Reset", arena_printf(request->arena, "%u", refusal->frees_s));
}

enum iw_error creation_make(struct request *request, struct order_request *requested, struct order_view *view)
{
    struct quota_state nearest;
    if (request->context->detail_count > 0)
        order_request_targets_check(request->context, requested);
    enum iw_error error = context_validated(request->context);
    if (error != IW_OK)
        return error;
    requested->account = request->account;
    error = order_create(request->domain, &request->admission, requested, view);
    if (error == IW_USAGE_LIMIT_EXCEEDED && view->refusal.limit > 0)
        creation_usage_headers(request, &view->refusal);
    if (error != IW_OK)
        return error;
    if (view->is_replay) {
        response_header(request, "Idempotent-Replayed", "true");
        return IW_OK;
    }
    response_status(request, 201);
    if (quota_nearest(request->config, request->account, &nearest))
        usage_headers(request, &nearest);
    response_header_printf(request, "Location", "%s%s/api/v2/orders/%lld", request->config->api_public_url,
                           request_prefix(request), (long long)view->order.id);
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
    const char *dot = strrchr(file_name, '.');
    render_string(render, "fileFormat", dot != NULL ? format_word(format_by_extension(dot)) : NULL);
    render_string(render, "fileType", "IMG");
}
