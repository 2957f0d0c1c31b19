#include "worker/deliver.h"

#include <stdlib.h>
#include <string.h>

#include <imgward/fault.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "domain/domain.h"
#include "service/presign.h"
#include "service/secret_box.h"
#include "store/deliveries.h"
#include "store/events.h"
#include "store/leases.h"
#include "store/webhooks.h"
#include "worker/notice.h"
#include "worker/owner.h"

enum {
    look_ms = 1000,
    sweep_ms = 5000,
    forget_ms = 10000,
    record_retry_ms = 1000,
    postpone_ms = 60000,
    lease_margin_s = 30, /* beside the time that the receiver has */
    transfer_arena_bytes = 4 * 1024 * 1024,
    arena_bytes = 16 * 1024 * 1024
};

/* One delivery from its lease to its record. */
struct transfer {
    struct deliver *deliver;
    struct transfer *next;
    struct arena *arena;
    struct context context;
    int64_t webhook_id;
    bool is_failing; /* the receiver's try before failed */
    struct delivery delivery;
    int64_t begun_ms; /* monotonic */

    bool is_ended;         /* the fields below are valid */
    int64_t record_at_ms;  /* monotonic */
    int64_t give_up_at_ms; /* monotonic: the lease is over, the database knows better than we do */
    struct delivery_answer answer;
    const char *reason; /* constant */
};

struct deliver {
    const struct config *config;
    struct store store; /* over context */
    const char *owner;
    struct metrics *metrics;
    char machine[owner_size];
    struct presign *presign;
    struct secret_box secret_box;
    struct fetch *fetch;
    bool is_fetch_stale; /* made with an older configuration: replaced when nothing is under way */
    struct arena *arena; /* of one look */
    struct context context;
    struct transfer *transfers;
    unsigned count;
    bool is_database_away;
    bool is_stopping;
    int64_t look_at_ms; /* all monotonic */
    int64_t sweep_at_ms;
    int64_t forget_at_ms;
};

/* ---- the database: away and back is told once ---- */

static bool database_said(struct deliver *deliver, struct context *context, enum iw_error error,
                          const char *event)
{
    if (error == IW_OK) {
        deliver->is_database_away = false;
        return true;
    }
    if (!deliver->is_database_away || error != IW_SERVICE_UNAVAILABLE)
        log_failure(context, event);
    deliver->is_database_away = error == IW_SERVICE_UNAVAILABLE;
    context_clear(context);
    return false;
}

/* ---- one transfer ---- */

static struct transfer *transfer_new(struct deliver *deliver, const struct deliveries_lease *lease,
                                     const struct delivery *delivery, bool is_failing)
{
    struct transfer *transfer = calloc(1, sizeof *transfer);
    if (transfer == NULL)
        abort();
    transfer->deliver = deliver;
    transfer->arena = arena_new(transfer_arena_bytes);
    context_init(&transfer->context, transfer->arena, NULL);
    transfer->context.account_id = lease->account_id;
    transfer->webhook_id = lease->webhook_id;
    transfer->is_failing = is_failing;
    transfer->delivery = *delivery;
    transfer->begun_ms = clock_monotonic_ms();
    transfer->give_up_at_ms =
        transfer->begun_ms + (deliver->config->webhooks_timeout_s + lease_margin_s) * 1000;
    transfer->next = deliver->transfers;
    deliver->transfers = transfer;
    deliver->count++;
    return transfer;
}

static void transfer_free(struct transfer *transfer)
{
    struct transfer **link = &transfer->deliver->transfers;
    while (*link != transfer)
        link = &(*link)->next;
    *link = transfer->next;
    transfer->deliver->count--;
    arena_free(transfer->arena);
    free(transfer);
}

static void transfer_done(void *user, const struct fetch_result *result)
{
    struct transfer *transfer = user;
    fault_point(FAULT_DELIVERY_ANSWERED);
    transfer->is_ended = true;
    transfer->record_at_ms = clock_monotonic_ms();
    transfer->answer = (struct delivery_answer){.is_answered = result->outcome == FETCH_ANSWERED,
                                                .status = result->status,
                                                .retry_after_s = result->retry_after_s};
    transfer->reason = transfer->answer.is_answered ? "status" : result->reason;
}

