#include "api/field.h"

#include <string.h>

#include "base/message.h"
#include "base/text.h"
#include "model/format.h"

enum { file_name_bytes_max = 255 };

void field_bad(const struct field_scope *scope, const char *name, const char *format, ...)
{
    struct arena *arena = scope->context->arena;
    va_list arguments;
    va_start(arguments, format);
    const char *message = arena_vprintf(arena, format, arguments);
    va_end(arguments);
    context_detail(scope->context, arena_printf(arena, "%s%s", scope->prefix, name), "%s", message);
}

/* The member, or NULL.  Adds a detail if it has another kind, or is required and absent. */
static const struct json *member_of(const struct field_scope *scope, const char *name, bool is_required,
                                    enum json_kind kind, const char *expected)
{
    const struct json *member = json_member(scope->object, name);
    if (json_is(member, kind))
        return member;
    if (!json_is_absent(member))
        field_bad(scope, name, message_wrong_value, json_kind_name(member), expected);
    else if (is_required)
        field_bad(scope, name, message_required);
    return NULL;
}

bool field_object(const struct field_scope *scope, const char *name, bool is_required,
                  struct field_scope *inner)
{
    const struct json *member = json_member(scope->object, name);
    if (is_required || !json_is_object(member))
        member = member_of(scope, name, is_required, JSON_KIND_OBJECT, "an object");
    *inner = (struct field_scope){scope->context, member,
                                  arena_printf(scope->context->arena, "%s%s.", scope->prefix, name)};
    return member != NULL;
}

const struct json *field_string(const struct field_scope *scope, const char *name, bool is_required,
                                size_t least, size_t most)
{
    const struct json *member = member_of(scope, name, is_required, JSON_KIND_STRING, "a string");
    if (member == NULL)
        return NULL;
    size_t length = text_code_points(json_string_of(member), json_length(member));
    if (text_has_control(json_string_of(member), json_length(member)))
        field_bad(scope, name, message_control_characters);
    else if (length < least || length > most)
        field_bad(scope, name, message_length, length, least, most);
    else
        return member;
    return NULL;
}

bool field_boolean(const struct field_scope *scope, const char *name, bool fallback)
{
    const struct json *member = json_member(scope->object, name);
    if (json_is(member, JSON_KIND_TRUE) || json_is(member, JSON_KIND_FALSE))
        return json_is(member, JSON_KIND_TRUE);
    if (!json_is_absent(member))
        field_bad(scope, name, "is %s; it must be true or false, without quotation marks",
                  json_kind_name(member));
    return fallback;
}

const struct json *field_array(const struct field_scope *scope, const char *name, bool is_required,
                               size_t least, size_t most)
{
    const struct json *member = member_of(scope, name, is_required, JSON_KIND_ARRAY, "an array");
    size_t length = json_length(member);
    if (member == NULL || (length >= least && length <= most))
        return member;
    field_bad(scope, name, message_item_count, length, least, most);
    return NULL;
}

int64_t field_order_id(const struct field_scope *scope, const char *name)
{
    int64_t id = 0;
    const struct json *member = member_of(scope, name, true, JSON_KIND_STRING, "an orderId, as a string");
    if (member == NULL)
        return 0;
    if (json_length(member) == 0)
        field_bad(scope, name, "is empty; it must be the orderId of the creation");
    if (json_is_text(member) && text_integer(json_string_of(member), 1, INT64_MAX, &id))
        return id;
    return 0;
}

/* The fault of a file name, or NULL. */
static const char *file_name_fault(struct arena *arena, const char *name, size_t length, unsigned formats)
{
    const char *dot = strrchr(name, '.');
    if (length == 0 || length > file_name_bytes_max)
        return arena_printf(arena, message_file_name_bytes, length, file_name_bytes_max);
    if (text_has_control(name, length))
        return message_control_characters;
    if (strpbrk(name, "/\\") != NULL)
        return message_file_name_folder;
    if (dot == NULL)
        return arena_printf(arena, message_file_name_plain, formats_extensions(arena, formats));
    if (!format_is_in(format_by_extension(dot), formats))
        return arena_printf(arena, message_file_name_ending, dot, formats_extensions(arena, formats));
    return dot == name ? message_file_name_stem : NULL;
}

const char *field_file_name(const struct field_scope *scope, const char *name, unsigned formats)
{
    const struct json *member = member_of(scope, name, true, JSON_KIND_STRING, "a string");
    if (member == NULL)
        return NULL;
    const char *fault =
        file_name_fault(scope->context->arena, json_string_of(member), json_length(member), formats);
    if (fault == NULL)
        return json_string_of(member);
    field_bad(scope, name, "%s", fault);
    return NULL;
}
