/*
 * Webhook events: recording, listing, testing and retrying (contract 7).  The
 * state machine of a delivery is in model/delivery.h.
 */
#ifndef DOMAIN_WEBHOOKS_WEBHOOK_EVENT_H
#define DOMAIN_WEBHOOKS_WEBHOOK_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/deliveries.h"
#include "db/events.h"
#include "db/webhooks.h"
#include "domain/domain.h"
#include "model/webhook.h"

/*
 * Records the event of an order's new status for every active webhook of the account, inside the
 * transaction that ends the order.  Some statuses have no event. The deliveries are due at once; a wake-up
 * after the commit avoids the wait for the next sweep.
 */
enum iw_error webhook_order_ended(const struct domain *domain, int64_t account_id, int64_t order_id,
                                  enum order_type type, enum order_status status) IW_MUST_USE;

/* Sends a test event to one webhook.  VALIDATION_FAILED if it is not active. */
enum iw_error webhook_try(struct domain *domain, int64_t account_id, int64_t id,
                          struct webhook_event *event) IW_MUST_USE;

/* One page of events; the arena owns it. */
struct webhook_event_rows {
    struct webhook_event *items;
    size_t count;
    int64_t total; /* on all pages */
};

/* One page of the webhook's events, newest first. */
enum iw_error webhook_events(struct domain *domain, int64_t account_id, int64_t id,
                             const struct events_filter *filter, const struct webhooks_page *page,
                             struct webhook_event_rows *rows) IW_MUST_USE;

/* All events, newest first, one by one; take returns false to stop. */
enum iw_error webhook_events_stream(struct domain *domain, int64_t account_id, int64_t id,
                                    const struct events_filter *filter,
                                    bool (*take)(void *user, const struct webhook_event *event),
                                    void *user) IW_MUST_USE;

/* What the last attempt of an event sent and received.  RESOURCE_NOT_FOUND if nothing is kept. */
enum iw_error webhook_event_exchange(struct domain *domain, int64_t account_id, int64_t id, int64_t event_id,
                                     struct deliveries_exchange *exchange) IW_MUST_USE;

/*
 * Delivers an event again, at once, with a new schedule of retries.  An event
 * that is being sent stays as it is.  WEBHOOK_EVENT_NOT_FOUND; VALIDATION_FAILED
 * if the webhook is not active.
 */
enum iw_error webhook_event_retry(struct domain *domain, int64_t account_id, int64_t id, int64_t event_id,
                                  struct webhook_event *event) IW_MUST_USE;

#endif
