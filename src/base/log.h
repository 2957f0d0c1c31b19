/*
 * The log: one JSON object a line on stderr, written with one write(2), with
 * fixed keys (ts level event request_id order_id job_id account_id ms) and the
 * event's own.  Text from a client is escaped, so a line stays a line.  Never
 * pass a key, a secret or a presigned URL.
 *
 *   log_event(LOG_WARN, context, "redis_away", LOG_TEXT("reason", "connect"), LOG_NUMBER("ms", 12));
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdint.h>

#include <imgward/context.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_field {
    const char *key;
    const char *text; /* NULL: the number counts */
    int64_t number;
};

#define LOG_TEXT(k, t)   ((struct log_field){.key = (k), .text = (t) != NULL ? (t) : ""})
#define LOG_NUMBER(k, n) ((struct log_field){.key = (k), .number = (int64_t)(n)})

/* context may be NULL; the fields end the argument list, none is fine. */
#define log_event(level, context, event, ...)                                                                \
    log_write((level), (context), (event),                                                                   \
              (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.key = NULL}})

void log_write(enum log_level level, const struct context *context, const char *event,
               const struct log_field *fields);

/* Lines below this level are dropped; LOG_INFO at start. */
void log_level_set(enum log_level level);

/* Logs the error a context holds, at warn, or at error for SERVER_* and SERVICE_*. */
void log_failure(const struct context *context, const char *event);

#endif
