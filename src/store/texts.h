/*
 * The registry of watermark texts: what is embedded in a picture is a number of
 * 64 random bits, and here stands which text of which account it means.
 */
#ifndef STORE_TEXTS_H
#define STORE_TEXTS_H

#include <stddef.h>
#include <stdint.h>

#include <imgward/context.h>

#include "store/db.h"

/*
 * The row of an account's text, made with a fresh number if it has none yet; id
 * names it.  The text is kept byte for byte.
 */
enum iw_error texts_register(const struct store *store, int64_t account_id, const char *text, size_t length,
                             int64_t now_ms, int64_t *id) IW_MUST_USE;

/* The text that a number means to an account; NOT_FOUND when it means nothing to it.  The arena's. */
enum iw_error texts_find(const struct store *store, int64_t account_id, uint64_t number, const char **text,
                         size_t *length) IW_MUST_USE;

/* The number that a copy of a file of an order is marked with; NOT_FOUND. */
enum iw_error texts_number(const struct store *store, int64_t order_id, int64_t file_position, int64_t copy,
                           uint64_t *number) IW_MUST_USE;

#endif
