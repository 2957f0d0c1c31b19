#include "console/view.h"

#include <string.h>

#include "base/message.h"
#include "base/text.h"
#include "domain/accounts/request_log.h"
#include "domain/orders/order_create.h"
#include "domain/people/user.h"
#include "domain/webhooks/webhook.h"
#include "http/response.h"
#include "model/delivery.h"
#include "model/format.h"
#include "model/picture.h"
#include "service/files/name.h"

enum { text_code_points_max = 2000 };

void view_user(struct render *render, const struct user *user)
{
    render_id(render, "id", user->id);
    render_string(render, "email", user->email);
    render_string(render, "name", user->name);
    render_string(render, "language", user_language_name(user->language));
    render_boolean(render, "isAdmin", user->is_admin);
    render_boolean(render, "emailVerified", user->email_verified_ms != 0);
    render_boolean(render, "totpEnabled", user->totp_enabled_ms != 0);
}

static void formats_render(struct render *render, const char *name, unsigned formats)
{
    render_array_begin(render, name);
    for (int i = 0; i < FORMAT_COUNT; i++) {
        const char *const *extensions = format_extensions((enum format)i);
        if (!format_is_in((enum format)i, formats))
            continue;
        render_object_begin(render, NULL);
        render_string(render, "name", format_title((enum format)i));
        render_string(render, "type", format_media_type((enum format)i));
        render_array_begin(render, "extensions");
        for (int j = 0; j < format_extensions_max && extensions[j] != NULL; j++)
            render_string(render, NULL, extensions[j]);
        render_array_end(render);
        render_object_end(render);
    }
    render_array_end(render);
}

/* The limits of an order's pictures. */
static void pictures_render(struct render *render, const struct config *config)
{
    render_integer(render, "maxFileBytes", config->store_upload_max_bytes);
    render_integer(render, "maxFiles", order_files_max);
    render_integer(render, "maxFileNameBytes", name_bytes_max);
    render_integer(render, "maxPixels", config->image_pixels_max);
    render_integer(render, "maxSidePixels", config->image_side_max_px);
    render_object_begin(render, "minSidePixels");
    for (int type = 0; type < ORDER_TYPE_COUNT; type++)
        render_integer(render, order_type_name((enum order_type)type),
                       picture_engine((enum order_type)type)->side_min_px);
    render_object_end(render);
    formats_render(render, "formats", formats_taken(config, ORDER_ANTI_AI));
    formats_render(render, "extractFormats", formats_taken(config, ORDER_WATERMARK_EXTRACT));
    render_array_begin(render, "strengths");
    for (int i = 0; i < ORDER_STRENGTH_COUNT; i++)
        render_string(render, NULL, order_strength_name((enum order_strength)i));
    render_array_end(render);
}

void view_service(struct render *render, struct arena *arena, const struct config *config)
{
    pictures_render(render, config);
    render_integer(render, "maxTexts", order_texts_max);
    render_integer(render, "maxTextLength", order_text_code_points_max);
    render_integer(render, "maxNameLength", order_name_code_points_max);
    render_integer(render, "minPasswordLength", user_password_code_points_min);
    render_integer(render, "passwordResetSeconds", config->console_reset_s);
    render_integer(render, "pendingSeconds", config->orders_pending_s);
    render_integer(render, "secretOverlapSeconds", webhook_overlap_ms / 1000);
    render_integer(render, "webhookFailureSeconds", delivery_silence_ms / 1000);
    render_integer(render, "requestLogDays", request_log_days);
    render_integer(render, "statisticsDays", quota_days);
    render_string(render, "apiBaseUrl", arena_printf(arena, "%s/api/v2/orders", config->api_public_url));
}

enum iw_error view_nothing(struct request *request)
{
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_object_end(render);
    return IW_OK;
}

enum iw_error view_body(struct request *request, struct field_scope *body)
{
    *body = (struct field_scope){.context = request->context, .prefix = ""};
    return request_json(request, NULL, &body->object);
}

const char *view_text(const struct field_scope *body, const char *name, size_t most)
{
    const struct json *member = field_string(body, name, true, 1, most);
    if (member == NULL)
        return "";
    return arena_text_n(body->context->arena, json_string_of(member), json_length(member));
}

const char *view_password(const struct field_scope *body, const char *name)
{
    const struct json *member = json_member(body->object, name);
    if (!json_is(member, JSON_KIND_STRING))
        field_bad(body, name, "%s", json_is_absent(member) ? message_required : "must be a string");
    else if (!json_is_text(member))
        field_bad(body, name, message_null_character);
    else
        return json_string_of(member);
    return NULL;
}

const char *view_email(const struct field_scope *body, const char *name)
{
    const char *text = view_text(body, name, text_code_points_max);
    const char *email = text[0] != '\0' ? user_email_read(body->context, name, text) : NULL;
    return email != NULL ? email : "";
}

enum user_role view_role(const struct field_scope *body, const char *name)
{
    enum user_role role = USER_MEMBER;
    const char *word = view_text(body, name, text_code_points_max);
    if (word[0] != '\0' && !user_role_read(word, &role))
        field_bad(body, name, "must be owner or member");
    return role;
}

enum iw_error view_id(struct request *request, const char *name, int64_t *id)
{
    if (text_integer(request_capture(request, name), 1, INT64_MAX, id))
        return IW_OK;
    return context_fail(request->context, IW_RESOURCE_NOT_FOUND, "Nothing with this id exists.");
}
