/* POST /wtr-embed and /wtr-extract (contract 3.4, 3.5). */
#include <string.h>

#include "api/creation.h"
#include "api/view.h"
#include "api/tables.h"
#include "base/message.h"
#include "http/response.h"
#include "model/account.h"

static const struct creation_source upload_or_url = {"originalFileUrl", false};

/* ---- embedding ---- */

static void text_read(const struct field_scope *file, const struct json *item, unsigned index,
                      struct order_request_text *text)
{
    struct arena *arena = file->context->arena;
    struct field_scope scope = {file->context, item,
                                arena_printf(arena, "%swatermarks[%u].", file->prefix, index)};
    if (!json_is(item, JSON_KIND_OBJECT)) {
        field_bad(file, arena_printf(arena, "watermarks[%u]", index), message_wrong_value,
                  json_kind_name(item), "an object");
        return;
    }
    const struct json *member = field_string(&scope, "text", true, 1, order_text_code_points_max);
    if (member != NULL)
        *text = (struct order_request_text){json_string_of(member), json_length(member)};
}

static void texts_read(const struct field_scope *scope, bool is_required,
                       const struct order_request_text **texts, unsigned *count)
{
    const struct json *watermarks = field_array(scope, "watermarks", is_required, 1, order_texts_max);
    if (watermarks == NULL)
        return;
    struct order_request_text *found =
        arena_array(scope->context->arena, json_length(watermarks), sizeof *found);
    for (const struct json *item; (item = json_item(watermarks, *count)) != NULL; (*count)++)
        text_read(scope, item, *count, &found[*count]);
    *texts = found;
}

static void file_texts_read(const struct field_scope *scope, struct order_request_file *file)
{
    texts_read(scope, false, &file->texts, &file->text_count);
}

/* The order's watermarks apply to every file without watermarks; a file without any adds a detail. */
static void common_texts_read(const struct field_scope *body, struct order_request *requested)
{
    const struct json *files = json_member(body->object, "files");
    bool has_common = !json_is_absent(json_member(body->object, "watermarks"));
    const struct order_request_text *texts = NULL;
    unsigned count = 0;
    texts_read(body, false, &texts, &count);
    for (unsigned i = 0; i < requested->file_count && i < json_length(files); i++) {
        const struct json *file = json_item(files, i);
        if (!json_is(file, JSON_KIND_OBJECT) || !json_is_absent(json_member(file, "watermarks")))
            continue;
        requested->files[i].texts = texts;
        requested->files[i].text_count = count;
        if (!has_common)
            field_bad(body, arena_printf(body->context->arena, "files[%u].watermarks", i), message_required);
    }
}

static enum iw_error embed(struct request *request)
{
    const struct json *json;
    struct order_view view;
    struct order_request requested = {.type = ORDER_WATERMARK_EMBED};
    enum iw_error error = request_json(request, &creation_files, &json);
    if (error != IW_OK)
        return error;
    struct field_scope body = {request->context, json, ""};
    creation_common_read(&body, &requested);
    creation_suffix_read(&body, &requested);
    creation_files_read(request, &body, &upload_or_url, file_texts_read, &requested);
    common_texts_read(&body, &requested);
    error = creation_make(request, &requested, &view);
    if (error != IW_OK)
        return error;
    struct render *render = creation_begin(request, &view);
    render_array_begin(render, "files");
    for (unsigned i = 0; i < view.order.file_count; i++) {
        render_object_begin(render, NULL);
        render_id(render, "fileId", view.files[i].id);
        creation_file_render(render, request->domain, &view.order, &view.files[i]);
        creation_format_render(render, view.files[i].name);
        render_object_end(render);
    }
    render_array_end(render);
    render_object_end(render);
    return IW_OK;
}

/* ---- extraction ---- */

