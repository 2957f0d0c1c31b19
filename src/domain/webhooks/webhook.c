#include "domain/webhooks/webhook.h"

#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/message.h"
#include "base/text.h"
#include "db/deliveries.h"
#include "db/transaction.h"
#include "db/users.h"
#include "db/webhooks.h"
#include "domain/accounts/quota.h"
#include "domain/people/mail.h"
#include "domain/webhooks/outgoing.h"
#include "domain/webhooks/webhook_secret.h"
#include "service/net/fetch.h"

/* ---- fields ---- */

static void name_check(struct context *context, const struct webhook_fields *fields)
{
    const char *name = fields->name;
    if (name == NULL)
        return;
    size_t characters = text_code_points(name, fields->name_length);
    if (strlen(name) != fields->name_length || text_has_control(name, fields->name_length))
        context_detail(context, "name", message_control_characters);
    else if (characters > webhook_name_length_max)
        context_detail(context, "name", message_too_long, characters, (size_t)webhook_name_length_max);
}

static void url_check(struct context *context, const struct config *config,
                      const struct webhook_fields *fields, bool is_new)
{
    if (fields->url == NULL) {
        if (is_new)
            context_detail(context, "url", message_required);
        return;
    }
    const char *fault = outgoing_url_fault(config, fields->url);
    if (strlen(fields->url) != fields->url_length)
        context_detail(context, "url", message_control_characters);
    else if (fields->url_length > outgoing_url_bytes_max)
        context_detail(context, "url", message_too_long, fields->url_length, (size_t)outgoing_url_bytes_max);
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

enum iw_error webhook_find(const struct domain *domain, int64_t account_id, int64_t id,
                           struct webhook *webhook)
{
    bool is_found = false;
    enum iw_error error = webhooks_find(&domain->db, account_id, id, webhook, &is_found);
    return error == IW_OK && !is_found ? context_fail(domain->context, IW_WEBHOOK_NOT_FOUND, NULL) : error;
}

enum iw_error webhook_lock(const struct domain *domain, int64_t account_id, int64_t id,
                           struct webhook *webhook)
{
    bool is_found = false;
    enum iw_error error = webhooks_lock(&domain->db, account_id, id, webhook, &is_found);
    return error == IW_OK && !is_found ? context_fail(domain->context, IW_WEBHOOK_NOT_FOUND, NULL) : error;
}

enum iw_error webhook_list(struct domain *domain, int64_t account_id, const char *keyword,
                           const struct webhooks_page *page, struct webhook_rows *rows)
{
    enum iw_error error = webhooks_count(&domain->db, account_id, keyword, &rows->total);
    if (error == IW_OK)
        error = webhooks_list(&domain->db, account_id, keyword, page, &rows->items, &rows->count);
    return error;
}

int64_t webhook_overlap_end_ms(const struct webhook *webhook)
{
    return webhook->secret_before_until_ms > clock_now_ms() ? webhook->secret_before_until_ms : 0;
}

/* ---- create, change, remove, rotate ---- */

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
static enum iw_error url_reuse_check(struct domain *domain, int64_t account_id, int64_t id, const char *url)
{
    struct query_texts urls = {.count = 0};
    struct arena *arena = domain->context->arena;
    const char *normal = fetch_url_normal(arena, url);
    bool is_used = false;
    enum iw_error error = webhooks_urls_lock(&domain->db, account_id, id, &urls);
    if (error != IW_OK)
        return error;
    /* Compared as the receiver sees them: another spelling would make it another receiver of each event. */
    for (size_t i = 0; i < urls.count; i++)
        is_used |= strcmp(fetch_url_normal(arena, urls.items[i]), normal) == 0;
    if (is_used)
        context_detail(domain->context, "url", message_url_in_use);
    return context_validated(domain->context);
}

/* Adds the row and its first secret. */
static enum iw_error webhook_write(struct domain *domain, int64_t account_id,
                                   const struct webhook_fields *fields, int64_t *id, const char **secret)
{
    uint8_t sealed[webhook_secret_sealed_bytes];
    int64_t now_ms = clock_now_ms();
    const char *name = fields->name != NULL ? fields->name : "";
    enum iw_error error = webhooks_insert(&domain->db, account_id, name, fields->url, now_ms, id);
    if (error != IW_OK)
        return error;
    *secret = secret_new(domain, account_id, sealed);
    return webhooks_secret_add(&domain->db, *id, sealed, sizeof sealed, now_ms, now_ms);
}

enum iw_error webhook_create(struct domain *domain, const struct account *account,
                             const struct webhook_fields *fields, struct webhook *webhook,
                             const char **secret, struct quota_state *refusal)
{
    int64_t id = 0;
    enum iw_error error = context_validated(domain->context);
    if (error != IW_OK)
        return error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = quota_webhook_claim(domain, account, refusal);
        if (error == IW_OK)
            error = url_reuse_check(domain, account->id, 0, fields->url);
        if (error == IW_OK)
            error = webhook_write(domain, account->id, fields, &id, secret);
    }
    return error == IW_OK ? webhook_find(domain, account->id, id, webhook) : error;
}

