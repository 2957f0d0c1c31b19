#include "domain/accounts/quota.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/message.h"
#include "db/usage.h"
#include "model/plan.h"
#include "service/redis/reserve.h"

enum {
    day_ms = 24 * 60 * 60 * 1000,
    reconcile_every_ms = 60000,
    pending_retry_s = 60,
    /* A claim ahead is at most a quarter of the minute's requests so far: rare creations have no reserve. */
    ahead_share = 4,
    ahead_max = 64,
    ahead_limit_share = 16
};

/* What a limit counts, and the remedy if the limit is reached. */
static const struct {
    const char *what;
    const char *remedy;
} words[QUOTA_COUNT] = {
    [QUOTA_ORDERS_PENDING] = {"orders that have not ended", "delete pending orders or wait until some end"},
    [QUOTA_FILES_PENDING] = {"files in orders that have not ended",
                             "delete pending orders or wait until some end"},
    [QUOTA_PROMISED_BYTES] = {"bytes that pending orders may upload", "confirm or delete pending orders"},
    [QUOTA_STORED_BYTES] = {"stored bytes", "delete orders whose results you have"},
    [QUOTA_FILES_DAY] = {"files today (UTC)", "wait until tomorrow"},
    [QUOTA_TEXTS_DAY] = {"new watermark texts today (UTC)", "wait until tomorrow"},
    [QUOTA_WEBHOOKS] = {"webhooks", "delete one"},
};

struct quota_numbers quota_limits(const struct config *config, const char *plan,
                                  const struct quota_numbers *own)
{
    const struct config_plan *section = plan_of(config, plan);
    struct quota_numbers limits = {{
        [QUOTA_ORDERS_PENDING] = section->orders_pending,
        [QUOTA_FILES_PENDING] = section->files_pending,
        [QUOTA_PROMISED_BYTES] = section->promised_bytes,
        [QUOTA_STORED_BYTES] = section->stored_bytes,
        [QUOTA_FILES_DAY] = section->files_day,
        [QUOTA_TEXTS_DAY] = section->texts_day,
        [QUOTA_WEBHOOKS] = section->webhooks,
    }};
    for (int i = 0; i < QUOTA_COUNT; i++)
        if (own->of[i] != quota_of_plan)
            limits.of[i] = own->of[i];
    return limits;
}

/* What a creation adds to each use. */
static struct quota_numbers amounts_of(const struct quota_claim *claim)
{
    return (struct quota_numbers){{[QUOTA_ORDERS_PENDING] = claim->amounts.orders,
                                   [QUOTA_FILES_PENDING] = claim->amounts.files,
                                   [QUOTA_PROMISED_BYTES] = claim->amounts.uploads * claim->upload_max_bytes,
                                   [QUOTA_STORED_BYTES] = 1,
                                   [QUOTA_FILES_DAY] = claim->amounts.files,
                                   [QUOTA_TEXTS_DAY] = claim->texts}};
}

int64_t quota_ahead(const struct quota_claim *claim, unsigned requests)
{
    struct quota_numbers amounts = amounts_of(claim);
    int64_t ahead = requests / ahead_share < ahead_max ? requests / ahead_share : ahead_max;
    for (int i = 0; i < QUOTA_COUNT; i++) {
        if (i == QUOTA_STORED_BYTES || amounts.of[i] == 0 || claim->limits->of[i] == quota_unlimited)
            continue;
        int64_t most = claim->limits->of[i] / ahead_limit_share / amounts.of[i];
        ahead = ahead < most ? ahead : most;
    }
    return ahead;
}

enum iw_error quota_alone_check(struct context *context, const struct quota_claim *claim)
{
    struct quota_numbers amounts = amounts_of(claim);
    for (int i = 0; i < QUOTA_COUNT; i++)
        if (i != QUOTA_STORED_BYTES && quota_exceeds(claim->limits->of[i], 0, amounts.of[i]))
            context_detail(context, "files", message_quota_exceeded, (long long)amounts.of[i], words[i].what,
                           (long long)claim->limits->of[i], quota_name((enum quota)i));
    return context_validated(context);
}

