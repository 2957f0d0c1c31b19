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

/* What orders that have not ended use of their quotas; promised bytes in uploads. */
struct quota_amounts {
    int64_t orders;
    int64_t files; /* originals included */
    int64_t uploads;
};

/* Amounts that were claimed ahead of an account's next creations, in a term (quota_term). */
struct quota_reserve {
    struct quota_amounts amounts;
    int64_t term;
};

enum { quota_term_ms = 10000 };

/* The number of the term of a time.  A day is a whole number of terms. */
static inline int64_t quota_term(int64_t now_ms)
{
    return now_ms / quota_term_ms;
}

/* True if a reserve counts among the files of the UTC day of a time. */
static inline bool quota_reserve_is_of_day(const struct quota_reserve *reserve, int64_t now_ms)
{
    int64_t day_ms = 24 * 60 * 60 * 1000;
    return reserve->term * quota_term_ms / day_ms == now_ms / day_ms;
}

enum {
    quota_unlimited = 0, /* as a limit */
    quota_of_plan = -1,  /* as an account's limit: the plan's applies */
    quota_warn_percent = 80
};

/* "ordersPending", as in answers, logs, metrics and commands; static text. */
const char *quota_name(enum quota quota);

/* The quota of a name; -1 if there is none. */
int quota_find(const char *name);

/* True if a use of amount more exceeds a limit. */
static inline bool quota_exceeds(int64_t limit, int64_t used, int64_t amount)
{
    return limit != quota_unlimited && amount > 0 && used + amount > limit;
}

#endif
