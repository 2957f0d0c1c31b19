#include "base/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

enum { line_size = 4096, value_bytes_max = 1024 };

static enum log_level level_least = LOG_INFO;

/* A line of fixed room: what does not fit is cut, and the object still closes. */
struct line {
    char bytes[line_size];
    size_t length;
};

void log_level_set(enum log_level level)
{
    level_least = level;
}

__attribute__((format(printf, 2, 3))) static void line_printf(struct line *line, const char *format, ...)
{
    size_t room = line_size - 8 - line->length;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line->bytes + line->length, room, format, arguments);
    va_end(arguments);
    if (length > 0 && (size_t)length < room)
        line->length += (size_t)length;
}

/* Most bytes of most lines are plain: they are copied, not printed. */
static void line_byte(struct line *line, char byte)
{
    if (line->length + 8 < line_size)
        line->bytes[line->length++] = byte;
}

/* Copies one UTF-8 sequence, or puts U+FFFD for a byte that begins none; how many bytes that were. */
static size_t line_sequence(struct line *line, const char *text, size_t left)
{
    size_t size = text_sequence(text, left);
    if (size == 0)
        line_printf(line, "\\ufffd");
    for (size_t i = 0; i < size; i++)
        line_byte(line, text[i]);
    return size == 0 ? 1 : size;
}

/* Whatever the bytes, the line stays one line of JSON in UTF-8: a path is logged as the client wrote it. */
static void line_escape(struct line *line, const char *text)
{
    size_t length = strnlen(text, value_bytes_max);
    for (size_t i = 0; i < length;) {
        unsigned char byte = (unsigned char)text[i];
        if (byte >= 0x80) {
            i += line_sequence(line, text + i, length - i);
            continue;
        }
        if (byte < 0x20 || byte == 0x7F)
            line_printf(line, "\\u%04x", byte);
        else if (byte == '"' || byte == '\\')
            line_byte(line, '\\');
        if (byte >= 0x20 && byte != 0x7F)
            line_byte(line, text[i]);
        i++;
    }
}

static void line_text(struct line *line, const char *key, const char *text)
{
    /* A value that the line has no room for is left out whole. */
    if (line->length + 6 * strnlen(text, value_bytes_max) + strlen(key) + 16 > line_size)
        return;
    line_printf(line, ",\"%s\":\"", key);
    line_escape(line, text);
    line_printf(line, "\"");
}

static void line_number(struct line *line, const char *key, int64_t number)
{
    if (number != 0)
        line_printf(line, ",\"%s\":%" PRId64, key, number);
}

static void line_context(struct line *line, const struct context *context)
{
    if (context == NULL)
        return;
    if (context->request_id[0] != '\0')
        line_text(line, "request_id", context->request_id);
    line_number(line, "account_id", context->account_id);
    line_number(line, "order_id", context->order_id);
    line_number(line, "job_id", context->job_id);
}

void log_write(enum log_level level, const struct context *context, const char *event,
               const struct log_field *fields)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    struct line line = {.length = 0};
    char ts[clock_iso_size];
    if (level < level_least)
        return;
    clock_iso(clock_now_ms(), ts);
    line_printf(&line, "{\"ts\":\"%s\",\"level\":\"%s\",\"event\":\"%s\"", ts, names[level], event);
    line_context(&line, context);
    for (const struct log_field *field = fields; field->key != NULL; field++) {
        if (field->text != NULL)
            line_text(&line, field->key, field->text);
        else
            line_printf(&line, ",\"%s\":%" PRId64, field->key, field->number);
    }
    line_printf(&line, ",\"pid\":%ld", (long)getpid());
    memcpy(line.bytes + line.length, "}\n", 2);
    ssize_t written = write(STDERR_FILENO, line.bytes, line.length + 2);
    (void)written; /* There is nowhere left to complain. */
}

void log_failure(const struct context *context, const char *event)
{
    bool is_ours = context->error == IW_SERVER_INTERNAL_ERROR || context->error == IW_SERVICE_UNAVAILABLE;
    log_event(is_ours ? LOG_ERROR : LOG_WARN, context, event, LOG_TEXT("code", iw_error_code(context->error)),
              LOG_TEXT("reason", context->reason), LOG_TEXT("message", context->sentence),
              LOG_TEXT("cause", context->cause));
}
