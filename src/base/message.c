#include "base/message.h"

#include <stdlib.h>
#include <string.h>

enum { values_max = 8, literal_max = 256, name_max = 32 };

static const struct {
    const char *reason;
    const char *parameters;
    const char *template;
} messages[] = {
#define MESSAGE_ROW(reason, parameters, template) {#reason, parameters, template},
    MESSAGES(MESSAGE_ROW)
#undef MESSAGE_ROW
};

/* What a conversion of the template printed. */
struct message_value {
    const char *start;
    size_t length;
    bool is_integer;
};

/* Reads the text up to the next conversion, "%%" as "%". The unit test prints each template, so it fits. */
static size_t literal_read(const char **template, char literal[literal_max])
{
    size_t length = 0;
    const char *at = *template;
    for (; *at != '\0' && (*at != '%' || at[1] == '%') && length < literal_max; at++) {
        at += *at == '%';
        literal[length++] = *at;
    }
    *template = at;
    return length;
}

/* Skips a conversion. True if it prints an integer. */
static bool conversion_skip(const char **template)
{
    const char *last = *template + strcspn(*template, "diufs");
    *template = last + 1;
    return *last != 's' && *last != 'f';
}

/* Reads a value and the literal after it. NULL if they do not fit. Text without a literal takes the rest. */
static const char *value_read(struct message_value *value, const char *text, const char *literal,
                              size_t length)
{
    char *end = (char *)(uintptr_t)text;
    if (value->is_integer)
        strtoll(text, &end, 10);
    else
        end = length == 0 ? end + strlen(text) : memmem(text, strlen(text), literal, length);
    if (end == NULL || (value->is_integer && end == text) || strncmp(end, literal, length) != 0)
        return NULL;
    value->start = text;
    value->length = (size_t)(end - text);
    return end + length;
}

/* Returns the number of bytes of the text that the template printed; 0 if another one printed it. */
static size_t template_match(const char *template, const char *text, struct message_value values[values_max])
{
    char literal[literal_max];
    size_t length = literal_read(&template, literal);
    const char *at = text + length;
    if (strncmp(text, literal, length) != 0)
        return 0;
    for (unsigned i = 0; *template != '\0' && i < values_max && at != NULL; i++) {
        values[i].is_integer = conversion_skip(&template);
        length = literal_read(&template, literal);
        at = value_read(&values[i], at, literal, length);
    }
    return at != NULL && strchr(" .:", *at) != NULL ? (size_t)(at - text) : 0;
}

/* Finds the template of a sentence. Returns its length; 0 if it has none. */
static size_t template_find(const char *text, size_t *row, struct message_value values[values_max])
{
    size_t length = 0;
    for (size_t i = 0; length == 0 && i < sizeof messages / sizeof messages[0]; i++) {
        length = template_match(messages[i].template, text, values);
        *row = i;
    }
    return length;
}

/* The same for a text that may begin with labels, such as "beach.jpg: " or "The original: ". */
static size_t sentence_read(const char *text, size_t *row, struct message_value values[values_max])
{
    size_t length = 0;
    for (const char *start = text; start != NULL && length == 0;) {
        length = template_find(start, row, values);
        length += length > 0 ? (size_t)(start - text) : 0;
        start = strstr(start, ": ");
        start += start != NULL ? 2 : 0;
    }
    return length;
}

static void params_render(struct render *render, const char *names, const struct message_value *values)
{
    render_object_begin(render, "params");
    for (; *names != '\0'; values++) {
        char name[name_max] = "";
        size_t length = strcspn(names, " ");
        memcpy(name, names, length < name_max ? length : name_max - 1);
        names += length + strspn(names + length, " ");
        if (*name == '-')
            continue;
        if (values->is_integer)
            render_integer(render, name, strtoll(values->start, NULL, 10));
        else
            render_string_n(render, name, values->start, values->length);
    }
    render_object_end(render);
}

static void reason_render(struct render *render, size_t row, const struct message_value *values)
{
    render_string(render, "reason", messages[row].reason);
    params_render(render, messages[row].parameters, values);
}

void message_render(struct render *render, const char *text)
{
    size_t row;
    struct message_value values[values_max];
    if (text != NULL && sentence_read(text, &row, values) > 0)
        reason_render(render, row, values);
}

void message_parts_render(struct render *render, const char *text)
{
    size_t row, length;
    struct message_value values[values_max];
    render_array_begin(render, "parts");
    for (; (length = sentence_read(text, &row, values)) > 0; text += length + strspn(text + length, " ")) {
        render_object_begin(render, NULL);
        reason_render(render, row, values);
        render_object_end(render);
    }
    render_array_end(render);
}