static enum iw_error transfer_start(struct transfer *transfer, const struct deliveries_lease *lease)
{
    struct deliver *deliver = transfer->deliver;
    struct notice notice;
    struct domain domain = {.context = &transfer->context,
                            .config = deliver->config,
                            .store = {&transfer->context, deliver->store.db},
                            .presign = deliver->presign,
                            .secret_box = &deliver->secret_box};
    enum iw_error error = notice_build(&domain, lease, transfer->delivery.event_id, &notice);
    if (error != IW_OK)
        return error;
    struct fetch_request request = {.method = FETCH_POST,
                                    .url = lease->url,
                                    .source = -1,
                                    .target = -1,
                                    .body = notice.body,
                                    .body_bytes = notice.body_bytes,
                                    .timeout_s = deliver->config->webhooks_timeout_s,
                                    .redirects_max = 0,
                                    .done = transfer_done,
                                    .user = transfer};
    memcpy(request.headers, notice.headers, sizeof notice.headers);
    if (fault_fails(FAULT_DELIVERY_SENT))
        return context_fail(&transfer->context, IW_IO_FAILED, NULL);
    return fetch_start(deliver->fetch, &transfer->context, &request);
}

/* What we cannot even send is our trouble, not the receiver's: later, and no try of the schedule. */
static void transfer_begin(struct deliver *deliver, const struct deliveries_lease *lease,
                           const struct delivery *delivery, bool is_failing)
{
    struct transfer *transfer = transfer_new(deliver, lease, delivery, is_failing);
    if (transfer_start(transfer, lease) == IW_OK)
        return;
    const char *reason = transfer->context.reason != NULL ? transfer->context.reason : "not_sent";
    log_failure(&transfer->context, "delivery_not_sent");
    context_clear(&transfer->context);
    enum iw_error error = deliveries_postpone(&(struct store){&transfer->context, deliver->store.db},
                                              delivery, reason, clock_now_ms() + postpone_ms);
    database_said(deliver, &transfer->context, error, "delivery_not_postponed");
    transfer_free(transfer);
}

/* ---- recording ---- */

static void record_log(const struct transfer *transfer, const struct delivery_verdict *verdict,
                       const char *inactive_reason)
{
    bool is_delivered = verdict->event == DELIVERY_EVENT_SUCCEED;
    metrics_add(transfer->deliver->metrics, METRIC_DELIVERIES,
                is_delivered                             ? METRIC_DELIVERED
                : verdict->event == DELIVERY_EVENT_RETRY ? METRIC_DELIVERY_RETRIED
                                                         : METRIC_DELIVERY_FAILED,
                0, 1);
    log_event(is_delivered ? LOG_INFO : LOG_WARN, &transfer->context,
              is_delivered                             ? "delivered"
              : verdict->event == DELIVERY_EVENT_RETRY ? "delivery_retried"
                                                       : "delivery_failed",
              LOG_NUMBER("webhook_id", transfer->webhook_id),
              LOG_NUMBER("event_id", transfer->delivery.event_id),
              LOG_NUMBER("status", transfer->answer.status), LOG_TEXT("reason", transfer->reason),
              LOG_NUMBER("failures", verdict->failures), LOG_NUMBER("wait_ms", verdict->wait_ms),
              LOG_NUMBER("ms", clock_monotonic_ms() - transfer->begun_ms));
    if (inactive_reason != NULL)
        log_event(LOG_WARN, &transfer->context, "webhook_deactivated",
                  LOG_NUMBER("webhook_id", transfer->webhook_id), LOG_TEXT("reason", inactive_reason));
}

/* Frees the transfer unless the database is away and the lease is still ours. */
static void transfer_record(struct transfer *transfer, int64_t now_ms)
{
    struct deliver *deliver = transfer->deliver;
    const char *inactive_reason;
    const struct delivery_verdict verdict =
        delivery_judge(&transfer->answer, transfer->delivery.failures, crypto_random_u64());
    const struct deliveries_attempt attempt = {
        .webhook_id = transfer->webhook_id,
        .delivery = &transfer->delivery,
        .verdict = &verdict,
        .status = transfer->answer.is_answered ? transfer->answer.status : 0,
        .reason = transfer->reason,
        .now_ms = clock_now_ms(),
    };
    enum iw_error error =
        deliveries_record(&(struct store){&transfer->context, deliver->store.db}, &attempt, &inactive_reason);
    fault_point(FAULT_DELIVERY_RECORDED);
    if (error == IW_SERVICE_UNAVAILABLE && now_ms < transfer->give_up_at_ms) {
        database_said(deliver, &transfer->context, error, "delivery_not_recorded");
        transfer->record_at_ms = now_ms + record_retry_ms;
        return;
    }
    if (error == IW_OK)
        record_log(transfer, &verdict, inactive_reason);
    else
        log_failure(&transfer->context, "delivery_not_recorded");
    deliver->look_at_ms = 0;
    transfer_free(transfer);
}

static void ended_record(struct deliver *deliver, int64_t now_ms)
{
    for (struct transfer *transfer = deliver->transfers, *next; transfer != NULL; transfer = next) {
        next = transfer->next;
        if (transfer->is_ended && now_ms >= transfer->record_at_ms)
            transfer_record(transfer, now_ms);
    }
}

/* ---- looking for what is due ---- */

