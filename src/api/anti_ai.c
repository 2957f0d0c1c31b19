/* POST /anti-ai and POST /anti-ai/confirm (contract 3.1, 3.3). */
#include <string.h>

#include "api/field.h"
#include "api/shape.h"
#include "api/tables.h"
#include "api/targets.h"
#include "domain/caller.h"
#include "domain/order.h"
#include "http/limit.h"
#include "http/response.h"

static void strength_read(const struct field_place *body, struct order_wish *wish)
{
    struct field_place options;
    wish->strength = ORDER_STRENGTH_HIGH;
    if (!field_object(body, "options", &options))
        return;
    const struct json *word = json_member(options.object, "strength");
    if (json_is_absent(word))
        return;
    bool is_word = json_is(word, JSON_KIND_STRING) && strlen(word->string) == word->length;
    if (!is_word || !order_strength_read(word->string, &wish->strength))
        field_bad(&options, "strength", "must be low, standard or high");
}

/* Zero copy and source URLs are checked, but not served yet, and never silently ignored. */
static void mode_read(const struct field_place *body, const struct config *config, unsigned file_count)
{
    struct field_place mode;
    bool is_zero_copy = field_object(body, "mode", &mode) && field_boolean(&mode, "zeroCopy", false);
    if (!is_zero_copy) {
        field_array(body, "outputTargets", false, 0, order_files_max);
        return;
    }
    targets_check(body, config, file_count);
    field_bad(&mode, "zeroCopy", "is not available yet");
}

static const char *file_read(const struct field_place *body, const struct json *item, unsigned index)
{
    struct arena *arena = body->context->arena;
    struct field_place file = {body->context, item, arena_printf(arena, "files[%u].", index)};
    if (!json_is(item, JSON_KIND_OBJECT)) {
        field_bad(body, arena_printf(arena, "files[%u]", index), "must be an object");
        return NULL;
    }
    if (!json_is_absent(json_member(item, "originalFileUrl")))
        field_bad(&file, "originalFileUrl", "is not available yet; upload the file instead");
    return field_file_name(&file, "fileName");
}

static void files_read(const struct field_place *body, struct order_wish *wish)
{
    const struct json *files = field_array(body, "files", true, 1, order_files_max);
    if (files == NULL)
        return;
    const char **names = arena_array(body->context->arena, files->length, sizeof *names);
    for (const struct json *item = files->first; item != NULL; item = item->next) {
        names[wish->file_count] = file_read(body, item, wish->file_count);
        wish->file_count++;
    }
    wish->file_names = names;
}

static void key_read(const struct field_place *body, struct order_wish *wish)
{
    const struct json *key = field_string(body, "idempotencyKey", true, 1, order_key_code_points_max);
    wish->key = key != NULL ? key->string : NULL;
    wish->key_length = key != NULL ? key->length : 0;
}

/* Reads all of a creation; what is wrong is in the context's details. */
static void wish_read(struct context *context, const struct config *config, const struct json *json,
                      struct order_wish *wish)
{
    struct field_place body = {context, json, ""};
    *wish = (struct order_wish){.type = ORDER_ANTI_AI};
    key_read(&body, wish);
    const struct json *name = field_string(&body, "orderName", false, 1, order_name_code_points_max);
    wish->name = name != NULL ? name->string : NULL;
    files_read(&body, wish);
    mode_read(&body, config, wish->file_count);
    strength_read(&body, wish);
    json_digest(context->arena, json, wish->body_digest);
}

static void created_render(struct request *request, const struct order_view *view)
{
    struct render *render = response_data(request);
    const struct order *order = &view->order;
    render_object_begin(render, "data");
    render_string(render, "orderName", order->name);
    render_id(render, "orderId", order->id);
    render_string(render, "status", order_status_name(order->status));
    render_array_begin(render, "files");
    for (unsigned i = 0; i < order->file_count; i++) {
        render_object_begin(render, NULL);
        render_integer(render, "fileId", view->files[i].id);
        render_string(render, "fileName", view->files[i].name);
        shape_upload(render, request->domain, order, &view->files[i]);
        render_object_end(render);
    }
    render_array_end(render);
    render_object_end(render);
    if (view->is_replay) {
        response_header(request, "Idempotent-Replayed", "true");
        return;
    }
    response_status(request, 201);
    response_header_printf(request, "Location", "%s/api/v2/orders/%lld", request->config->api_public_url,
                           (long long)order->id);
}

static enum iw_error create(struct request *request)
{
    const struct json *json;
    struct order_wish wish;
    struct order_view view;
    enum iw_error error = request_json(request, &json);
    if (error != IW_OK)
        return error;
    wish_read(request->context, request->config, json, &wish);
    error = context_validated(request->context);
    if (error != IW_OK)
        return error;
    struct ratelimit_lock lock = order_lock(request->arena, request->caller->id, &wish);
    error = limit_admit(request, &lock);
    if (error == IW_OK)
        error = order_create(request->domain, request->caller->id, &wish, &lock, &view);
    if (error == IW_OK)
        created_render(request, &view);
    return error;
}

static enum iw_error confirm(struct request *request)
{
    const struct json *json;
    enum order_status status;
    enum iw_error error = request_json(request, &json);
    if (error != IW_OK)
        return error;
    struct field_place body = {request->context, json, ""};
    struct order_wish unused = {.key = NULL};
    key_read(&body, &unused);
    int64_t id = field_order_id(&body, "orderId");
    error = context_validated(request->context);
    if (error == IW_OK)
        error = order_confirm(request->domain, request->caller->id, id, &status);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_id(render, "orderId", id);
    render_string(render, "status", order_status_name(status));
    render_object_end(render);
    return IW_OK;
}

const struct route api_anti_ai[] = {
    {METHOD_POST, "/api/v2/orders/anti-ai", create, ROUTE_ADMITS},
    {METHOD_POST, "/api/v2/orders/anti-ai/confirm", confirm, 0},
    {.pattern = NULL},
};