/* The counters of the account's row, with its reserve. */
static enum iw_error row_read(const struct domain *domain, int64_t account_id, struct quota_numbers *used)
{
    char day[11];
    const struct quota_amounts none = {0};
    *used = (struct quota_numbers){{0}};
    clock_day(clock_now_ms(), day);
    bool is_found = false;
    enum iw_error error = quotas_used(&domain->db, account_id, day, used, &is_found);
    if (error == IW_OK && !is_found) {
        error = quotas_open(&domain->db, account_id);
        if (error == IW_OK)
            error = quotas_reconcile(&domain->db, account_id, &none);
        /* If the row is still missing, the account was deleted meanwhile and uses nothing. */
        if (error == IW_OK)
            error = quotas_used(&domain->db, account_id, day, used, &is_found);
    }
    used->of[QUOTA_PROMISED_BYTES] *= domain->config->store_upload_max_bytes;
    return error;
}

enum iw_error quota_used(const struct domain *domain, int64_t account_id, struct quota_numbers *used)
{
    struct quota_reserve reserve;
    int64_t now_ms = clock_now_ms();
    enum iw_error error = row_read(domain, account_id, used);
    if (error != IW_OK)
        return error;
    reserve_read(domain->redis, domain->context, domain->config->redis_prefix, account_id, &reserve);
    used->of[QUOTA_ORDERS_PENDING] -= reserve.amounts.orders;
    used->of[QUOTA_FILES_PENDING] -= reserve.amounts.files;
    used->of[QUOTA_PROMISED_BYTES] -= reserve.amounts.uploads * domain->config->store_upload_max_bytes;
    if (quota_reserve_is_of_day(&reserve, now_ms))
        used->of[QUOTA_FILES_DAY] -= reserve.amounts.files;
    return IW_OK;
}

bool quota_nearest(const struct config *config, const struct account *account, struct quota_state *nearest)
{
    double largest = 0;
    struct quota_numbers used = account->used, limits = quota_limits(config, account->plan, &account->quotas);
    used.of[QUOTA_PROMISED_BYTES] *= config->store_upload_max_bytes;
    for (int i = 0; i < QUOTA_WEBHOOKS; i++) {
        if (limits.of[i] == quota_unlimited || used.of[i] < limits.of[i] / 2)
            continue;
        double part = (double)used.of[i] / (double)limits.of[i];
        if (part <= largest)
            continue;
        largest = part;
        *nearest = (struct quota_state){.quota = (enum quota)i, .limit = limits.of[i], .used = used.of[i]};
    }
    return largest > 0;
}

/*
 * Returns the seconds until some of a usage may be free. Orders in progress can end at any time, so clients
 * retry after a minute.
 */
static enum iw_error frees_find(struct domain *domain, int64_t account_id, enum quota quota,
                                unsigned *frees_s)
{
    int64_t now_ms = clock_now_ms(), at_ms = 0;
    enum iw_error error = IW_OK;
    *frees_s = pending_retry_s;
    if (quota == QUOTA_FILES_DAY || quota == QUOTA_TEXTS_DAY)
        at_ms = now_ms - now_ms % day_ms + day_ms;
    else if (quota == QUOTA_STORED_BYTES)
        error = quotas_frees_ms(&domain->db, account_id, false, &at_ms);
    if (at_ms > now_ms)
        *frees_s = (unsigned)((at_ms - now_ms + 999) / 1000);
    return error;
}

static enum iw_error refusal_fail(struct domain *domain, int64_t account_id, struct quota_state *refusal)
{
    struct context *context = domain->context;
    enum iw_error error = frees_find(domain, account_id, refusal->quota, &refusal->frees_s);
    if (error != IW_OK)
        return error;
    context->reason = quota_name(refusal->quota);
    context->retry_after_s = refusal->frees_s;
    return context_fail(context, IW_USAGE_LIMIT_EXCEEDED, message_quota_reached, quota_name(refusal->quota),
                        (long long)refusal->used, words[refusal->quota].what, (long long)refusal->limit,
                        words[refusal->quota].remedy, refusal->frees_s);
}

enum iw_error quota_refuse(struct domain *domain, const struct quota_claim *claim,
                           struct quota_state *refusal)
{
    struct quota_numbers used, amounts = amounts_of(claim);
    enum iw_error error = row_read(domain, claim->account_id, &used);
    if (error != IW_OK)
        return error;
    for (int i = claim->is_covered ? QUOTA_TEXTS_DAY : 0; i < QUOTA_COUNT; i++) {
        if (!quota_exceeds(claim->limits->of[i], used.of[i], amounts.of[i]))
            continue;
        *refusal =
            (struct quota_state){.quota = (enum quota)i, .limit = claim->limits->of[i], .used = used.of[i]};
        return refusal_fail(domain, claim->account_id, refusal);
    }
    return IW_OK;
}

