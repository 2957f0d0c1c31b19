#include "domain/webhook.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/text.h"
#include "domain/outgoing.h"
#include "domain/webhook_secret.h"
#include "service/queue.h"
#include "store/deliveries.h"

enum { id_tries_max = 5 };

/* Two events of the same millisecond may draw the same number; then another is drawn. */
static enum iw_error event_write(const struct store *store, int64_t account_id, int64_t order_id,
                                 enum webhook_event_type type, int64_t *id, bool *is_written)
{
    enum iw_error error = IW_TWIN_EXISTS;
    const char *name = webhook_event_type_name(type);
    *is_written = true;
    for (int try = 0; try < id_tries_max && error == IW_TWIN_EXISTS; try++) {
        int64_t now_ms = clock_now_ms();
        *id = order_id_make(now_ms, crypto_random_u64());
        error = type == WEBHOOK_TEST
                    ? webhooks_event_insert_test(store, *id, account_id, name, now_ms)
                    : webhooks_event_insert(store, *id, account_id, order_id, name, now_ms, is_written);
    }
    return error == IW_TWIN_EXISTS ? context_fail(store->context, IW_SERVER_INTERNAL_ERROR, NULL) : error;
}

enum iw_error webhook_event_record(const struct store *store, int64_t account_id, int64_t order_id,
                                   enum webhook_event_type type)
{
    int64_t id;
    bool is_written;
    enum iw_error error = event_write(store, account_id, order_id, type, &id, &is_written);
    if (error != IW_OK || !is_written)
        return error;
    return webhooks_event_spread(store, id, account_id, 0, clock_now_ms());
}

enum iw_error webhook_order_ended(const struct store *store, int64_t account_id, int64_t order_id,
                                  enum order_type type, enum order_status status)
{
    enum webhook_event_type event;
    if (!webhook_event_type_of(type, status, &event))
        return IW_OK;
    return webhook_event_record(store, account_id, order_id, event);
}

/* ---- what a client may set ---- */

static void name_check(struct context *context, const struct webhook_fields *fields)
{
    const char *name = fields->name;
    if (name == NULL)
        return;
    size_t characters = text_code_points(name, fields->name_length);
    if (strlen(name) != fields->name_length || text_has_control(name, fields->name_length))
        context_detail(context, "name",
                       "has control characters, such as line breaks or tabs; leave them out");
    else if (characters > webhook_name_length_max)
        context_detail(context, "name", "has %zu characters; at most %d are allowed", characters,
                       webhook_name_length_max);
}

static void url_check(struct context *context, const struct config *config,
                      const struct webhook_fields *fields, bool is_new)
{
    if (fields->url == NULL) {
        if (is_new)
            context_detail(context, "url", "is required");
        return;
    }
    const char *fault = outgoing_url_fault(config, fields->url);
    if (strlen(fields->url) != fields->url_length)
        context_detail(context, "url", "has control characters, such as line breaks or tabs; leave them out");
    else if (fields->url_length > outgoing_url_bytes_max)
        context_detail(context, "url", "has %zu characters; at most %d are allowed", fields->url_length,
                       outgoing_url_bytes_max);
    else if (fault != NULL)
        context_detail(context, "url", "%s", fault);
}

void webhook_fields_check(struct context *context, const struct config *config,
                          const struct webhook_fields *fields, bool is_new)
{
    name_check(context, fields);
    url_check(context, config, fields, is_new);
}

/* ---- use cases ---- */

static enum iw_error found(struct context *context, enum iw_error error)
{
    return error == IW_NOT_FOUND ? context_fail(context, IW_WEBHOOK_NOT_FOUND, NULL) : error;
}

static enum iw_error active_check(struct context *context, const struct webhook *webhook)
{
    if (webhook->is_active)
        return IW_OK;
    context_detail(context, "isActive",
                   "is false, and nothing is sent to a webhook that is not active; set it to true with PUT");
    return context_validated(context);
}

/* A new secret as the client gets it and as the database keeps it. */
static const char *secret_new(struct domain *domain, int64_t account_id,
                              uint8_t sealed[webhook_secret_sealed_bytes])
{
    struct webhook_secret secret;
    webhook_secret_make(&secret);
    webhook_secret_seal(&secret, domain->secret_box, account_id, sealed);
    const char *text = webhook_secret_text(domain->context->arena, &secret);
    crypto_wipe(&secret, sizeof secret);
    return text;
}

static enum iw_error room_check(struct domain *domain, int64_t account_id)
{
    int64_t count;
    enum iw_error error = webhooks_count(&domain->store, account_id, NULL, &count);
    if (error != IW_OK || count < webhook_account_max)
        return error;
    context_detail(domain->context, "url",
                   "is one webhook too many: the account has %lld, and %d are allowed; delete one",
                   (long long)count, webhook_account_max);
    return context_validated(domain->context);
}