/* includeOriginal may be in file or next to it: the specification does not state which. */
static bool inclusion_read(const struct field_scope *body, const struct field_scope *file)
{
    static const char name[] = "includeOriginal";
    unsigned details = body->context->detail_count;
    bool is_in_body = field_boolean(body, name, false), is_in_file = field_boolean(file, name, false);
    bool is_twice =
        !json_is_absent(json_member(body->object, name)) && !json_is_absent(json_member(file->object, name));
    if (is_twice && is_in_body != is_in_file && body->context->detail_count == details)
        field_bad(body, name, "is %s, but file.includeOriginal is %s; send one of them",
                  is_in_body ? "true" : "false", is_in_file ? "true" : "false");
    return is_in_body || is_in_file;
}

/* originalFile.fileName, in file or next to it; NULL if absent or invalid. */
static const char *original_read(const struct field_scope *body, const struct field_scope *file,
                                 unsigned formats)
{
    struct field_scope in_body, in_file;
    bool is_in_body = field_object(body, "originalFile", false, &in_body);
    bool is_in_file = field_object(file, "originalFile", false, &in_file);
    const char *name = is_in_body ? field_file_name(&in_body, "fileName", formats) : NULL;
    const char *other = is_in_file ? field_file_name(&in_file, "fileName", formats) : NULL;
    if (name != NULL && other != NULL && strcmp(name, other) != 0)
        field_bad(&in_body, "fileName", "differs from file.originalFile.fileName; send one of them");
    return name != NULL ? name : other;
}

/* Reads file.fileName, includeOriginal and originalFile.fileName. */
static void extract_read(const struct field_scope *body, unsigned formats, struct order_request *requested)
{
    struct field_scope file;
    requested->files = arena_array(body->context->arena, 1, sizeof *requested->files);
    requested->file_count = 1;
    if (field_object(body, "file", true, &file))
        requested->files[0].name = field_file_name(&file, "fileName", formats);
    unsigned details = body->context->detail_count;
    bool is_included = inclusion_read(body, &file);
    requested->original_name = original_read(body, &file, formats);
    bool is_clear = body->context->detail_count == details;
    const struct field_scope *parent = NULL; /* of originalFile */
    if (!json_is_absent(json_member(body->object, "originalFile")))
        parent = body;
    if (!json_is_absent(json_member(file.object, "originalFile")))
        parent = &file;
    if (is_clear && is_included && parent == NULL)
        field_bad(&file, "originalFile", "is required with includeOriginal");
    if (is_clear && !is_included && parent != NULL)
        field_bad(
            parent, "originalFile",
            "is given, but includeOriginal is not true; send includeOriginal true or leave originalFile out");
}

static void extract_file_render(struct render *render, const struct domain *domain,
                                const struct order_view *view, unsigned index)
{
    render_id(render, "fileId", view->files[index].id);
    creation_file_render(render, domain, &view->order, &view->files[index]);
    creation_format_render(render, view->files[index].name);
}

static enum iw_error extract(struct request *request)
{
    const struct json *json;
    struct order_view view;
    struct order_request requested = {.type = ORDER_WATERMARK_EXTRACT};
    enum iw_error error = request_json(request, NULL, &json);
    if (error != IW_OK)
        return error;
    struct field_scope body = {request->context, json, ""};
    creation_common_read(&body, &requested);
    extract_read(&body, formats_taken(request->config, requested.type), &requested);
    error = creation_make(request, &requested, &view);
    if (error != IW_OK)
        return error;
    struct render *render = creation_begin(request, &view);
    render_object_begin(render, "file");
    extract_file_render(render, request->domain, &view, 0);
    if (view.order.file_rows > 1) {
        render_object_begin(render, "originalFile");
        extract_file_render(render, request->domain, &view, 1);
        render_object_end(render);
    }
    render_object_end(render);
    render_object_end(render);
    return IW_OK;
}

const struct route api_watermark[] = {
    {METHOD_POST, "/api/v2/orders/wtr-embed", embed, ROUTE_ADMITS | ROUTE_SCOPE(KEY_SCOPE_WATERMARK_EMBED)},
    {METHOD_POST, "/api/v2/orders/wtr-extract", extract,
     ROUTE_ADMITS | ROUTE_SCOPE(KEY_SCOPE_WATERMARK_EXTRACT)},
    {.pattern = NULL},
};
