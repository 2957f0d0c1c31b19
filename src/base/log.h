/*
 * The log: one JSON object per line on stderr, written with one write(2). Fixed keys are ts,
 * level, event, request_id, trace_id, order_id, job_id, account_id and ms; an event may add others. Text
 * from a client is escaped. Never log a key, a secret or a presigned URL.
 *
 *   log_event(LOG_WARN, context, "redis_away", LOG_TEXT("reason", "connect"), LOG_NUMBER("ms", 12));
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdint.h>

#include "base/context.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_field {
    const char *key;
    const char *text; /* NULL if the field is a number */
    int64_t number;
};

#define LOG_TEXT(k, t)   ((struct log_field){.key = (k), .text = (t) != NULL ? (t) : ""})
#define LOG_NUMBER(k, n) ((struct log_field){.key = (k), .number = (int64_t)(n)})

/* context may be NULL. Any number of fields may follow the event. */
#define log_event(level, context, event, ...)                                                                \
    log_write((level), (context), (event),                                                                   \
              (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.key = NULL}})

void log_write(enum log_level level, const struct context *context, const char *event,
               const struct log_field *fields);

/* Drops lines below this level. The initial level is LOG_INFO. */
void log_level_set(enum log_level level);

/*
 * For a program that a person runs: from now on lines are "PROGRAM: EVENT key=value" instead of JSON. Borrows
 * the name.
 */
void log_plain_set(const char *program);

/* Logs the error of a context: level error for SERVER_INTERNAL_ERROR and SERVICE_UNAVAILABLE, else warn. */
void log_failure(const struct context *context, const char *event);

#endif