enum iw_error webhook_find(struct domain *domain, int64_t account_id, int64_t id, struct webhook *webhook)
{
    return found(domain->context, webhooks_find(&domain->store, account_id, id, webhook));
}

enum iw_error webhook_list(struct domain *domain, int64_t account_id, const char *keyword,
                           const struct webhooks_page *page, struct webhook **webhooks, size_t *count,
                           int64_t *total)
{
    enum iw_error error = webhooks_count(&domain->store, account_id, keyword, total);
    if (error == IW_OK)
        error = webhooks_list(&domain->store, account_id, keyword, page, webhooks, count);
    return error;
}

int64_t webhook_overlap_end_ms(const struct webhook *webhook)
{
    return webhook->secret_before_until_ms > clock_now_ms() ? webhook->secret_before_until_ms : 0;
}

/* What the use cases below hand through their transactions; each reads what it is for. */
struct work {
    struct domain *domain;
    int64_t account_id;
    int64_t id;
    int64_t event_id;
    const struct webhook_fields *fields;
    struct webhook *webhook;
    const char *secret;
};

static enum iw_error work_lock(const struct store *store, struct work *work, struct webhook *webhook)
{
    return found(store->context, webhooks_lock(store, work->account_id, work->id, webhook));
}

static enum iw_error create_run(const struct store *store, void *user)
{
    struct work *work = user;
    uint8_t sealed[webhook_secret_sealed_bytes];
    const struct webhook_fields *fields = work->fields;
    int64_t now_ms = clock_now_ms();
    enum iw_error error = webhooks_insert(store, work->account_id, fields->name != NULL ? fields->name : "",
                                          fields->url, now_ms, &work->id);
    if (error != IW_OK)
        return error;
    work->secret = secret_new(work->domain, work->account_id, sealed);
    return webhooks_secret_add(store, work->id, sealed, sizeof sealed, now_ms, now_ms);
}

enum iw_error webhook_create(struct domain *domain, int64_t account_id, const struct webhook_fields *fields,
                             struct webhook *webhook, const char **secret)
{
    struct work work = {.domain = domain, .account_id = account_id, .fields = fields};
    enum iw_error error = context_validated(domain->context);
    if (error == IW_OK)
        error = room_check(domain, account_id);
    if (error == IW_OK)
        error = db_transaction(&domain->store, create_run, &work);
    *secret = work.secret;
    return error == IW_OK ? webhook_find(domain, account_id, work.id, webhook) : error;
}

static void fields_apply(const struct webhook_fields *fields, struct webhook *webhook)
{
    if (fields->name != NULL)
        webhook->name = fields->name;
    if (fields->url != NULL)
        webhook->url = fields->url;
    if (fields->is_active >= 0 && webhook->is_active != (fields->is_active == 1)) {
        webhook->is_active = fields->is_active == 1;
        webhook->inactive_reason = webhook->is_active ? NULL : "BY_CLIENT";
    }
}

static enum iw_error change_run(const struct store *store, void *user)
{
    struct work *work = user;
    struct webhook *webhook = work->webhook;
    int64_t now_ms = clock_now_ms();
    enum iw_error error = work_lock(store, work, webhook);
    if (error != IW_OK)
        return error;
    fields_apply(work->fields, webhook);
    webhook->updated_ms = now_ms;
    error = webhooks_update(store, webhook, now_ms);
    if (error == IW_OK && !webhook->is_active)
        error = deliveries_cancel(store, work->id, "webhook_inactive", now_ms);
    return error;
}

enum iw_error webhook_change(struct domain *domain, int64_t account_id, int64_t id,
                             const struct webhook_fields *fields, struct webhook *webhook)
{
    struct work work = {
        .domain = domain, .account_id = account_id, .id = id, .fields = fields, .webhook = webhook};
    return db_transaction(&domain->store, change_run, &work);
}

static enum iw_error remove_run(const struct store *store, void *user)
{
    struct work *work = user;
    struct webhook webhook;
    int64_t now_ms = clock_now_ms();
    enum iw_error error = work_lock(store, work, &webhook);
    if (error == IW_OK)
        error = webhooks_delete(store, work->id, now_ms);
    if (error == IW_OK)
        error = deliveries_cancel(store, work->id, "webhook_deleted", now_ms);
    return error;
}

enum iw_error webhook_remove(struct domain *domain, int64_t account_id, int64_t id)
{
    struct work work = {.domain = domain, .account_id = account_id, .id = id};
    return db_transaction(&domain->store, remove_run, &work);
}