/* How many more may be under way to a receiver like this one: others must find room as well. */
static unsigned room_for(const struct deliver *deliver, const struct deliveries_receiver *receiver)
{
    unsigned most = (unsigned)deliver->config->webhooks_deliveries_max;
    unsigned share = (most + 1) / 2, own = 0, failing = 0;
    for (const struct transfer *transfer = deliver->transfers; transfer != NULL; transfer = transfer->next) {
        own += transfer->context.account_id == receiver->account_id;
        failing += transfer->is_failing;
    }
    unsigned taken = receiver->is_failing && failing > own ? failing : own;
    unsigned room = most > deliver->count ? most - deliver->count : 0;
    unsigned shared = share > taken ? share - taken : 0;
    return room < shared ? room : shared;
}

static enum iw_error receiver_lease(struct deliver *deliver, const struct deliveries_receiver *receiver)
{
    struct deliveries_lease lease;
    const struct deliveries_request request = {
        .webhook_id = receiver->webhook_id,
        .owner = deliver->owner,
        .lease_s = deliver->config->webhooks_timeout_s + lease_margin_s,
        .now_ms = clock_now_ms(),
        .most = room_for(deliver, receiver),
    };
    if (request.most == 0)
        return IW_OK;
    enum iw_error error = deliveries_lease(&deliver->store, &request, &lease);
    if (error == IW_OK && lease.count > 0)
        fault_point(FAULT_DELIVERY_LEASED);
    for (unsigned i = 0; error == IW_OK && i < lease.count; i++)
        transfer_begin(deliver, &lease, &lease.deliveries[i], receiver->is_failing);
    return error;
}

static enum iw_error look(struct deliver *deliver)
{
    struct deliveries_receiver *receivers;
    unsigned count, most = (unsigned)deliver->config->webhooks_deliveries_max;
    enum iw_error error =
        deliveries_due(&deliver->store, clock_now_ms(), (most + 1) / 2, 2 * most, &receivers, &count);
    for (unsigned i = 0; error == IW_OK && i < count; i++)
        error = receiver_lease(deliver, &receivers[i]);
    return error;
}

/* Takes back what dead workers of this machine and silent ones of any had leased. */
static enum iw_error sweep(struct deliver *deliver)
{
    struct query_texts owners = {.count = 0};
    int64_t taken = 0, silent = 0;
    enum iw_error error = leases_owners(&deliver->store, LEASES_DELIVERIES, deliver->machine, &owners);
    for (unsigned i = 0; error == IW_OK && i < owners.count; i++) {
        int64_t number = 0;
        if (owner_is_dead(owners.items[i]))
            error = leases_release_owner(&deliver->store, LEASES_DELIVERIES, owners.items[i], &number);
        taken += number;
    }
    if (error == IW_OK)
        error = leases_release_silent(&deliver->store, LEASES_DELIVERIES, &silent);
    if (taken + silent > 0)
        log_event(LOG_WARN, NULL, "deliveries_taken_back", LOG_TEXT("reason", "lease_lost"),
                  LOG_NUMBER("deliveries", taken + silent));
    return error;
}

/* What is too old, and what a clock set back has put out of reach. */
static enum iw_error forget(struct deliver *deliver)
{
    /* Deliveries first: events and webhooks stay while a delivery refers to them. */
    static enum iw_error (*const steps[])(const struct store *store, int64_t before_ms, int64_t *count) = {
        deliveries_forget, events_forget, webhooks_forget};
    int64_t count = 0;
    int64_t kept_ms = deliver->config->webhooks_events_kept_days * 86400 * 1000;
    int64_t hastened = 0;
    enum iw_error error =
        leases_hasten_stranded(&deliver->store, LEASES_DELIVERIES, clock_now_ms(), &hastened);
    if (hastened > 0)
        log_event(LOG_WARN, NULL, "deliveries_hastened", LOG_TEXT("reason", "clock_set_back"),
                  LOG_NUMBER("deliveries", hastened));
    for (size_t i = 0; error == IW_OK && i < sizeof steps / sizeof steps[0]; i++) {
        int64_t rows = 0;
        error = steps[i](&deliver->store, clock_now_ms() - kept_ms, &rows);
        count += rows;
    }
    if (count > 0)
        log_event(LOG_INFO, NULL, "deliveries_forgotten", LOG_NUMBER("rows", count));
    return error;
}

/* Each errand on an arena of its own; one that the database refuses waits for its next time. */
static void errand(struct deliver *deliver, enum iw_error (*run)(struct deliver *), const char *failure,
                   int64_t *at_ms, int64_t now_ms, int64_t pause_ms)
{
    if (now_ms < *at_ms)
        return;
    *at_ms = now_ms + pause_ms;
    arena_reset(deliver->arena);
    context_init(&deliver->context, deliver->arena, NULL);
    database_said(deliver, &deliver->context, run(deliver), failure);
}