static void fields_apply(const struct webhook_fields *fields, struct webhook *webhook)
{
    if (fields->name != NULL)
        webhook->name = fields->name;
    if (fields->url != NULL)
        webhook->url = fields->url;
    if (fields->is_active < 0 || webhook->is_active == (fields->is_active == 1))
        return;
    webhook->is_active = fields->is_active == 1;
    webhook->inactive_reason = webhook->is_active ? NULL : "BY_CLIENT";
}

enum iw_error webhook_change(struct domain *domain, int64_t account_id, int64_t id,
                             const struct webhook_fields *fields, struct webhook *webhook)
{
    enum iw_error error;
    const struct db *db = &domain->db;
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        int64_t now_ms = clock_now_ms();
        error = webhook_lock(domain, account_id, id, webhook);
        if (error == IW_OK && fields->url != NULL && strcmp(fields->url, webhook->url) != 0)
            error = url_reuse_check(domain, account_id, id, fields->url);
        if (error != IW_OK)
            continue;
        fields_apply(fields, webhook);
        webhook->updated_ms = now_ms;
        error = webhooks_update(db, webhook, now_ms);
        if (error == IW_OK && !webhook->is_active)
            error = deliveries_cancel(db, id, "webhook_inactive", now_ms);
    }
    return error;
}

enum iw_error webhook_remove(struct domain *domain, int64_t account_id, int64_t id)
{
    enum iw_error error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        struct webhook webhook;
        int64_t now_ms = clock_now_ms();
        error = webhook_lock(domain, account_id, id, &webhook);
        if (error == IW_OK)
            error = webhooks_delete(&domain->db, id, now_ms);
        if (error == IW_OK)
            error = deliveries_cancel(&domain->db, id, "webhook_deleted", now_ms);
    }
    return error;
}

enum iw_error webhook_rotate(struct domain *domain, int64_t account_id, int64_t id, struct webhook *webhook,
                             const char **secret)
{
    enum iw_error error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        uint8_t sealed[webhook_secret_sealed_bytes];
        int64_t now_ms = clock_now_ms(), until_ms = now_ms + webhook_overlap_ms;
        error = webhook_lock(domain, account_id, id, webhook);
        if (error != IW_OK)
            continue;
        *secret = secret_new(domain, account_id, sealed);
        webhook->updated_ms = now_ms;
        webhook->secret_before_until_ms = until_ms;
        error = webhooks_secret_add(&domain->db, id, sealed, sizeof sealed, until_ms, now_ms);
    }
    return error;
}

enum iw_error webhook_deactivated_mail(const struct domain *domain, int64_t account_id, int64_t id,
                                       const char *reason)
{
    struct user *users = NULL;
    struct webhook webhook;
    size_t count = 0;
    if (!mail_is_on(domain->config))
        return IW_OK;
    enum iw_error error = webhook_find(domain, account_id, id, &webhook);
    if (error == IW_OK)
        error = users_owners(&domain->db, account_id, &users, &count);
    for (size_t i = 0; error == IW_OK && i < count; i++) {
        const struct mail mail = {.kind = MAIL_WEBHOOK_INACTIVE,
                                  .language = users[i].language,
                                  .recipient = users[i].email,
                                  .values = {webhook.url, reason}};
        error = mail_queue(domain, &mail);
    }
    return error;
}