static enum iw_error rotate_run(const struct store *store, void *user)
{
    struct work *work = user;
    uint8_t sealed[webhook_secret_sealed_bytes];
    int64_t now_ms = clock_now_ms();
    enum iw_error error = work_lock(store, work, work->webhook);
    if (error != IW_OK)
        return error;
    work->secret = secret_new(work->domain, work->account_id, sealed);
    work->webhook->updated_ms = now_ms;
    work->webhook->secret_before_until_ms = now_ms + webhook_overlap_ms;
    return webhooks_secret_add(store, work->id, sealed, sizeof sealed, work->webhook->secret_before_until_ms,
                               now_ms);
}

enum iw_error webhook_rotate(struct domain *domain, int64_t account_id, int64_t id, struct webhook *webhook,
                             const char **secret)
{
    struct work work = {.domain = domain, .account_id = account_id, .id = id, .webhook = webhook};
    enum iw_error error = db_transaction(&domain->store, rotate_run, &work);
    *secret = work.secret;
    return error;
}

static enum iw_error try_run(const struct store *store, void *user)
{
    struct work *work = user;
    struct webhook webhook;
    bool is_written;
    enum iw_error error = work_lock(store, work, &webhook);
    if (error == IW_OK)
        error = active_check(store->context, &webhook);
    if (error == IW_OK)
        error = event_write(store, work->account_id, 0, WEBHOOK_TEST, &work->event_id, &is_written);
    if (error == IW_OK)
        error = webhooks_event_spread(store, work->event_id, work->account_id, work->id, clock_now_ms());
    return error;
}

/* The bell spares the delivery the wait for the worker's next look. */
static enum iw_error event_ring(struct domain *domain, const struct webhook_event *event)
{
    queue_ring(domain->redis, domain->config, domain->context, event->order_id);
    return IW_OK;
}

enum iw_error webhook_try(struct domain *domain, int64_t account_id, int64_t id, struct webhook_event *event)
{
    struct work work = {.domain = domain, .account_id = account_id, .id = id};
    enum iw_error error = db_transaction(&domain->store, try_run, &work);
    if (error == IW_OK)
        error = webhooks_event_find(&domain->store, id, work.event_id, event);
    return error == IW_OK ? event_ring(domain, event) : error;
}

enum iw_error webhook_events(struct domain *domain, int64_t account_id, int64_t id, const char *keyword,
                             const struct webhooks_page *page, struct webhook_event **events, size_t *count,
                             int64_t *total)
{
    struct webhook webhook;
    enum iw_error error = webhook_find(domain, account_id, id, &webhook);
    if (error == IW_OK)
        error = webhooks_event_count(&domain->store, id, keyword, total);
    if (error == IW_OK)
        error = webhooks_event_list(&domain->store, id, keyword, page, events, count);
    return error;
}

enum iw_error webhook_events_stream(struct domain *domain, int64_t account_id, int64_t id,
                                    const char *keyword,
                                    bool (*take)(void *user, const struct webhook_event *event), void *user)
{
    struct webhook webhook;
    enum iw_error error = webhook_find(domain, account_id, id, &webhook);
    return error == IW_OK ? webhooks_event_stream(&domain->store, id, keyword, take, user) : error;
}

static enum iw_error event_found(struct context *context, enum iw_error error)
{
    return error == IW_NOT_FOUND ? context_fail(context, IW_WEBHOOK_EVENT_NOT_FOUND, NULL) : error;
}

/* An event that is there but was not repeated is being sent: that is what was asked for. */
static enum iw_error retry_run(const struct store *store, void *user)
{
    struct work *work = user;
    struct webhook webhook;
    struct webhook_event event;
    enum iw_error error = work_lock(store, work, &webhook);
    if (error == IW_OK)
        error = event_found(store->context, webhooks_event_find(store, work->id, work->event_id, &event));
    if (error == IW_OK)
        error = active_check(store->context, &webhook);
    if (error == IW_OK)
        error = deliveries_repeat(store, work->id, work->event_id, clock_now_ms());
    return error == IW_NOT_FOUND ? IW_OK : error;
}

enum iw_error webhook_event_retry(struct domain *domain, int64_t account_id, int64_t id, int64_t event_id,
                                  struct webhook_event *event)
{
    struct work work = {.domain = domain, .account_id = account_id, .id = id, .event_id = event_id};
    enum iw_error error = db_transaction(&domain->store, retry_run, &work);
    if (error == IW_OK)
        error = event_found(domain->context, webhooks_event_find(&domain->store, id, event_id, event));
    return error == IW_OK ? event_ring(domain, event) : error;
}
