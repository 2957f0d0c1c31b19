/* POST /wtr-embed and /wtr-extract (contract 3.4, 3.5). */
#include <string.h>

#include "api/creation.h"
#include "api/views.h"
#include "api/tables.h"
#include "http/response.h"

static const struct creation_source upload_or_url = {"originalFileUrl", false};

/* ---- embedding ---- */

static void text_read(const struct field_place *file, const struct json *item, unsigned index,
                      struct order_request_text *text)
{
    struct arena *arena = file->context->arena;
    struct field_place place = {file->context, item,
                                arena_printf(arena, "%swatermarks[%u].", file->prefix, index)};
    if (!json_is(item, JSON_KIND_OBJECT)) {
        field_bad(file, arena_printf(arena, "watermarks[%u]", index), "is %s; it must be an object",
                  json_kind_name(item->kind));
        return;
    }
    const struct json *member = field_string(&place, "text", true, 1, order_text_code_points_max);
    if (member != NULL)
        *text = (struct order_request_text){member->string, member->length};
}

static void texts_read(const struct field_place *place, bool is_required,
                       const struct order_request_text **texts, unsigned *count)
{
    const struct json *watermarks = field_array(place, "watermarks", is_required, 1, order_texts_max);
    if (watermarks == NULL)
        return;
    struct order_request_text *found = arena_array(place->context->arena, watermarks->length, sizeof *found);
    for (const struct json *item = watermarks->first; item != NULL; item = item->next) {
        text_read(place, item, *count, &found[*count]);
        (*count)++;
    }
    *texts = found;
}

static void file_texts_read(const struct field_place *place, struct order_request_file *file)
{
    texts_read(place, false, &file->texts, &file->text_count);
}

/* Texts beside the files are for every file that brings none of its own; a file without any is an error. */
static void texts_spread(const struct field_place *body, struct order_request *wanted)
{
    const struct json *files = json_member(body->object, "files");
    const struct json *entry = json_is(files, JSON_KIND_ARRAY) ? files->first : NULL;
    bool has_common = !json_is_absent(json_member(body->object, "watermarks"));
    const struct order_request_text *texts = NULL;
    unsigned count = 0;
    texts_read(body, false, &texts, &count);
    for (unsigned i = 0; i < wanted->file_count && entry != NULL; i++, entry = entry->next) {
        if (!json_is(entry, JSON_KIND_OBJECT) || !json_is_absent(json_member(entry, "watermarks")))
            continue;
        wanted->files[i].texts = texts;
        wanted->files[i].text_count = count;
        if (!has_common)
            field_bad(body, arena_printf(body->context->arena, "files[%u].watermarks", i), "is required");
    }
}

static enum iw_error embed(struct request *request)
{
    const struct json *json;
    struct order_view view;
    struct order_request wanted = {.type = ORDER_WATERMARK_EMBED};
    enum iw_error error = request_json(request, &json);
    if (error != IW_OK)
        return error;
    struct field_place body = {request->context, json, ""};
    creation_common_read(&body, &wanted);
    creation_files_read(request, &body, &upload_or_url, file_texts_read, &wanted);
    texts_spread(&body, &wanted);
    error = creation_make(request, &wanted, &view);
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

/* includeOriginal may stand in file or beside it (the specification leaves its place open). */
static bool inclusion_read(const struct field_place *body, const struct field_place *file)
{
    static const char name[] = "includeOriginal";
    unsigned details = body->context->detail_count;
    bool is_beside = field_boolean(body, name, false), is_inside = field_boolean(file, name, false);
    bool is_twice =
        !json_is_absent(json_member(body->object, name)) && !json_is_absent(json_member(file->object, name));
    if (is_twice && is_beside != is_inside && body->context->detail_count == details)
        field_bad(body, name, "is %s, but file.includeOriginal is %s; send one of them",
                  is_beside ? "true" : "false", is_inside ? "true" : "false");
    return is_beside || is_inside;
}

/* originalFile.fileName, from the same two places; NULL when it is absent or bad. */
static const char *original_read(const struct field_place *body, const struct field_place *file)
{
    struct field_place beside, inside;
    bool is_beside = field_object(body, "originalFile", false, &beside);
    bool is_inside = field_object(file, "originalFile", false, &inside);
    const char *name = is_beside ? field_file_name(&beside, "fileName") : NULL;
    const char *other = is_inside ? field_file_name(&inside, "fileName") : NULL;
    if (name != NULL && other != NULL && strcmp(name, other) != 0)
        field_bad(&beside, "fileName", "is not what file.originalFile.fileName is; send one of them");
    return name != NULL ? name : other;
}

/* Where originalFile stands; NULL: nowhere. */
static const struct field_place *original_place(const struct field_place *body,
                                                const struct field_place *file)
{
    if (!json_is_absent(json_member(file->object, "originalFile")))
        return file;
    return json_is_absent(json_member(body->object, "originalFile")) ? NULL : body;
}

/* file.fileName, includeOriginal, originalFile.fileName. */
static void extract_read(const struct field_place *body, struct order_request *wanted)
{
    struct field_place file;
    wanted->files = arena_array(body->context->arena, 1, sizeof *wanted->files);
    wanted->file_count = 1;
    if (field_object(body, "file", true, &file))
        wanted->files[0].name = field_file_name(&file, "fileName");
    unsigned details = body->context->detail_count;
    bool is_included = inclusion_read(body, &file);
    wanted->original_name = original_read(body, &file);
    bool is_clear = body->context->detail_count == details;
    const struct field_place *place = original_place(body, &file);
    if (is_clear && is_included && place == NULL)
        field_bad(&file, "originalFile", "is required with includeOriginal");
    if (is_clear && !is_included && place != NULL)
        field_bad(
            place, "originalFile",
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
    struct order_request wanted = {.type = ORDER_WATERMARK_EXTRACT};
    enum iw_error error = request_json(request, &json);
    if (error != IW_OK)
        return error;
    struct field_place body = {request->context, json, ""};
    creation_common_read(&body, &wanted);
    extract_read(&body, &wanted);
    error = creation_make(request, &wanted, &view);
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
    {METHOD_POST, "/api/v2/orders/wtr-embed", embed, ROUTE_ADMITS},
    {METHOD_POST, "/api/v2/orders/wtr-extract", extract, ROUTE_ADMITS},
    {.pattern = NULL},
};
