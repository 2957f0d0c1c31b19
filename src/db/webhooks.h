/*
 * The tables webhooks and webhook_secrets.
 *
 * The functions for clients take the account, so that they find neither webhooks of another account nor
 * deleted webhooks.
 */
#ifndef DB_WEBHOOKS_H
#define DB_WEBHOOKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "db/query.h"
#include "model/webhook.h"

/* Inserts a webhook without a secret; webhooks_secret_add must follow in the same transaction. */
enum iw_error webhooks_insert(const struct db *db, int64_t account_id, const char *name, const char *url,
                              int64_t now_ms, int64_t *id) IW_MUST_USE;

enum iw_error webhooks_find(const struct db *db, int64_t account_id, int64_t id, struct webhook *webhook,
                            bool *is_found) IW_MUST_USE;

/* Does the same, and locks the row until the transaction ends. */
enum iw_error webhooks_lock(const struct db *db, int64_t account_id, int64_t id, struct webhook *webhook,
                            bool *is_found) IW_MUST_USE;

/* keyword is a part of name or URL, or the whole id; NULL means all.  The array is in the arena, newest
 * first.
 */
enum iw_error webhooks_list(const struct db *db, int64_t account_id, const char *keyword,
                            const struct webhooks_page *page, struct webhook **webhooks,
                            size_t *count) IW_MUST_USE;
enum iw_error webhooks_count(const struct db *db, int64_t account_id, const char *keyword,
                             int64_t *count) IW_MUST_USE;

/* The URLs of all webhooks of an account except except_id; locks the account until the transaction ends. */
enum iw_error webhooks_urls_lock(const struct db *db, int64_t account_id, int64_t except_id,
                                 struct query_texts *urls) IW_MUST_USE;

/*
 * Writes name, url, is_active and inactive_reason. Resets the failures if the webhook is activated or gets
 * another URL.
 */
enum iw_error webhooks_update(const struct db *db, const struct webhook *webhook, int64_t now_ms) IW_MUST_USE;

/* Marks a webhook as deleted. */
enum iw_error webhooks_delete(const struct db *db, int64_t id, int64_t now_ms) IW_MUST_USE;

/*
 * Adds the current secret; the previous secret signs as well until before_until_ms.  Deletes expired
 * secrets.
 */
enum iw_error webhooks_secret_add(const struct db *db, int64_t id, const void *sealed, size_t sealed_size,
                                  int64_t before_until_ms, int64_t now_ms) IW_MUST_USE;

/*
 * Deletes the rows of webhooks that were deleted before a time and have no deliveries, and sets count to
 * their number.
 */
enum iw_error webhooks_forget(const struct db *db, int64_t before_ms, int64_t *count) IW_MUST_USE;

/* For operators: the webhooks of an account (NULL: of all), with their deliveries by status. */
enum iw_error webhooks_inspect(const struct db *db, const char *account,
                               struct query_table *table) IW_MUST_USE;

#endif
