/* The table api_keys. */
#ifndef DB_KEYS_H
#define DB_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "db/db.h"
#include "model/account.h"

/* Finds the account of a key by the SHA-256 of the key; a revoked key has key_revoked_ms. */
enum iw_error keys_find(const struct db *db, const uint8_t digest[32], struct account *account,
                        bool *is_found) IW_MUST_USE;

/* Records the use of a key; never goes back in time. */
enum iw_error keys_touch(const struct db *db, int64_t key_id, int64_t now_ms) IW_MUST_USE;

struct keys_row {
    int64_t account_id;
    const char *name;
    const uint8_t *digest; /* SHA-256 of the key */
    const char *prefix;    /* the first characters, for display */
    unsigned scopes;       /* bits of enum key_scope; 0 means everything */
    int64_t created_ms;
    int64_t expires_ms;     /* 0 means never */
    int64_t user_id;        /* who creates the key; 0 for the operator */
    const char *user_email; /* valid with user_id */
};

enum iw_error keys_insert(const struct db *db, const struct keys_row *row, int64_t *id) IW_MUST_USE;

/* The keys of one account, or of all (account_id 0), by id; the array is in the arena. */
enum iw_error keys_list(const struct db *db, int64_t account_id, struct account_key **keys,
                        size_t *count) IW_MUST_USE;

/* One page of the keys of an account, newest first; the array is in the arena. */
struct keys_page {
    int64_t limit;
    int64_t offset;
};
enum iw_error keys_page(const struct db *db, int64_t account_id, const struct keys_page *page,
                        struct account_key **keys, size_t *count) IW_MUST_USE;

/* Counts the valid keys of an account that a user created. */
struct keys_of_user {
    int64_t user_id;
    int64_t count;
};
enum iw_error keys_of_users(const struct db *db, int64_t account_id, int64_t now_ms,
                            struct keys_of_user **users, size_t *count) IW_MUST_USE;

/* Revokes the keys that a user created and sets *count to their number. */
enum iw_error keys_revoke_of_user(const struct db *db, int64_t account_id, int64_t user_id, int64_t now_ms,
                                  int64_t *count) IW_MUST_USE;

/* The number of an account's keys, and of those that are neither revoked nor expired. */
enum iw_error keys_count(const struct db *db, int64_t account_id, int64_t now_ms, int64_t *total,
                         int64_t *valid) IW_MUST_USE;

/* A key of an account. */
enum iw_error keys_get(const struct db *db, int64_t account_id, int64_t id, struct account_key *key,
                       bool *is_found) IW_MUST_USE;

/* NOT_FOUND if there is no such key. A second call keeps the time of the first. */
enum iw_error keys_revoke(const struct db *db, int64_t id, int64_t now_ms) IW_MUST_USE;

/* Sets when a key expires; 0 means never.  NOT_FOUND if there is no such key. */
enum iw_error keys_expire(const struct db *db, int64_t id, int64_t expires_at_ms) IW_MUST_USE;

/* Finds the id of the only key with this prefix. NOT_FOUND if there is no such key or more than one. */
enum iw_error keys_find_by_prefix(const struct db *db, const char *prefix, int64_t *id) IW_MUST_USE;

#endif
