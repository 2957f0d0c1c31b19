#include "console/view.h"

#include <string.h>

#include "base/text.h"
#include "domain/people/user.h"
#include "http/response.h"

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
        field_bad(body, name, json_is_absent(member) ? "is required" : "must be a string");
    else if (!json_is_text(member))
        field_bad(body, name, "has the character U+0000; leave it out");
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
    return context_fail(request->context, IW_RESOURCE_NOT_FOUND, "There is nothing with this id.");
}
