#include "domain/webhooks/webhook_event.h"

#include "base/clock.h"
#include "base/crypto.h"
#include "base/message.h"
#include "db/deliveries.h"
#include "db/events.h"
#include "db/transaction.h"
#include "domain/webhooks/webhook.h"
#include "service/redis/queue.h"

enum { id_attempts_max = 5 };

/* Inserts an event. If two events of one millisecond draw the same id, the second event draws again. */
static enum iw_error event_insert(const struct db *db, int64_t account_id, int64_t order_id,
                                  enum webhook_event_type type, int64_t *id, bool *is_written)
{
    enum iw_error error = IW_TWIN_EXISTS;
    const char *name = webhook_event_type_name(type);
    for (int attempt = 0; attempt < id_attempts_max && error == IW_TWIN_EXISTS; attempt++) {
        context_clear(db->context);
        int64_t now_ms = clock_now_ms();
        *id = order_id_make(now_ms, crypto_random_u64());
        const struct events_row row = {*id, account_id, order_id, name, now_ms};
        error = events_insert(db, &row, is_written);
    }
    if (error == IW_TWIN_EXISTS)
        context_clear(db->context);
    return error == IW_TWIN_EXISTS ? context_fail(db->context, IW_SERVER_INTERNAL_ERROR, NULL) : error;
}

enum iw_error webhook_order_ended(const struct domain *domain, int64_t account_id, int64_t order_id,
                                  enum order_type type, enum order_status status)
{
    int64_t id;
    bool is_written;
    enum webhook_event_type event;
    if (!webhook_event_type_of(type, status, &event))
        return IW_OK;
    enum iw_error error = event_insert(&domain->db, account_id, order_id, event, &id, &is_written);
    if (error != IW_OK || !is_written)
        return error;
    return deliveries_insert(&domain->db, id, account_id, 0, clock_now_ms());
}

enum iw_error webhook_events(struct domain *domain, int64_t account_id, int64_t id,
                             const struct events_filter *filter, const struct webhooks_page *page,
                             struct webhook_event_rows *rows)
{
    struct webhook webhook;
    enum iw_error error = webhook_find(domain, account_id, id, &webhook);
    if (error == IW_OK)
        error = events_count(&domain->db, id, filter, &rows->total);
    if (error == IW_OK)
        error = events_list(&domain->db, id, filter, page, &rows->items, &rows->count);
    return error;
}

enum iw_error webhook_events_stream(struct domain *domain, int64_t account_id, int64_t id,
                                    const struct events_filter *filter,
                                    bool (*take)(void *user, const struct webhook_event *event), void *user)
{
    struct webhook webhook;
    enum iw_error error = webhook_find(domain, account_id, id, &webhook);
    return error == IW_OK ? events_stream(&domain->db, id, filter, take, user) : error;
}

enum iw_error webhook_event_exchange(struct domain *domain, int64_t account_id, int64_t id, int64_t event_id,
                                     struct deliveries_exchange *exchange)
{
    struct webhook webhook;
    bool is_found = false;
    enum iw_error error = webhook_find(domain, account_id, id, &webhook);
    if (error == IW_OK && domain->config->console_keep_bodies)
        error = deliveries_exchange_find(&domain->db, id, event_id, exchange, &is_found);
    return error == IW_OK && !is_found
               ? context_fail(domain->context, IW_RESOURCE_NOT_FOUND, "No bodies of this delivery are kept.")
               : error;
}

/* ---- test and retry ---- */

static enum iw_error active_check(struct context *context, const struct webhook *webhook)
{
    if (webhook->is_active)
        return IW_OK;
    context_detail(context, "isActive", message_webhook_inactive);
    return context_validated(context);
}

static enum iw_error event_find(const struct db *db, int64_t id, int64_t event_id,
                                struct webhook_event *event)
{
    bool is_found = false;
    enum iw_error error = events_find(db, id, event_id, event, &is_found);
    return error == IW_OK && !is_found ? context_fail(db->context, IW_WEBHOOK_EVENT_NOT_FOUND, NULL) : error;
}

enum iw_error webhook_try(struct domain *domain, int64_t account_id, int64_t id, struct webhook_event *event)
{
    int64_t event_id = 0;
    enum iw_error error;
    const struct db *db = &domain->db;
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        struct webhook webhook;
        bool is_written;
        error = webhook_lock(domain, account_id, id, &webhook);
        if (error == IW_OK)
            error = active_check(domain->context, &webhook);
        if (error == IW_OK)
            error = event_insert(db, account_id, 0, WEBHOOK_TEST, &event_id, &is_written);
        if (error == IW_OK)
            error = deliveries_insert(db, event_id, account_id, id, clock_now_ms());
    }
    if (error == IW_OK)
        error = event_find(db, id, event_id, event);
    if (error == IW_OK)
        queue_notify(domain->redis, domain->config, domain->context, event->order_id);
    return error;
}

enum iw_error webhook_event_retry(struct domain *domain, int64_t account_id, int64_t id, int64_t event_id,
                                  struct webhook_event *event)
{
    enum iw_error error;
    const struct db *db = &domain->db;
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        struct webhook webhook;
        bool is_repeated; /* false if the event is being sent: it stays as it is */
        error = webhook_lock(domain, account_id, id, &webhook);
        if (error == IW_OK)
            error = event_find(db, id, event_id, event);
        if (error == IW_OK)
            error = active_check(domain->context, &webhook);
        if (error == IW_OK)
            error = deliveries_repeat(db, id, event_id, clock_now_ms(), &is_repeated);
    }
    if (error == IW_OK)
        error = event_find(db, id, event_id, event);
    if (error == IW_OK)
        queue_notify(domain->redis, domain->config, domain->context, event->order_id);
    return error;
}
