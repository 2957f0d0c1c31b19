/*
 * Webhooks and their events: the rows that a client's requests lead to.  What
 * happens to a delivery on its way is deliveries.h.
 *
 * Every function takes the account, so that another account's webhook is as
 * good as a missing one: NOT_FOUND.  Deleted ones are missing.
 */
#ifndef STORE_WEBHOOKS_H
#define STORE_WEBHOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/context.h>

#include "model/webhook.h"
#include "store/db.h"

/* Without a secret yet: webhooks_secret_add follows in the same transaction. */
enum iw_error webhooks_insert(const struct store *store, int64_t account_id, const char *name,
                              const char *url, int64_t now_ms, int64_t *id) IW_MUST_USE;

enum iw_error webhooks_find(const struct store *store, int64_t account_id, int64_t id,
                            struct webhook *webhook) IW_MUST_USE;

/* The same, with the row locked until the transaction ends. */
enum iw_error webhooks_lock(const struct store *store, int64_t account_id, int64_t id,
                            struct webhook *webhook) IW_MUST_USE;

/* keyword is a part of name or URL, or the whole id; NULL for all.  The array is the arena's, newest first.
 */
enum iw_error webhooks_list(const struct store *store, int64_t account_id, const char *keyword,
                            const struct webhooks_page *page, struct webhook **webhooks,
                            size_t *count) IW_MUST_USE;
enum iw_error webhooks_count(const struct store *store, int64_t account_id, const char *keyword,
                             int64_t *count) IW_MUST_USE;

/* Writes name, url, is_active and inactive_reason; the failures of one that is activated, or moved to another
 * URL, begin anew. */
enum iw_error webhooks_update(const struct store *store, const struct webhook *webhook,
                              int64_t now_ms) IW_MUST_USE;

/* Marks it deleted. */
enum iw_error webhooks_delete(const struct store *store, int64_t id, int64_t now_ms) IW_MUST_USE;

/*
 * A new current secret; the one that was it until now signs as well until then.
 * Forgets those whose time is over.
 */
enum iw_error webhooks_secret_add(const struct store *store, int64_t id, const void *sealed,
                                  size_t sealed_size, int64_t before_until_ms, int64_t now_ms) IW_MUST_USE;

/*
 * Writes an event of an order if the account has an active webhook; is_written
 * says so.  TWIN_EXISTS when the id is taken.
 */
enum iw_error webhooks_event_insert(const struct store *store, int64_t id, int64_t account_id,
                                    int64_t order_id, const char *type, int64_t now_ms,
                                    bool *is_written) IW_MUST_USE;

/* Writes an event without an order. */
enum iw_error webhooks_event_insert_test(const struct store *store, int64_t id, int64_t account_id,
                                         const char *type, int64_t now_ms) IW_MUST_USE;

/* Writes a delivery of the event to every active webhook of the account, or (webhook_id not 0) to that one.
 */
enum iw_error webhooks_event_spread(const struct store *store, int64_t event_id, int64_t account_id,
                                    int64_t webhook_id, int64_t now_ms) IW_MUST_USE;

/* The events that a webhook was sent or is to be sent, newest first; the array is the arena's. */
enum iw_error webhooks_event_list(const struct store *store, int64_t webhook_id, const char *keyword,
                                  const struct webhooks_page *page, struct webhook_event **events,
                                  size_t *count) IW_MUST_USE;

/* All of them, one after the other; take answers false to stop.  The event's texts live until it returns. */
enum iw_error webhooks_event_stream(const struct store *store, int64_t webhook_id, const char *keyword,
                                    bool (*take)(void *user, const struct webhook_event *event),
                                    void *user) IW_MUST_USE;

enum iw_error webhooks_event_count(const struct store *store, int64_t webhook_id, const char *keyword,
                                   int64_t *count) IW_MUST_USE;
enum iw_error webhooks_event_find(const struct store *store, int64_t webhook_id, int64_t event_id,
                                  struct webhook_event *event) IW_MUST_USE;

#endif
