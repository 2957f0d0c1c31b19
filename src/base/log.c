#include "base/log.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

enum { line_size = 4096, value_bytes_max = 1024 };

static enum log_level level_least = LOG_INFO;
static const char *plain_program; /* NULL for lines of JSON */

/* A line of limited size. Text that does not fit is cut off, but the object is always closed. */
struct log_line {
    char bytes[line_size];
    size_t length;
};

void log_level_set(enum log_level level)
{
    level_least = level;
}

void log_plain_set(const char *program)
{
    plain_program = program;
}

/* Adds bytes, but keeps room for the end of the line. */
static void line_add(struct log_line *line, const char *bytes, size_t length)
{
    if (line->length + length + 8 > line_size)
        return;
    memcpy(line->bytes + line->length, bytes, length);
    line->length += length;
}

static void line_string(struct log_line *line, const char *string)
{
    line_add(line, string, strlen(string));
}

/*
 * Escapes all special bytes and replaces bytes that are not UTF-8 by U+FFFD, so that the result is always one
 * line of valid JSON. Paths are logged as the client sent them.
 */
static void line_escape(struct log_line *line, const char *text)
{
    size_t length = strnlen(text, value_bytes_max);
    for (size_t at = 0; at < length;) {
        size_t plain = at;
        while (at < length && text_is_plain((unsigned char)text[at]))
            at++;
        line_add(line, text + plain, at - plain);
        if (at == length)
            return;
        unsigned char byte = (unsigned char)text[at];
        size_t size = byte < 0x80 ? 0 : text_sequence(text + at, length - at);
        char escaped[8] = "\\ufffd";
        if (byte == '"' || byte == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", byte);
        else if (byte < 0x80)
            snprintf(escaped, sizeof escaped, "\\u%04x", byte);
        if (size == 0)
            line_string(line, escaped);
        line_add(line, text + at, size);
        at += size == 0 ? 1 : size;
    }
}

static void line_key(struct log_line *line, const char *key)
{
    line_add(line, ",\"", 2);
    line_string(line, key);
    line_add(line, "\":", 2);
}

static void line_text(struct log_line *line, const char *key, const char *text)
{
    /* A value that does not fit is omitted completely. */
    if (line->length + 6 * strnlen(text, value_bytes_max) + strlen(key) + 16 > line_size)
        return;
    line_key(line, key);
    line_add(line, "\"", 1);
    line_escape(line, text);
    line_add(line, "\"", 1);
}

static void line_number(struct log_line *line, const char *key, int64_t number)
{
    char digits[text_decimal_size];
    size_t length = text_decimal(number, digits);
    if (line->length + length + strlen(key) + 16 > line_size)
        return;
    line_key(line, key);
    line_add(line, digits, length);
}

static void line_named(struct log_line *line, const char *key, int64_t number)
{
    if (number != 0)
        line_number(line, key, number);
}

static void line_context(struct log_line *line, const struct context *context)
{
    if (context == NULL)
        return;
    if (context->request_id[0] != '\0')
        line_text(line, "request_id", context->request_id);
    if (context->trace.id[0] != '\0')
        line_text(line, "trace_id", context->trace.id);
    line_named(line, "account_id", context->account_id);
    line_named(line, "order_id", context->order_id);
    line_named(line, "job_id", context->job_id);
}

static void line_print(struct log_line *line)
{
    ssize_t written = write(STDERR_FILENO, line->bytes, line->length);
    (void)written; /* There is no other log to report an error of stderr to. */
}

/* "imgwardctl: store_clock_differs ms=300" */
static void plain_write(const char *event, const struct log_field *fields)
{
    struct log_line line = {.length = 0};
    line_string(&line, plain_program);
    line_string(&line, ": ");
    line_string(&line, event);
    for (const struct log_field *field = fields; field->key != NULL; field++) {
        char digits[text_decimal_size];
        line_string(&line, " ");
        line_string(&line, field->key);
        line_string(&line, "=");
        if (field->text != NULL)
            line_escape(&line, field->text);
        else
            line_add(&line, digits, text_decimal(field->number, digits));
    }
    line.bytes[line.length++] = '\n';
    line_print(&line);
}

void log_write(enum log_level level, const struct context *context, const char *event,
               const struct log_field *fields)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    struct log_line line;
    char ts[clock_iso_size];
    if (level < level_least)
        return;
    if (plain_program != NULL) {
        plain_write(event, fields);
        return;
    }
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
    line.length += 2;
    line_print(&line);
}

void log_failure(const struct context *context, const char *event)
{
    bool is_ours = context->error == IW_SERVER_INTERNAL_ERROR || context->error == IW_SERVICE_UNAVAILABLE;
    log_event(is_ours ? LOG_ERROR : LOG_WARN, context, event, LOG_TEXT("code", iw_error_code(context->error)),
              LOG_TEXT("reason", context->reason), LOG_TEXT("message", context->sentence),
              LOG_TEXT("cause", context->cause));
}
