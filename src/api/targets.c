#include "api/targets.h"

#include <string.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/render.h"
#include "domain/webhooks/outgoing.h"

enum { target_key_code_points_max = 1024 };

const char *targets_url(const struct field_scope *scope, const char *name, bool is_required,
                        const struct config *config)
{
    const struct json *url = field_string(scope, name, is_required, 1, outgoing_url_bytes_max);
    if (url == NULL)
        return NULL;
    const char *fault = outgoing_url_fault(config, json_string_of(url));
    if (fault == NULL)
        return json_string_of(url);
    field_bad(scope, name, "%s", fault);
    return NULL;
}

/* 0: absent or invalid.  A time in the past is not checked here: a replay may repeat it. */
static int64_t expiry_read(const struct field_scope *target)
{
    int64_t expires_ms = 0;
    const struct json *time = field_string(target, "presignedUrlExpiresAt", true, 1, 40);
    if (time == NULL)
        return 0;
    if (clock_iso_read(json_string_of(time), &expires_ms))
        return expires_ms > 0 ? expires_ms : 1;
    field_bad(target, "presignedUrlExpiresAt",
              "is \"%s\"; it must be a time such as 2026-03-12T10:00:00.000Z", json_string_of(time));
    return 0;
}

/* NULL without headers.  An empty array counts as an empty object: PHP encodes it so. */
static const struct json *headers_object(const struct field_scope *target)
{
    const struct json *headers = json_member(target->object, "headers");
    bool is_empty_array = json_is(headers, JSON_KIND_ARRAY) && json_length(headers) == 0;
    if (json_is_absent(headers) || is_empty_array)
        return NULL;
    if (!json_is(headers, JSON_KIND_OBJECT)) {
        field_bad(target, "headers", "must be an object of strings");
        return NULL;
    }
    if (json_length(headers) <= outgoing_headers_max)
        return json_length(headers) > 0 ? headers : NULL;
    field_bad(target, "headers", "has %zu headers; at most %d are allowed", json_length(headers),
              outgoing_headers_max);
    return NULL;
}

static const char *header_fault(const struct json *headers, const char *name, const struct json *header)
{
    bool is_string = json_is(header, JSON_KIND_STRING);
    const char *fault = outgoing_header_fault(name, is_string ? json_string_of(header) : "-",
                                              is_string ? json_length(header) : 1);
    if (fault == NULL && !is_string)
        fault = "must be a string";
    for (const char *at = NULL; fault == NULL && json_member_next(headers, &at) != header;)
        if (text_equal_nocase(at, name))
            fault = "appears twice; header names do not distinguish upper and lower case";
    return fault;
}

/* The headers as JSON text for the file's row; NULL without headers. */
static const char *headers_read(const struct field_scope *target)
{
    struct arena *arena = target->context->arena;
    const struct json *headers = headers_object(target);
    struct text text;
    struct render render;
    size_t bytes = 0;
    const char *name = NULL;
    if (headers == NULL)
        return NULL;
    text_init(&text, arena);
    render_init(&render, &text);
    render_object_begin(&render, NULL);
    for (const struct json *header; (header = json_member_next(headers, &name)) != NULL;) {
        const char *fault = header_fault(headers, name, header);
        if (!outgoing_header_name_is_token(name))
            field_bad(target, "headers",
                      "has a name that is not an HTTP header name, or is longer than %d bytes",
                      outgoing_header_name_bytes_max);
        else if (fault != NULL)
            field_bad(target, arena_printf(arena, "headers.%s", name), "%s", fault);
        else {
            render_string(&render, name, json_string_of(header));
            bytes += strlen(name) + json_length(header);
        }
    }
    render_object_end(&render);
    if (bytes > outgoing_headers_bytes_max)
        field_bad(target, "headers", "has %zu bytes of names and values; at most %d are allowed", bytes,
                  outgoing_headers_bytes_max);
    return text.data;
}

static void target_read(const struct field_scope *body, const struct config *config, const struct json *item,
                        unsigned index, struct order_request_file *file)
{
    struct arena *arena = body->context->arena;
    struct field_scope target = {body->context, item, arena_printf(arena, "outputTargets[%u].", index)};
    if (!json_is(item, JSON_KIND_OBJECT)) {
        field_bad(body, arena_printf(arena, "outputTargets[%u]", index), message_wrong_value,
                  json_kind_name(item), "an object");
        return;
    }
    const struct json *key = field_string(&target, "fileKey", true, 1, target_key_code_points_max);
    file->target_key = json_string_of(key);
    file->target_url = targets_url(&target, "url", true, config);
    file->target_expires_ms = expiry_read(&target);
    file->target_headers = headers_read(&target);
}

void targets_read(const struct field_scope *body, const struct config *config,
                  struct order_request *requested)
{
    unsigned index = 0;
    struct order_request_file unpaired;
    const struct json *targets = field_array(body, "outputTargets", true, 1, order_files_max);
    if (targets == NULL)
        return;
    if (requested->file_count > 0 && json_length(targets) != requested->file_count)
        field_bad(body, "outputTargets", "has %zu items for %u files; each file needs one",
                  json_length(targets), requested->file_count);
    for (const struct json *item; (item = json_item(targets, index)) != NULL; index++)
        target_read(body, config, item, index,
                    index < requested->file_count ? &requested->files[index] : &unpaired);
}
