/* Accounts, their plans, and the keys they speak with: what an operator does to them. */
#ifndef STORE_ACCOUNTS_H
#define STORE_ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/context.h>

#include "model/account.h"
#include "store/db.h"

/* TWIN_EXISTS when the name is taken; VALIDATION_FAILED when there is no such plan. */
enum iw_error accounts_create(const struct store *store, const char *name, const char *plan, int64_t now_ms,
                              int64_t *id) IW_MUST_USE;

/* By name, or by id in decimal digits when no account has that name.  NOT_FOUND. */
enum iw_error accounts_find(const struct store *store, const char *name,
                            struct account_row *account) IW_MUST_USE;

/* All of them by id; the array is the arena's. */
enum iw_error accounts_list(const struct store *store, struct account_row **accounts,
                            size_t *count) IW_MUST_USE;

/* requests_per_minute 0 leaves the number to the plan.  VALIDATION_FAILED when there is no such plan. */
enum iw_error accounts_plan_set(const struct store *store, int64_t id, const char *plan,
                                int64_t requests_per_minute) IW_MUST_USE;

enum iw_error accounts_status_set(const struct store *store, int64_t id, bool is_active) IW_MUST_USE;

/* Keeps digest and prefix of a key; expires_at_ms 0 is never. */
enum iw_error accounts_key_add(const struct store *store, int64_t account_id, const char *name,
                               const uint8_t digest[32], const char *prefix, int64_t now_ms,
                               int64_t expires_at_ms, int64_t *id) IW_MUST_USE;

/* The keys of one account, or of all (account_id 0), by id. */
enum iw_error accounts_key_list(const struct store *store, int64_t account_id, struct account_key **keys,
                                size_t *count) IW_MUST_USE;

/* NOT_FOUND when there is no such key; revoking twice keeps the first time. */
enum iw_error accounts_key_revoke(const struct store *store, int64_t id, int64_t now_ms) IW_MUST_USE;

/* NOT_FOUND when there is no such key; expires_at_ms 0: never. */
enum iw_error accounts_key_expire(const struct store *store, int64_t id, int64_t expires_at_ms) IW_MUST_USE;

/* The id of the key whose stored prefix is this one; NOT_FOUND when there is none or more than one. */
enum iw_error accounts_key_find(const struct store *store, const char *prefix, int64_t *id) IW_MUST_USE;

#endif
