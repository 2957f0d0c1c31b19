/* Results a day and account, as they are counted when they are made (closing.h). */
#ifndef STORE_USAGE_H
#define STORE_USAGE_H

#include <stddef.h>
#include <stdint.h>

#include <imgward/context.h>

#include "store/db.h"

struct usage_day {
    int64_t day_ms; /* the first millisecond of the UTC day */
    int64_t count;
};

/* The days from first to last ("YYYY-MM-DD") that have results, oldest first; the array is the arena's. */
enum iw_error usage_read(const struct store *store, int64_t account_id, const char *first, const char *last,
                         struct usage_day **days, size_t *count) IW_MUST_USE;

#endif
