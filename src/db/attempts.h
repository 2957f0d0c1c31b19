/* The table sign_in_attempts: how often a name (a user or an address) tried to sign in. */
#ifndef DB_ATTEMPTS_H
#define DB_ATTEMPTS_H

#include <stdint.h>

#include "base/context.h"
#include "db/query.h"

struct attempts_row {
    const uint8_t *name_digest; /* 32 bytes */
    int64_t attempts;           /* 0 if there is no row */
    int64_t tried_ms;
    int64_t next_ms;
};

/* Reads a row and locks it until the transaction ends, even if it does not exist yet. */
enum iw_error attempts_lock(const struct db *db, struct attempts_row *row) IW_MUST_USE;

enum iw_error attempts_write(const struct db *db, const struct attempts_row *row) IW_MUST_USE;

enum iw_error attempts_forget(const struct db *db, int64_t before_ms, int64_t *count) IW_MUST_USE;

#endif
