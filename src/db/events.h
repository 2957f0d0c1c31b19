/*
 * The table webhook_events, and each event with its delivery to one webhook.
 *
 * An event is written once and has a delivery for each webhook that was active then (deliveries.h).
 */
#ifndef DB_EVENTS_H
#define DB_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "db/db.h"
#include "model/webhook.h"

struct events_row {
    int64_t id;
    int64_t account_id;
    int64_t order_id; /* 0 means a test */
    const char *type;
    int64_t occurred_ms;
};

/*
 * Writes an event of an order, or a test. An event of an order is written only if the account has an active
 * webhook; *is_written says whether it was. TWIN_EXISTS if the id is taken.
 */
enum iw_error events_insert(const struct db *db, const struct events_row *row, bool *is_written) IW_MUST_USE;

/* The conditions of a list.  NULL means no condition. */
struct events_filter {
    const char *keyword; /* see webhooks_list */
    const char *states;  /* of the delivery: "PENDING,SENDING" */
};

/* One page of a webhook's events, newest first; the array is in the arena. */
enum iw_error events_list(const struct db *db, int64_t webhook_id, const struct events_filter *filter,
                          const struct webhooks_page *page, struct webhook_event **events,
                          size_t *count) IW_MUST_USE;

/*
 * Passes all events to the callback, unbuffered. The event is valid during the callback, which returns false
 * to stop.
 */
enum iw_error events_stream(const struct db *db, int64_t webhook_id, const struct events_filter *filter,
                            bool (*take)(void *user, const struct webhook_event *event),
                            void *user) IW_MUST_USE;

enum iw_error events_count(const struct db *db, int64_t webhook_id, const struct events_filter *filter,
                           int64_t *count) IW_MUST_USE;

/* An event that has a delivery to this webhook. */
enum iw_error events_find(const struct db *db, int64_t webhook_id, int64_t event_id,
                          struct webhook_event *event, bool *is_found) IW_MUST_USE;

/* The content of an event.  NOT_FOUND if it was deleted. */
enum iw_error events_subject(const struct db *db, int64_t event_id,
                             struct delivery_subject *subject) IW_MUST_USE;

/*
 * Deletes events without deliveries from before a time, a limited number per call, and sets count to their
 * number.
 */
enum iw_error events_forget(const struct db *db, int64_t before_ms, int64_t *count) IW_MUST_USE;

#endif
