/* The table mails: the queue of mails that the worker sends. */
#ifndef DB_MAILS_H
#define DB_MAILS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "db/query.h"

struct mails_row {
    int64_t id;
    int64_t attempt; /* fences late results */
    const char *recipient;
    const uint8_t *sealed;
    size_t sealed_size;
};

enum iw_error mails_insert(const struct db *db, const char *recipient, const uint8_t *sealed, size_t size,
                           int64_t now_ms) IW_MUST_USE;

enum iw_error mails_are_due(const struct db *db, int64_t now_ms, bool *are_due) IW_MUST_USE;

/* Leases the mail that is due first, until a time. */
enum iw_error mails_lease(const struct db *db, int64_t now_ms, int64_t until_ms, struct mails_row *row,
                          bool *is_found) IW_MUST_USE;

/* Has an effect only for this attempt. */
enum iw_error mails_delete(const struct db *db, int64_t id, int64_t attempt) IW_MUST_USE;
enum iw_error mails_postpone(const struct db *db, const struct mails_row *row, int64_t until_ms,
                             const char *reason) IW_MUST_USE;

#endif