static bool has_room(const struct deliver *deliver)
{
    return !deliver->is_fetch_stale && (int64_t)deliver->count < deliver->config->webhooks_deliveries_max;
}

/* ---- life ---- */

static enum iw_error fetch_make(struct deliver *deliver, struct context *context)
{
    struct fetch *fresh;
    enum iw_error error = fetch_new(context, deliver->config, &fresh);
    if (error != IW_OK)
        return error;
    fetch_free(deliver->fetch);
    deliver->fetch = fresh;
    deliver->is_fetch_stale = false;
    return IW_OK;
}

enum iw_error deliver_new(struct context *context, const struct config *config, struct db *db,
                          const char *owner, struct metrics *metrics, struct deliver **deliver)
{
    struct deliver *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        abort();
    *fresh = (struct deliver){.config = config,
                              .store = {&fresh->context, db},
                              .owner = owner,
                              .metrics = metrics,
                              .arena = arena_new(arena_bytes)};
    owner_machine(fresh->machine);
    enum iw_error error = secret_box_read(context, config->webhooks_secret_key_file, &fresh->secret_box);
    if (error == IW_OK)
        error = presign_new(context, config, &fresh->presign);
    if (error == IW_OK)
        error = fetch_make(fresh, context);
    if (error == IW_OK)
        *deliver = fresh;
    else
        deliver_free(fresh);
    return error;
}

void deliver_free(struct deliver *deliver)
{
    if (deliver == NULL)
        return;
    fetch_free(deliver->fetch);
    while (deliver->transfers != NULL)
        transfer_free(deliver->transfers);
    presign_free(deliver->presign);
    crypto_wipe(&deliver->secret_box, sizeof deliver->secret_box);
    arena_free(deliver->arena);
    free(deliver);
}

enum iw_error deliver_check(struct context *context, const struct config *config)
{
    struct deliver *deliver;
    enum iw_error error = deliver_new(context, config, NULL, "", NULL, &deliver);
    if (error == IW_OK)
        deliver_free(deliver);
    return error;
}

enum iw_error deliver_reload(struct deliver *deliver, struct context *context)
{
    struct presign *presign;
    enum iw_error error = presign_new(context, deliver->config, &presign);
    if (error != IW_OK)
        return error;
    presign_free(deliver->presign);
    deliver->presign = presign;
    deliver->look_at_ms = 0;
    deliver->is_fetch_stale = !fetch_is_made_with(deliver->fetch, deliver->config);
    return IW_OK;
}

void deliver_wake(struct deliver *deliver)
{
    deliver->look_at_ms = 0;
}

unsigned deliver_count(const struct deliver *deliver)
{
    return deliver->count;
}

unsigned deliver_poll(const struct deliver *deliver, struct pollfd *polls, unsigned room)
{
    return fetch_poll(deliver->fetch, polls, room);
}

int64_t deliver_next_ms(const struct deliver *deliver)
{
    int64_t next_ms = deliver->is_stopping ? INT64_MAX
                      : has_room(deliver)  ? deliver->look_at_ms
                                           : deliver->sweep_at_ms;
    int fetch_ms = fetch_wait_ms(deliver->fetch);
    int64_t fetch_at_ms = clock_monotonic_ms() + fetch_ms;
    if (fetch_ms >= 0 && fetch_at_ms < next_ms)
        next_ms = fetch_at_ms;
    for (const struct transfer *transfer = deliver->transfers; transfer != NULL; transfer = transfer->next)
        if (transfer->is_ended && transfer->record_at_ms < next_ms)
            next_ms = transfer->record_at_ms;
    return next_ms;
}

void deliver_step(struct deliver *deliver, const struct pollfd *polls, unsigned count, bool is_stopping)
{
    fetch_step(deliver->fetch, polls, count);
    int64_t now_ms = clock_monotonic_ms();
    ended_record(deliver, now_ms);
    deliver->is_stopping = is_stopping;
    if (is_stopping)
        return;
    if (deliver->is_fetch_stale && deliver->count == 0) {
        context_init(&deliver->context, deliver->arena, NULL);
        if (fetch_make(deliver, &deliver->context) != IW_OK) {
            log_failure(&deliver->context, "reload_refused");
            deliver->is_fetch_stale = false;
        }
    }
    errand(deliver, sweep, "delivery_sweep_failed", &deliver->sweep_at_ms, now_ms, sweep_ms);
    if (has_room(deliver))
        errand(deliver, look, "delivery_look_failed", &deliver->look_at_ms, now_ms, look_ms);
    errand(deliver, forget, "delivery_forget_failed", &deliver->forget_at_ms, now_ms, forget_ms);
}
