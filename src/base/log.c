#include "base/log.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

enum { line_size = 4096, value_bytes_max = 1024 };

static enum log_level level_least = LOG_INFO;

/* A line of limited size. Text that does not fit is cut, and the object is still closed. */
struct line {
    char bytes[line_size];
    size_t length;
};

void log_level_set(enum log_level level)
{
    level_least = level;
}

/* Reserves bytes for the end of the line. */
static void line_add(struct line *line, const char *bytes, size_t length)
{
    if (line->length + length + 8 > line_size)
        return;
    memcpy(line->bytes + line->length, bytes, length);
    line->length += length;
}

static void line_string(struct line *line, const char *string)
{
    line_add(line, string, strlen(string));
}

/* Copies one UTF-8 sequence, or writes U+FFFD for an invalid byte. Returns the number of bytes read. */
static size_t line_sequence(struct line *line, const char *text, size_t left)
{
    size_t size = text_sequence(text, left);
    if (size == 0)
        line_string(line, "\\ufffd");
    line_add(line, text, size);
    return size == 0 ? 1 : size;
}

static void line_byte(struct line *line, unsigned char byte)
{
    char escaped[8];
    bool is_mark = byte == '"' || byte == '\\';
    snprintf(escaped, sizeof escaped, is_mark ? "\\%c" : "\\u%04x", byte);
    line_string(line, escaped);
}

/*
 * Escapes any bytes, so that a line stays one line of valid JSON. Paths are logged as the
 * client sent them.
 */
static void line_escape(struct line *line, const char *text)
{
    size_t length = strnlen(text, value_bytes_max);
    for (size_t at = 0; at < length;) {
        size_t plain = at;
        while (at < length && text_is_plain((unsigned char)text[at]))
            at++;
        line_add(line, text + plain, at - plain);
        if (at == length)
            return;
        if ((unsigned char)text[at] >= 0x80)
            at += line_sequence(line, text + at, length - at);
        else
            line_byte(line, (unsigned char)text[at++]);
    }
}

static void line_key(struct line *line, const char *key)
{
    line_add(line, ",\"", 2);
    line_string(line, key);
    line_add(line, "\":", 2);
}

static void line_text(struct line *line, const char *key, const char *text)
{
    /* A value that does not fit is left out completely. */
    if (line->length + 6 * strnlen(text, value_bytes_max) + strlen(key) + 16 > line_size)
        return;
    line_key(line, key);
    line_add(line, "\"", 1);
    line_escape(line, text);
    line_add(line, "\"", 1);
}

static void line_number(struct line *line, const char *key, int64_t number)
{
    char digits[text_decimal_size];
    size_t length = text_decimal(number, digits);
    if (line->length + length + strlen(key) + 16 > line_size)
        return;
    line_key(line, key);
    line_add(line, digits, length);
}

static void line_named(struct line *line, const char *key, int64_t number)
{
    if (number != 0)
        line_number(line, key, number);
}

static void line_context(struct line *line, const struct context *context)
{
    if (context == NULL)
        return;
    if (context->request_id[0] != '\0')
        line_text(line, "request_id", context->request_id);
    line_named(line, "account_id", context->account_id);
    line_named(line, "order_id", context->order_id);
    line_named(line, "job_id", context->job_id);
}

void log_write(enum log_level level, const struct context *context, const char *event,
               const struct log_field *fields)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    struct line line;
    char ts[clock_iso_size];
    if (level < level_least)
        return;
    clock_iso(clock_now_ms(), ts);
    line.length = 0;
    line_string(&line, "{\"ts\":\"");
    line_string(&line, ts);
    line_add(&line, "\"", 1);
    line_text(&line, "level", names[level]);
    line_text(&line, "event", event);
    line_context(&line, context);
    for (const struct log_field *field = fields; field->key != NULL; field++) {
        if (field->text != NULL)
            line_text(&line, field->key, field->text);
        else
            line_number(&line, field->key, field->number);
    }
    line_number(&line, "pid", getpid());
    memcpy(line.bytes + line.length, "}\n", 2);
    ssize_t written = write(STDERR_FILENO, line.bytes, line.length + 2);
    (void)written; /* stderr is the only log; its errors cannot be reported. */
}

void log_failure(const struct context *context, const char *event)
{
    bool is_ours = context->error == IW_SERVER_INTERNAL_ERROR || context->error == IW_SERVICE_UNAVAILABLE;
    log_event(is_ours ? LOG_ERROR : LOG_WARN, context, event, LOG_TEXT("code", iw_error_code(context->error)),
              LOG_TEXT("reason", context->reason), LOG_TEXT("message", context->sentence),
              LOG_TEXT("cause", context->cause));
}
