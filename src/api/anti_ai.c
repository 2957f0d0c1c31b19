/* POST /anti-ai, /anti-ai/with-urls and /anti-ai/confirm (contract 3.1 to 3.3). */
#include <string.h>

#include "api/creation.h"
#include "api/tables.h"
#include "api/targets.h"
#include "base/text.h"
#include "domain/orders/order_confirm.h"
#include "http/response.h"
#include "http/scope.h"
#include "model/account.h"

static const struct creation_source upload_or_url = {"originalFileUrl", false};
static const struct creation_source url = {"imageUrl", true};

static void strength_read(const struct field_scope *body, struct order_request *requested)
{
    struct field_scope options;
    requested->strength = ORDER_STRENGTH_STANDARD;
    if (!field_object(body, "options", false, &options))
        return;
    const struct json *word = json_member(options.object, "strength");
    if (json_is_absent(word))
        return;
    const char *text = json_string_of(word);
    if (!json_is_text(word) || !order_strength_read(text, &requested->strength))
        field_bad(&options, "strength", "is %s%.*s%s; it must be low, standard or high",
                  text != NULL ? "\"" : "", text != NULL ? text_head(text, 40) : 40,
                  text != NULL ? text : json_kind_name(word), text != NULL ? "\"" : "");
}

/* Without zero copy outputTargets is ignored, but must be an array if it is present. */
static void mode_read(const struct field_scope *body, const struct config *config,
                      struct order_request *requested)
{
    struct field_scope mode;
    requested->is_zero_copy =
        field_object(body, "mode", false, &mode) && field_boolean(&mode, "zeroCopy", false);
    if (requested->is_zero_copy)
        targets_read(body, config, requested);
    else
        field_array(body, "outputTargets", false, 0, order_files_max);
}

static enum iw_error anti_ai_create(struct request *request, const struct creation_source *source,
                                    struct order_view *view)
{
    const struct json *json;
    struct order_request requested = {.type = ORDER_ANTI_AI};
    enum iw_error error = request_json(request, &creation_files, &json);
    if (error != IW_OK)
        return error;
    struct field_scope body = {request->context, json, ""};
    creation_common_read(&body, &requested);
    creation_suffix_read(&body, &requested);
    creation_files_read(request, &body, source, NULL, &requested);
    mode_read(&body, request->config, &requested);
    strength_read(&body, &requested);
    return creation_make(request, &requested, view);
}

static enum iw_error create(struct request *request)
{
    struct order_view view;
    enum iw_error error = anti_ai_create(request, &upload_or_url, &view);
    if (error != IW_OK)
        return error;
    struct render *render = creation_begin(request, &view);
    render_array_begin(render, "files");
    for (unsigned i = 0; i < view.order.file_count; i++) {
        render_object_begin(render, NULL);
        render_integer(render, "fileId", view.files[i].id);
        creation_file_render(render, request->domain, &view.order, &view.files[i]);
        render_object_end(render);
    }
    render_array_end(render);
    render_object_end(render);
    return IW_OK;
}

static enum iw_error create_with_urls(struct request *request)
{
    struct order_view view;
    enum iw_error error = anti_ai_create(request, &url, &view);
    if (error != IW_OK)
        return error;
    render_object_end(creation_begin(request, &view));
    return IW_OK;
}

static enum iw_error confirm(struct request *request)
{
    const struct json *json;
    enum order_status status;
    enum iw_error error = request_json(request, NULL, &json);
    if (error != IW_OK)
        return error;
    struct field_scope body = {request->context, json, ""};
    struct order_request key_only = {.key = NULL}; /* the key is required but has no effect */
    creation_key_read(&body, &key_only);
    int64_t id = field_order_id(&body, "orderId");
    error = context_validated(request->context);
    if (error == IW_OK)
        error = scope_order_check(request, id);
    if (error == IW_OK)
        error = order_confirm(request->domain, request->account->id, id, &status);
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
    {METHOD_POST, "/api/v2/orders/anti-ai", create, ROUTE_ADMITS | ROUTE_SCOPE(KEY_SCOPE_ANTI_AI)},
    {METHOD_POST, "/api/v2/orders/anti-ai/with-urls", create_with_urls,
     ROUTE_ADMITS | ROUTE_SCOPE(KEY_SCOPE_ANTI_AI)},
    {METHOD_POST, "/api/v2/orders/anti-ai/confirm", confirm,
     ROUTE_SCOPE(KEY_SCOPE_ANTI_AI | KEY_SCOPE_WATERMARK_EMBED | KEY_SCOPE_WATERMARK_EXTRACT)},
    {.pattern = NULL},
};
