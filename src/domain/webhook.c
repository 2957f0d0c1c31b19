#include "domain/webhook.h"

#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/text.h"
#include "domain/outgoing.h"
#include "domain/quota.h"
#include "domain/webhook_secret.h"
#include "service/fetch.h"
#include "store/deliveries.h"

/* ---- fields ---- */

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

/* ---- find ---- */

enum iw_error webhook_find(struct domain *domain, int64_t account_id, int64_t id, struct webhook *webhook)
{
    enum iw_error error = webhooks_find(&domain->store, account_id, id, webhook);
    return error == IW_NOT_FOUND ? context_fail(domain->context, IW_WEBHOOK_NOT_FOUND, NULL) : error;
}

enum iw_error webhook_lock(const struct store *store, int64_t account_id, int64_t id, struct webhook *webhook)
{
    enum iw_error error = webhooks_lock(store, account_id, id, webhook);
    return error == IW_NOT_FOUND ? context_fail(store->context, IW_WEBHOOK_NOT_FOUND, NULL) : error;
}

enum iw_error webhook_list(struct domain *domain, int64_t account_id, const char *keyword,
                           const struct webhooks_page *page, struct webhook_rows *rows)
{
    enum iw_error error = webhooks_count(&domain->store, account_id, keyword, &rows->total);
    if (error == IW_OK)
        error = webhooks_list(&domain->store, account_id, keyword, page, &rows->items, &rows->count);
    return error;
}

int64_t webhook_overlap_end_ms(const struct webhook *webhook)
{
    return webhook->secret_before_until_ms > clock_now_ms() ? webhook->secret_before_until_ms : 0;
}

/* ---- create, change, remove, rotate ---- */

/* The argument of the transactions below; each uses the fields that it needs. */
struct webhook_work {
    struct domain *domain;
    const struct account *account; /* of a new webhook */
    int64_t account_id;
    int64_t id;
    const struct webhook_fields *fields;
    struct webhook *webhook;
    const char *secret;
    struct quota_state *refusal;
};

/* A new secret: returned as text for the client, sealed for the database. */
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

/* Checks a new URL inside the transaction, so that concurrent requests cannot use it twice. */
static enum iw_error url_reuse_check(const struct store *store, const struct webhook_work *work)
{
    struct query_texts urls = {.count = 0};
    struct arena *arena = store->context->arena;
    const char *normal = fetch_url_normal(arena, work->fields->url);
    bool is_used = false;
    enum iw_error error = webhooks_urls_lock(store, work->account_id, work->id, &urls);
    if (error != IW_OK)
        return error;
    /* Compared as the receiver sees them: another spelling would make it another receiver of each event. */
    for (size_t i = 0; i < urls.count; i++)
        is_used |= strcmp(fetch_url_normal(arena, urls.items[i]), normal) == 0;
    if (is_used)
        context_detail(
            store->context, "url",
            "is the URL of another webhook of the account, which receives each event; change that one");
    return context_validated(store->context);
}

static enum iw_error create_work(const struct store *store, void *user)
{
    struct webhook_work *work = user;
    uint8_t sealed[webhook_secret_sealed_bytes];
    const struct webhook_fields *fields = work->fields;
    int64_t now_ms = clock_now_ms();
    enum iw_error error = quota_webhook_claim(store, work->domain, work->account, work->refusal);
    if (error == IW_OK)
        error = url_reuse_check(store, work);
    if (error != IW_OK)
        return error;
    error = webhooks_insert(store, work->account_id, fields->name != NULL ? fields->name : "", fields->url,
                            now_ms, &work->id);
    if (error != IW_OK)
        return error;
    work->secret = secret_new(work->domain, work->account_id, sealed);
    return webhooks_secret_add(store, work->id, sealed, sizeof sealed, now_ms, now_ms);
}

enum iw_error webhook_create(struct domain *domain, const struct account *account,
                             const struct webhook_fields *fields, struct webhook *webhook,
                             const char **secret, struct quota_state *refusal)
{
    struct webhook_work work = {.domain = domain,
                                .account = account,
                                .account_id = account->id,
                                .fields = fields,
                                .refusal = refusal};
    enum iw_error error = context_validated(domain->context);
    if (error == IW_OK)
        error = db_transaction(&domain->store, create_work, &work);
    *secret = work.secret;
    return error == IW_OK ? webhook_find(domain, account->id, work.id, webhook) : error;
}

static enum iw_error change_work(const struct store *store, void *user)
{
    struct webhook_work *work = user;
    struct webhook *webhook = work->webhook;
    const struct webhook_fields *fields = work->fields;
    int64_t now_ms = clock_now_ms();
    enum iw_error error = webhook_lock(store, work->account_id, work->id, webhook);
    if (error == IW_OK && fields->url != NULL && strcmp(fields->url, webhook->url) != 0)
        error = url_reuse_check(store, work);
    if (error != IW_OK)
        return error;
    if (fields->name != NULL)
        webhook->name = fields->name;
    if (fields->url != NULL)
        webhook->url = fields->url;
    if (fields->is_active >= 0 && webhook->is_active != (fields->is_active == 1)) {
        webhook->is_active = fields->is_active == 1;
        webhook->inactive_reason = webhook->is_active ? NULL : "BY_CLIENT";
    }
    webhook->updated_ms = now_ms;
    error = webhooks_update(store, webhook, now_ms);
    if (error == IW_OK && !webhook->is_active)
        error = deliveries_cancel(store, work->id, "webhook_inactive", now_ms);
    return error;
}

enum iw_error webhook_change(struct domain *domain, int64_t account_id, int64_t id,
                             const struct webhook_fields *fields, struct webhook *webhook)
{
    struct webhook_work work = {
        .domain = domain, .account_id = account_id, .id = id, .fields = fields, .webhook = webhook};
    return db_transaction(&domain->store, change_work, &work);
}

static enum iw_error remove_work(const struct store *store, void *user)
{
    struct webhook_work *work = user;
    struct webhook webhook;
    int64_t now_ms = clock_now_ms();
    enum iw_error error = webhook_lock(store, work->account_id, work->id, &webhook);
    if (error == IW_OK)
        error = webhooks_delete(store, work->id, now_ms);
    if (error == IW_OK)
        error = deliveries_cancel(store, work->id, "webhook_deleted", now_ms);
    return error;
}

enum iw_error webhook_remove(struct domain *domain, int64_t account_id, int64_t id)
{
    struct webhook_work work = {.domain = domain, .account_id = account_id, .id = id};
    return db_transaction(&domain->store, remove_work, &work);
}

static enum iw_error rotate_work(const struct store *store, void *user)
{
    struct webhook_work *work = user;
    uint8_t sealed[webhook_secret_sealed_bytes];
    int64_t now_ms = clock_now_ms();
    enum iw_error error = webhook_lock(store, work->account_id, work->id, work->webhook);
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
    struct webhook_work work = {.domain = domain, .account_id = account_id, .id = id, .webhook = webhook};
    enum iw_error error = db_transaction(&domain->store, rotate_work, &work);
    *secret = work.secret;
    return error;
}
