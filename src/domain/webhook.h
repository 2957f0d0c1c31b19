/*
 * Webhooks: an account's receivers, what they may be, and the events they get.
 *
 * Rules and use cases; the life of one delivery is delivery.h, secrets and
 * signatures are webhook_secret.h.  Whatever is not the account's is
 * WEBHOOK_NOT_FOUND, exactly as what is not there.
 */
#ifndef DOMAIN_WEBHOOK_H
#define DOMAIN_WEBHOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/context.h>

#include "domain/domain.h"
#include "model/webhook.h"
#include "store/webhooks.h"

enum {
    webhook_name_length_max = 100,
    webhook_account_max = 1000,           /* of one account */
    webhook_overlap_ms = 24 * 3600 * 1000 /* a secret signs for so long after its rotation */
};

/* What a client may set; NULL and -1: not given. */
struct webhook_fields {
    const char *name;
    size_t name_length;
    const char *url;
    size_t url_length;
    int is_active;
};

/*
 * Records an event of an order for every active webhook of its account, inside
 * the transaction that ends the order.  The deliveries are due at once; ring or
 * wake the deliverer after the commit to spare it its next look.
 */
enum iw_error webhook_event_record(const struct store *store, int64_t account_id, int64_t order_id,
                                   enum webhook_event_type type) IW_MUST_USE;

/* The same for an order that has just come to a status: records the event of that end, if it has one. */
enum iw_error webhook_order_ended(const struct store *store, int64_t account_id, int64_t order_id,
                                  enum order_type type, enum order_status status) IW_MUST_USE;

/* Adds a detail for each bad field; is_new: the URL is required. */
void webhook_fields_check(struct context *context, const struct config *config,
                          const struct webhook_fields *fields, bool is_new);

/* A new webhook and its secret, which is not to be had again.  VALIDATION_FAILED. */
enum iw_error webhook_create(struct domain *domain, int64_t account_id, const struct webhook_fields *fields,
                             struct webhook *webhook, const char **secret) IW_MUST_USE;

enum iw_error webhook_find(struct domain *domain, int64_t account_id, int64_t id,
                           struct webhook *webhook) IW_MUST_USE;

/* One page of the account's webhooks, newest first, and how many there are. */
enum iw_error webhook_list(struct domain *domain, int64_t account_id, const char *keyword,
                           const struct webhooks_page *page, struct webhook **webhooks, size_t *count,
                           int64_t *total) IW_MUST_USE;

/* Until when the secret before the last rotation signs as well; 0 when it does no more. */
int64_t webhook_overlap_end_ms(const struct webhook *webhook);

/* Changes what is given.  Deactivated by its owner, it forgets what it still had to deliver. */
enum iw_error webhook_change(struct domain *domain, int64_t account_id, int64_t id,
                             const struct webhook_fields *fields, struct webhook *webhook) IW_MUST_USE;

enum iw_error webhook_remove(struct domain *domain, int64_t account_id, int64_t id) IW_MUST_USE;

/* A new secret; each one before signs beside it for 24 hours from its own replacement. */
enum iw_error webhook_rotate(struct domain *domain, int64_t account_id, int64_t id, struct webhook *webhook,
                             const char **secret) IW_MUST_USE;

/* Sends a test event to this webhook alone.  VALIDATION_FAILED when it is not active. */
enum iw_error webhook_try(struct domain *domain, int64_t account_id, int64_t id,
                          struct webhook_event *event) IW_MUST_USE;

/* One page of the webhook's events, newest first, and how many there are. */
enum iw_error webhook_events(struct domain *domain, int64_t account_id, int64_t id, const char *keyword,
                             const struct webhooks_page *page, struct webhook_event **events, size_t *count,
                             int64_t *total) IW_MUST_USE;

/* All of them, newest first, one after the other; take answers false to stop. */
enum iw_error webhook_events_stream(struct domain *domain, int64_t account_id, int64_t id,
                                    const char *keyword,
                                    bool (*take)(void *user, const struct webhook_event *event),
                                    void *user) IW_MUST_USE;

/*
 * Delivers an event once more, now, and by the whole schedule if that fails;
 * one that is being sent just now is left alone.  WEBHOOK_EVENT_NOT_FOUND;
 * VALIDATION_FAILED when the webhook is not active.
 */
enum iw_error webhook_event_retry(struct domain *domain, int64_t account_id, int64_t id, int64_t event_id,
                                  struct webhook_event *event) IW_MUST_USE;

#endif
