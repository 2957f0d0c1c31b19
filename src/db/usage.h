/* The table usage_days: results per account and UTC day, counted as they are written. */
#ifndef DB_USAGE_H
#define DB_USAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "db/db.h"

struct usage_day {
    int64_t day_ms; /* the first millisecond of the UTC day */
    int64_t count;
};

/* Adds results to a UTC day ("YYYY-MM-DD"). */
enum iw_error usage_add(const struct db *db, int64_t account_id, const char *day, int64_t count) IW_MUST_USE;

/* The days from first to last ("YYYY-MM-DD") with results, oldest first; the array is in the arena. */
enum iw_error usage_read(const struct db *db, int64_t account_id, const char *first, const char *last,
                         struct usage_day **days, size_t *count) IW_MUST_USE;

#endif
