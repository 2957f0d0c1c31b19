/* Quotas: the limits on what an account may have, store and create. */
#ifndef MODEL_QUOTA_H
#define MODEL_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

enum quota {
    QUOTA_ORDERS_PENDING, /* orders that have not ended */
    QUOTA_FILES_PENDING,  /* files of these orders */
    QUOTA_PROMISED_BYTES, /* store.upload_max_bytes for each file that a pending order may upload */
    QUOTA_STORED_BYTES,   /* inputs, results and archives */
    QUOTA_FILES_DAY,      /* files of the orders of a UTC day */
    QUOTA_TEXTS_DAY,      /* new watermark texts of a UTC day */
    QUOTA_WEBHOOKS,
    QUOTA_COUNT
};

/* A limit or a use for each quota. */
struct quota_numbers {
    int64_t of[QUOTA_COUNT];
};

enum {
    quota_unlimited = 0, /* as a limit */
    quota_of_plan = -1,  /* as an account's limit: the plan's applies */
    quota_warn_percent = 80
};

/* "ordersPending", as in answers, logs, metrics and commands; static text. */
const char *quota_name(enum quota quota);

/* The quota of a name; -1 when there is none. */
int quota_find(const char *name);

/* True when a use of amount more exceeds a limit. */
static inline bool quota_exceeds(int64_t limit, int64_t used, int64_t amount)
{
    return limit != quota_unlimited && amount > 0 && used + amount > limit;
}

#endif
