/* The table user_sessions. */
#ifndef DB_SESSIONS_H
#define DB_SESSIONS_H

#include <stdint.h>

#include "base/context.h"
#include "db/query.h"
#include "model/user.h"

/* id is not read. */
enum iw_error sessions_insert(const struct db *db, const struct user_session *session,
                              const uint8_t digest[32]) IW_MUST_USE;

/* Finds a session; the caller checks the times. */
enum iw_error sessions_find(const struct db *db, const uint8_t digest[32], struct user_session *session,
                            bool *is_found) IW_MUST_USE;

enum iw_error sessions_touch(const struct db *db, int64_t id, const char *address,
                             int64_t now_ms) IW_MUST_USE;

/* The sessions of a user that were used since seen_ms and have not expired at now_ms, newest first. */
struct sessions_page {
    int64_t user_id;
    int64_t seen_ms;
    int64_t now_ms;
    int64_t limit;
    int64_t offset;
};
enum iw_error sessions_page(const struct db *db, const struct sessions_page *page,
                            struct user_session **sessions, size_t *count, int64_t *total) IW_MUST_USE;

/* Ends one session of a user; *count is 0 or 1. */
enum iw_error sessions_end(const struct db *db, int64_t user_id, int64_t id, int64_t *count) IW_MUST_USE;

/* Ends the sessions of a user other than except_id (0 means all). */
enum iw_error sessions_end_others(const struct db *db, int64_t user_id, int64_t except_id) IW_MUST_USE;

/* Deletes sessions that ended before these times. */
/* Ends all but the newest sessions of a user. */
enum iw_error sessions_trim(const struct db *db, int64_t user_id, int64_t most) IW_MUST_USE;

enum iw_error sessions_forget(const struct db *db, int64_t seen_ms, int64_t now_ms,
                              int64_t *count) IW_MUST_USE;

#endif
