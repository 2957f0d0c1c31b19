/* The table upload_checks: orders that start by themselves and whose uploads a worker looks for. */
#ifndef DB_UPLOAD_CHECKS_H
#define DB_UPLOAD_CHECKS_H

#include <stdint.h>

#include "base/context.h"
#include "db/query.h"

enum { upload_checks_max = 8 };

/* An order whose uploads are due to be looked for. */
struct upload_check {
    int64_t order_id;
    int64_t account_id;
};

/* Adds an order. Call it before the order itself is written. */
enum iw_error upload_checks_add(const struct db *db, int64_t order_id, int64_t account_id,
                                int64_t at_ms) IW_MUST_USE;

/* Takes at most upload_checks_max due rows for the caller until until_ms; other workers skip them. */
enum iw_error upload_checks_take(const struct db *db, int64_t now_ms, int64_t until_ms,
                                 struct upload_check *checks, unsigned *count) IW_MUST_USE;

/* Sets the next time of an order. Has no effect for an order without a row. */
enum iw_error upload_checks_move(const struct db *db, int64_t order_id, int64_t at_ms) IW_MUST_USE;

enum iw_error upload_checks_delete(const struct db *db, int64_t order_id) IW_MUST_USE;

#endif
