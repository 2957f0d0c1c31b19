/* API keys and the accounts behind them, as authentication needs them. */
#ifndef STORE_KEYS_H
#define STORE_KEYS_H

#include <stdint.h>

#include <imgward/context.h>

#include "model/account.h"
#include "store/db.h"

/* The account behind a key by the key's SHA-256; NOT_FOUND for an unknown key; key_revoked_ms tells a revoked
 * one. */
enum iw_error keys_find(const struct store *store, const uint8_t digest[32],
                        struct account *account) IW_MUST_USE;

/* Notes that a key was used; only ever forward. */
enum iw_error keys_touch(const struct store *store, int64_t key_id, int64_t now_ms) IW_MUST_USE;

#endif
