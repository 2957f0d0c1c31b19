/* The table audit_events: security events of accounts. */
#ifndef STORE_AUDIT_H
#define STORE_AUDIT_H

#include <stdint.h>

#include <imgward/context.h>

#include "model/user.h"
#include "store/query.h"

/* account_id 0: the event belongs to no account.  id is not read. */
enum iw_error audit_insert(const struct store *store, int64_t account_id,
                           const struct audit_event *event) IW_MUST_USE;

/* One page of an account's events, newest first; the array is the arena's. */
struct audit_page {
    int64_t account_id;
    int64_t limit;
    int64_t offset;
};
enum iw_error audit_page(const struct store *store, const struct audit_page *page,
                         struct audit_event **events, size_t *count, int64_t *total) IW_MUST_USE;

/* True when the user has an event of this name with these details. */
enum iw_error audit_has(const struct store *store, int64_t user_id, const char *event, const char *details,
                        bool *has) IW_MUST_USE;

enum iw_error audit_forget(const struct store *store, int64_t before_ms) IW_MUST_USE;

#endif
