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

/*
 * Returns where a value may end, at "from" or later: at its literal. A text without a literal ends at the
 * period of the message. NULL if there is no such place.
 */
static const char *value_end(const struct message_value *value, const char *from, const char *literal,
                             size_t length)
{
    size_t rest = strlen(from);
    char *end = (char *)(uintptr_t)from;
    if (!value->is_integer && length > 0)
        return memmem(from, rest, literal, length);
    if (!value->is_integer)
        return from + rest - (rest > 0 && from[rest - 1] == '.');
    strtoll(from, &end, 10);
    return from == value->start && end > from && strncmp(end, literal, length) == 0 ? end : NULL;
}

/*
 * Reads the values of the rest of a template. A value may contain its literal, such as a URL the ".", so each
 * place of it is tried. Returns the end of the sentence; NULL if another template printed it.
 */
static const char *values_read(struct message_value *value, unsigned room, const char *template,
                               const char *text)
{
    char literal[literal_max];
    if (*template == '\0')
        return strchr(" .:", *text) != NULL ? text : NULL;
    if (room == 0)
        return NULL;
    value->start = text;
    value->is_integer = conversion_skip(&template);
    size_t length = literal_read(&template, literal);
    const char *after = NULL;
    for (const char *end = text; after == NULL; end++) {
        end = value_end(value, end, literal, length);
        if (end == NULL)
            return NULL;
        value->length = (size_t)(end - text);
        after = values_read(value + 1, room - 1, template, end + length);
        if (*end == '\0')
            return after;
    }
    return after;
}

/* Returns the number of bytes of the text that the template printed; 0 if another one printed it. */
static size_t template_match(const char *template, const char *text, struct message_value values[values_max])
{
    char literal[literal_max];
    size_t length = literal_read(&template, literal);
    if (strncmp(text, literal, length) != 0)
        return 0;
    const char *end = values_read(values, values_max, template, text + length);
    return end != NULL ? (size_t)(end - text) : 0;
}

/*
 * A sentence with its template. A label is text before it that ends with ": ", such as "beach.jpg: " or
 * "The original: ".
 */
struct message_sentence {
    size_t row;
    const char *label;
    size_t label_length;
    struct message_value values[values_max];
};

/* Finds the template of a sentence. Returns its length; 0 if it has none. */
static size_t template_find(struct message_sentence *message, const char *text)
{
    size_t length = 0;
    for (size_t i = 0; length == 0 && i < sizeof messages / sizeof messages[0]; i++) {
        length = template_match(messages[i].template, text, message->values);
        message->row = i;
    }
    return length;
}

/* The same for a sentence with or without a label. The length is that of both. */
static size_t sentence_read(struct message_sentence *message, const char *text)
{
    const char *start = text;
    size_t length = template_find(message, start);
    while (length == 0 && (start = strstr(start, ": ")) != NULL)
        length = template_find(message, start += 2);
    message->label = text;
    message->label_length = length == 0 || start == text ? 0 : (size_t)(start - text) - 2;
    return length == 0 ? 0 : (size_t)(start - text) + length;
}

static void values_render(struct render *render, const char *names, const struct message_value *values)
{
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
}

static void reason_render(struct render *render, const struct message_sentence *message)
{
    render_string(render, "reason", messages[message->row].reason);
    render_object_begin(render, "params");
    if (message->label_length > 0)
        render_string_n(render, "label", message->label, message->label_length);
    values_render(render, messages[message->row].parameters, message->values);
    render_object_end(render);
}

void message_render(struct render *render, const char *text)
{
    struct message_sentence message;
    if (text != NULL && sentence_read(&message, text) > 0)
        reason_render(render, &message);
}

void message_parts_render(struct render *render, const char *text)
{
    size_t length;
    struct message_sentence message;
    render_array_begin(render, "parts");
    for (; (length = sentence_read(&message, text)) > 0; text += length + strspn(text + length, " ")) {
        render_object_begin(render, NULL);
        reason_render(render, &message);
        render_object_end(render);
    }
    render_array_end(render);
}
