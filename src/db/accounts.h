/* The table accounts, for operators.  Its API keys are in keys.h. */
#ifndef DB_ACCOUNTS_H
#define DB_ACCOUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "db/db.h"
#include "model/account.h"

/* TWIN_EXISTS if the name is taken; VALIDATION_FAILED if there is no such plan. */
enum iw_error accounts_create(const struct db *db, const char *name, const char *plan, int64_t now_ms,
                              int64_t *id) IW_MUST_USE;

enum iw_error accounts_name_is_taken(const struct db *db, const char *name, bool *is_taken) IW_MUST_USE;

/* True if the account has an order, a key, or another user than this one. */
enum iw_error accounts_is_used(const struct db *db, int64_t id, int64_t user_id, bool *is_used) IW_MUST_USE;

/* Finds an account by name, or by decimal id if no account has that name. NOT_FOUND. */
enum iw_error accounts_find(const struct db *db, const char *name, struct account_row *account) IW_MUST_USE;

/* Finds an account only by id. */
enum iw_error accounts_get(const struct db *db, int64_t id, struct account_row *account,
                           bool *is_found) IW_MUST_USE;

/* TWIN_EXISTS if the name is in use. */
enum iw_error accounts_rename(const struct db *db, int64_t id, const char *name) IW_MUST_USE;

/*
 * One page of accounts, newest first.  keyword is a part of the name; NULL means all.  The array is in
 * the arena.
 */
struct accounts_page {
    const char *keyword;
    const char *status; /* "active", "suspended"; NULL means both */
    int64_t limit;
    int64_t offset;
};
enum iw_error accounts_page(const struct db *db, const struct accounts_page *page,
                            struct account_row **accounts, size_t *count, int64_t *total) IW_MUST_USE;

/* All accounts by id; the array is in the arena. */
enum iw_error accounts_list(const struct db *db, struct account_row **accounts, size_t *count) IW_MUST_USE;

/* requests_per_minute 0 means the plan's.  VALIDATION_FAILED if there is no such plan. */
enum iw_error accounts_plan_set(const struct db *db, int64_t id, const char *plan,
                                int64_t requests_per_minute) IW_MUST_USE;

/* Suspends an account: requests and URLs of the account are refused, jobs and deliveries wait. */
enum iw_error accounts_suspend(const struct db *db, int64_t id) IW_MUST_USE;

/*
 * Resumes a suspended account. Its pending orders expire at pending_until_ms at the earliest, and the five
 * days of a failing webhook start again, so that the time of the suspension does not count.
 */
enum iw_error accounts_resume(const struct db *db, int64_t id, int64_t pending_until_ms) IW_MUST_USE;

#endif