enum iw_error quota_webhook_claim(struct domain *domain, const struct account *account,
                                  struct quota_state *refusal)
{
    struct quota_numbers used, limits = quota_limits(domain->config, account->plan, &account->quotas);
    int64_t limit = limits.of[QUOTA_WEBHOOKS];
    /*
     * Lock before open, because an insert that finds the row would take a shared lock, and two such inserts
     * deadlock.
     */
    bool is_found = false;
    enum iw_error error = quotas_lock(&domain->db, account->id, &is_found);
    if (error == IW_OK && !is_found) {
        error = quotas_open(&domain->db, account->id);
        if (error == IW_OK)
            error = quotas_lock(&domain->db, account->id, &is_found);
    }
    if (error == IW_OK)
        error = row_read(domain, account->id, &used);
    if (error != IW_OK || !quota_exceeds(limit, used.of[QUOTA_WEBHOOKS], 1))
        return error;
    *refusal = (struct quota_state){.quota = QUOTA_WEBHOOKS, .limit = limit, .used = used.of[QUOTA_WEBHOOKS]};
    return refusal_fail(domain, account->id, refusal);
}

/* ---- daily usage ---- */

enum iw_error quota_recent(struct domain *domain, int64_t account_id, int64_t last_ms,
                           struct quota_day days[quota_days])
{
    struct usage_day *used;
    size_t count;
    for (int i = 0; i < quota_days; i++) {
        days[i].count = 0;
        clock_day(last_ms - day_ms * (quota_days - 1 - i), days[i].date);
    }
    enum iw_error error =
        usage_read(&domain->db, account_id, days[0].date, days[quota_days - 1].date, &used, &count);
    for (size_t at = 0; error == IW_OK && at < count; at++) {
        char date[11];
        clock_day(used[at].day_ms, date);
        for (int i = 0; i < quota_days; i++)
            if (strcmp(date, days[i].date) == 0)
                days[i].count = used[at].count;
    }
    return error;
}

/* ---- reconciliation ---- */

/* Logs each limit that is newly used to 80 per cent. */
static enum iw_error high_warn(const struct domain *domain, const struct quota_due *due)
{
    struct quota_numbers used, limits = quota_limits(domain->config, due->plan, &due->limits);
    int64_t warned = 0;
    enum iw_error error = quota_used(domain, due->account_id, &used);
    for (int i = 0; error == IW_OK && i < QUOTA_COUNT; i++) {
        int64_t bit = (int64_t)1 << i;
        if (limits.of[i] == quota_unlimited ||
            (double)used.of[i] * 100 < (double)limits.of[i] * quota_warn_percent)
            continue;
        warned |= bit;
        if ((due->warned & bit) != 0)
            continue;
        domain->context->account_id = due->account_id;
        log_event(LOG_WARN, domain->context, "usage_high", LOG_TEXT("limit", quota_name((enum quota)i)),
                  LOG_NUMBER("used", used.of[i]), LOG_NUMBER("allowed", limits.of[i]));
        domain->context->account_id = 0;
    }
    if (error != IW_OK || warned == due->warned)
        return error;
    return quotas_warned_write(&domain->db, due->account_id, warned);
}

/* Creations that took from the reserve and are not committed yet count as unused until the next minute. */
static enum iw_error reserved_reconcile(const struct domain *domain, int64_t account_id, int64_t now_ms)
{
    struct quota_reserve removed, reserve;
    const char *prefix = domain->config->redis_prefix;
    enum iw_error error = IW_OK;
    if (reserve_remove_old(domain->redis, domain->context, prefix, account_id, quota_term(now_ms), &removed))
        error = quotas_reserve_removed(&domain->db, account_id, &removed, now_ms);
    if (error != IW_OK)
        return error;
    reserve_read(domain->redis, domain->context, prefix, account_id, &reserve);
    return quotas_reconcile(&domain->db, account_id, &reserve.amounts);
}

enum iw_error quota_reconcile(const struct domain *domain, bool *is_done)
{
    struct quota_due due;
    int64_t now_ms = clock_now_ms();
    bool is_due = false;
    enum iw_error error = quotas_due(&domain->db, now_ms - reconcile_every_ms, now_ms, &due, &is_due);
    *is_done = error == IW_OK && is_due;
    if (!*is_done)
        return error;
    if (error == IW_OK)
        error = reserved_reconcile(domain, due.account_id, now_ms);
    return error == IW_OK ? high_warn(domain, &due) : error;
}
