/* The tables user_tokens and recovery_codes: secrets that a user presents once. */
#ifndef DB_TOKENS_H
#define DB_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "db/query.h"
#include "model/user.h"

struct tokens_row {
    int64_t user_id;
    enum token_purpose purpose;
    const uint8_t *digest; /* SHA-256 of the token */
    unsigned uses;
    int64_t created_ms;
    int64_t expires_ms;
};

/* Replaces the user's tokens of this purpose. */
enum iw_error tokens_insert(const struct db *db, const struct tokens_row *row) IW_MUST_USE;

/* Finds the user of a token that can still be used; 0 if there is none. */
enum iw_error tokens_find(const struct db *db, enum token_purpose purpose, const uint8_t digest[32],
                          int64_t now_ms, int64_t *user_id) IW_MUST_USE;

/* Uses a token once and finds the user; 0 if the token can no longer be used. */
enum iw_error tokens_take(const struct db *db, enum token_purpose purpose, const uint8_t digest[32],
                          int64_t now_ms, int64_t *user_id) IW_MUST_USE;

/* Deletes the user's tokens of a purpose. */
enum iw_error tokens_delete(const struct db *db, int64_t user_id, enum token_purpose purpose) IW_MUST_USE;

enum iw_error tokens_forget(const struct db *db, int64_t now_ms, int64_t *count) IW_MUST_USE;

/* Replaces the user's recovery codes by count digests of 32 bytes; a count of 0 deletes the codes. */
enum iw_error tokens_codes_set(const struct db *db, int64_t user_id, const uint8_t (*digests)[32],
                               unsigned count) IW_MUST_USE;

/* Uses up a recovery code. *is_taken is false if the user does not have this code. */
enum iw_error tokens_code_take(const struct db *db, int64_t user_id, const uint8_t digest[32],
                               bool *is_taken) IW_MUST_USE;

#endif
