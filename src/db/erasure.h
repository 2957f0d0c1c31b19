/* The deletion of an account and of every row that belongs to it. */
#ifndef DB_ERASURE_H
#define DB_ERASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "db/query.h"

/* Suspends an account until its deletion at a time. */
enum iw_error erasure_schedule(const struct db *db, int64_t account_id, int64_t at_ms) IW_MUST_USE;

/*
 * The suspended account that is due for deletion longest; 0 if none is due. If an account was resumed
 * meanwhile, its date is cleared.
 */
enum iw_error erasure_due(const struct db *db, int64_t now_ms, int64_t *account_id) IW_MUST_USE;

/* The first most orders of an account. */
enum iw_error erasure_orders(const struct db *db, int64_t account_id, unsigned most,
                             struct query_ids *order_ids) IW_MUST_USE;

/*
 * After its orders: deletes up to some thousand of the account's other rows, the account's own row last;
 * then *is_gone is true.
 */
enum iw_error erasure_step(const struct db *db, int64_t account_id, bool *is_gone) IW_MUST_USE;

#endif
