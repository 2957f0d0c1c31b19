/* The table audit_events: security events of accounts. */
#ifndef DB_AUDIT_H
#define DB_AUDIT_H

#include <stdint.h>

#include "base/context.h"
#include "db/query.h"
#include "model/user.h"

/* Adds an event. If account_id is 0, the event belongs to no account. The id is not read. */
enum iw_error audit_insert(const struct db *db, int64_t account_id,
                           const struct audit_event *event) IW_MUST_USE;

/* Lists one page of an account's events, newest first. */
struct audit_page {
    int64_t account_id;
    int64_t before_id; /* only older events */
    int64_t limit;
    int64_t offset;
};

/* A list counts at most this many events. */
enum { audit_window = 5000 };

struct audit_rows {
    struct audit_event *items; /* in the arena */
    size_t count;
    int64_t total;
    int64_t older_id; /* before_id of the list of older events; 0 if there are none */
};
enum iw_error audit_page(const struct db *db, const struct audit_page *page,
                         struct audit_rows *rows) IW_MUST_USE;

/* True if the user has an event of this name with these details. */
enum iw_error audit_has(const struct db *db, int64_t user_id, const char *event, const char *details,
                        bool *has) IW_MUST_USE;

/* Deletes some events and sets *count to their number. */
enum iw_error audit_forget(const struct db *db, int64_t before_ms, int64_t *count) IW_MUST_USE;

#endif
