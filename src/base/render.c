#include "base/render.h"

#include <string.h>

#include "base/clock.h"

void render_init(struct render *render, struct text *text)
{
    render->text = text;
    render->needs_comma = false;
}

/* Writes the escape sequence of a byte, or U+FFFD if the byte is invalid. */
static void escape_byte(struct text *text, unsigned char byte)
{
    if (byte == '"' || byte == '\\')
        text_printf(text, "\\%c", byte);
    else if (byte < 0x80)
        text_printf(text, "\\u%04x", byte);
    else
        text_add(text, "\\ufffd", 6);
}

/*
 * Text that is quoted from a request may be invalid UTF-8, but JSON output must be valid (RFC 8259, section
 * 8.1).
 */
static void escape(struct text *text, const char *value, size_t length)
{
    size_t plain = 0;
    for (size_t at = 0, size; at < length; at += size) {
        unsigned char byte = (unsigned char)value[at];
        size_t sequence = byte < 0x80 ? text_is_plain(byte) : text_sequence(value + at, length - at);
        size = sequence == 0 ? 1 : sequence;
        if (sequence != 0)
            continue;
        text_add(text, value + plain, at - plain);
        plain = at + 1;
        escape_byte(text, byte);
    }
    text_add(text, value + plain, length - plain);
}

static void quoted(struct text *text, const char *value, size_t length)
{
    text_add(text, "\"", 1);
    escape(text, value, length);
    text_add(text, "\"", 1);
}

/* Writes a comma if necessary, and the key. */
static void lead_n(struct render *render, const char *key, size_t length)
{
    if (render->needs_comma)
        text_add(render->text, ",", 1);
    if (key != NULL) {
        quoted(render->text, key, length);
        text_add(render->text, ":", 1);
    }
    render->needs_comma = true;
}

static void lead(struct render *render, const char *key)
{
    lead_n(render, key, key == NULL ? 0 : strlen(key));
}

static void nest_begin(struct render *render, const char *key, const char *mark)
{
    lead(render, key);
    text_add(render->text, mark, 1);
    render->needs_comma = false;
}

static void nest_end(struct render *render, const char *mark)
{
    text_add(render->text, mark, 1);
    render->needs_comma = true;
}

void render_object_begin(struct render *render, const char *key)
{
    nest_begin(render, key, "{");
}

void render_object_end(struct render *render)
{
    nest_end(render, "}");
}

void render_array_begin(struct render *render, const char *key)
{
    nest_begin(render, key, "[");
}

void render_array_end(struct render *render)
{
    nest_end(render, "]");
}

void render_string_n(struct render *render, const char *key, const char *value, size_t length)
{
    lead(render, key);
    if (value == NULL)
        text_add_string(render->text, "null");
    else
        quoted(render->text, value, length);
}

void render_string(struct render *render, const char *key, const char *value)
{
    render_string_n(render, key, value, value == NULL ? 0 : strlen(value));
}

void render_integer(struct render *render, const char *key, int64_t value)
{
    lead(render, key);
    text_add_number(render->text, value);
}

void render_boolean(struct render *render, const char *key, bool value)
{
    lead(render, key);
    text_add_string(render->text, value ? "true" : "false");
}

void render_real(struct render *render, const char *key, double value)
{
    lead(render, key);
    text_printf(render->text, "%.17g", value);
}

void render_null(struct render *render, const char *key)
{
    lead(render, key);
    text_add_string(render->text, "null");
}

void render_lines(struct render *render, const char *key, const char *lines)
{
    render_object_begin(render, key);
    for (const char *line = lines; *line != '\0';) {
        size_t length = strcspn(line, "\n"), name = strcspn(line, "\t\n");
        /* Nothing is copied: a stream renders many orders and does not reset its arena. */
        if (name < length) {
            lead_n(render, line, name);
            quoted(render->text, line + name + 1, length - name - 1);
        }
        line += length + (line[length] == '\n');
    }
    render_object_end(render);
}

void render_time(struct render *render, const char *key, int64_t time_ms)
{
    char iso[clock_iso_size];
    clock_iso(time_ms, iso);
    render_string(render, key, time_ms == 0 ? NULL : iso);
}

void render_id(struct render *render, const char *key, int64_t id)
{
    lead(render, key);
    text_add(render->text, "\"", 1);
    text_add_number(render->text, id);
    text_add(render->text, "\"", 1);
}
