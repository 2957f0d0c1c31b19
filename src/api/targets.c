#include "api/targets.h"

#include <string.h>

#include "base/clock.h"
#include "base/render.h"
#include "domain/outgoing.h"

enum { target_key_code_points_max = 1024 };

const char *targets_url(const struct field_place *place, const char *name, bool is_required,
                        const struct config *config)
{
    const struct json *url = field_string(place, name, is_required, 1, outgoing_url_bytes_max);
    if (url == NULL)
        return NULL;
    const char *fault = outgoing_url_fault(config, url->string);
    if (fault == NULL)
        return url->string;
    field_bad(place, name, "%s", fault);
    return NULL;
}

/* That it lies in the future is looked at when it is known that the order is not there already; 0: no time.
 */
static int64_t expiry_read(const struct field_place *target)
{
    int64_t expires_ms = 0;
    const struct json *time = field_string(target, "presignedUrlExpiresAt", true, 1, 40);
    if (time == NULL)
        return 0;
    if (clock_iso_read(time->string, &expires_ms))
        return expires_ms > 0 ? expires_ms : 1;
    field_bad(target, "presignedUrlExpiresAt",
              "is \"%s\"; it must be a time such as 2026-03-12T10:00:00.000Z", time->string);
    return 0;
}

/* An empty array counts as an empty object: PHP writes one for the other.  NULL when there is nothing to
 * read. */
static const struct json *headers_object(const struct field_place *target)
{
    const struct json *headers = json_member(target->object, "headers");
    bool is_empty_array = json_is(headers, JSON_KIND_ARRAY) && headers->length == 0;
    if (json_is_absent(headers) || is_empty_array)
        return NULL;
    if (!json_is(headers, JSON_KIND_OBJECT)) {
        field_bad(target, "headers", "must be an object of strings");
        return NULL;
    }
    if (headers->length <= outgoing_headers_max)
        return headers->length > 0 ? headers : NULL;
    field_bad(target, "headers", "has %zu headers; at most %d are allowed", headers->length,
              outgoing_headers_max);
    return NULL;
}

/* Whether a header before this one has the same name, which counts in any case of its letters. */
static bool header_is_twin(const struct json *headers, const struct json *header)
{
    for (const struct json *at = headers->first; at != header; at = at->next)
        if (text_equal_nocase(at->name, header->name))
            return true;
    return false;
}

static const char *header_fault(const struct json *headers, const struct json *header)
{
    bool is_string = json_is(header, JSON_KIND_STRING);
    const char *fault =
        outgoing_header_fault(header->name, is_string ? header->string : "-", is_string ? header->length : 1);
    if (fault == NULL && !is_string)
        fault = "must be a string";
    if (fault == NULL && header_is_twin(headers, header))
        fault = "is there twice: names of headers are the same in upper and lower case";
    return fault;
}

/* The headers as the JSON object that is kept with the file; NULL when there are none, or bad ones. */
static const char *headers_read(const struct field_place *target)
{
    struct arena *arena = target->context->arena;
    const struct json *headers = headers_object(target);
    struct text text;
    struct render render;
    size_t bytes = 0;
    if (headers == NULL)
        return NULL;
    text_init(&text, arena);
    render_init(&render, &text);
    render_object_begin(&render, NULL);
    for (const struct json *header = headers->first; header != NULL; header = header->next) {
        const char *fault = header_fault(headers, header);
        if (!outgoing_header_name_is_token(header->name))
            field_bad(target, "headers", "has a name that is none of HTTP, or longer than %d bytes",
                      outgoing_header_name_bytes_max);
        else if (fault != NULL)
            field_bad(target, arena_printf(arena, "headers.%s", header->name), "%s", fault);
        else {
            render_string(&render, header->name, header->string);
            bytes += strlen(header->name) + header->length;
        }
    }
    render_object_end(&render);
    if (bytes > outgoing_headers_bytes_max)
        field_bad(target, "headers", "has %zu bytes of names and values; at most %d are allowed", bytes,
                  outgoing_headers_bytes_max);
    return text.data;
}

static void target_read(const struct field_place *body, const struct config *config, const struct json *item,
                        unsigned index, struct order_request_file *file)
{
    struct arena *arena = body->context->arena;
    struct field_place target = {body->context, item, arena_printf(arena, "outputTargets[%u].", index)};
    if (!json_is(item, JSON_KIND_OBJECT)) {
        field_bad(body, arena_printf(arena, "outputTargets[%u]", index), "is %s; it must be an object",
                  json_kind_name(item->kind));
        return;
    }
    const struct json *key = field_string(&target, "fileKey", true, 1, target_key_code_points_max);
    file->target_key = key != NULL ? key->string : NULL;
    file->target_url = targets_url(&target, "url", true, config);
    file->target_expires_ms = expiry_read(&target);
    file->target_headers = headers_read(&target);
}

void targets_read(const struct field_place *body, const struct config *config, struct order_request *wanted)
{
    unsigned index = 0;
    struct order_request_file unpaired;
    const struct json *targets = field_array(body, "outputTargets", true, 1, order_files_max);
    if (targets == NULL)
        return;
    if (wanted->file_count > 0 && targets->length != wanted->file_count)
        field_bad(body, "outputTargets", "has %zu items for %u files; each file needs one", targets->length,
                  wanted->file_count);
    for (const struct json *item = targets->first; item != NULL; item = item->next, index++)
        target_read(body, config, item, index,
                    index < wanted->file_count ? &wanted->files[index] : &unpaired);
}
