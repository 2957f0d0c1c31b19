#include "worker/deliver.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "db/deliveries.h"
#include "db/events.h"
#include "db/leases.h"
#include "db/webhooks.h"
#include "domain/webhooks/webhook.h"
#include "service/files/presign.h"
#include "worker/payload.h"
#include "worker/worker.h"

enum {
    look_pause_ms = 1000,
    sweep_pause_ms = 5000,
    forget_pause_ms = 10000,
    record_retry_ms = 1000,
    postpone_ms = 60000,
    slow_ms = 1000,      /* an attempt without an answer for so long counts as failing for the share */
    lease_margin_s = 30, /* beyond the time limit of the receiver */
    attempt_arena_bytes = 4 * 1024 * 1024,
    errand_arena_bytes = 16 * 1024 * 1024
};

/* One delivery from its lease to its record. */
struct deliver_attempt {
    struct worker *worker;
    struct deliver_attempt *next;
    struct arena *arena;
    struct context context;
    int64_t webhook_id;
    char server[fetch_server_size];
    bool is_failing; /* the previous attempt at the receiver failed */
    struct delivery delivery;
    int64_t begun_ms; /* monotonic */

    bool is_answered;      /* the fields below are valid */
    int64_t record_at_ms;  /* monotonic */
    int64_t give_up_at_ms; /* monotonic: the lease ended, and another worker may hold it */
    struct delivery_answer answer;
    const char *reason; /* constant */
};

/* As flags_database_report, for deliveries; the worker's own report logs that the database is back. */
static bool deliver_database_report(struct deliver *deliver, struct context *context, enum iw_error error,
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

static struct db attempt_store(struct deliver_attempt *attempt)
{
    return (struct db){&attempt->context, attempt->worker->domain.db.connection};
}

/* ---- one attempt ---- */

static struct deliver_attempt *attempt_new(struct worker *worker, const struct deliveries_lease *lease,
                                           const struct delivery *delivery, bool is_failing)
{
    struct deliver *deliver = &worker->deliver;
    struct deliver_attempt *attempt = calloc(1, sizeof *attempt);
    if (attempt == NULL)
        abort();
    attempt->worker = worker;
    attempt->arena = arena_new(attempt_arena_bytes);
    context_init(&attempt->context, attempt->arena, NULL);
    attempt->context.account_id = lease->account_id;
    attempt->webhook_id = lease->webhook_id;
    fetch_server(lease->url, attempt->server);
    attempt->is_failing = is_failing;
    attempt->delivery = *delivery;
    attempt->begun_ms = clock_monotonic_ms();
    attempt->give_up_at_ms = attempt->begun_ms + (worker->config.webhooks_timeout_s + lease_margin_s) * 1000;
    attempt->next = deliver->attempts;
    deliver->attempts = attempt;
    deliver->count++;
    return attempt;
}

static void attempt_free(struct deliver_attempt *attempt)
{
    struct deliver *deliver = &attempt->worker->deliver;
    struct deliver_attempt **link = &deliver->attempts;
    while (*link != attempt)
        link = &(*link)->next;
    *link = attempt->next;
    deliver->count--;
    arena_free(attempt->arena);
    free(attempt);
}

/* Called by the sender at the end of a request. */
static void attempt_done(void *user, const struct fetch_result *result)
{
    struct deliver_attempt *attempt = user;
    attempt->is_answered = true;
    attempt->record_at_ms = clock_monotonic_ms();
    attempt->answer = (struct delivery_answer){.is_answered = result->outcome == FETCH_ANSWERED,
                                               .status = result->status,
                                               .retry_after_s = result->retry_after_s};
    attempt->reason = attempt->answer.is_answered ? "status" : result->reason;
}

static enum iw_error attempt_send(struct deliver_attempt *attempt, const struct deliveries_lease *lease)
{
    struct worker *worker = attempt->worker;
    struct payload payload;
    struct domain domain = {.context = &attempt->context,
                            .config = &worker->config,
                            .db = attempt_store(attempt),
                            .storage = worker->storage,
                            .presign = worker->deliver.presign,
                            .secret_box = &worker->deliver.secret_box};
    enum iw_error error = payload_build(&domain, lease, attempt->delivery.event_id, &payload);
    if (error != IW_OK)
        return error;
    struct fetch_request request = {.method = FETCH_POST,
                                    .url = lease->url,
                                    .source = -1,
                                    .target = -1,
                                    .body = payload.body,
                                    .body_bytes = payload.body_bytes,
                                    .timeout_s = worker->config.webhooks_timeout_s,
                                    .redirects_max = 0,
                                    .done = attempt_done,
                                    .user = attempt};
    memcpy(request.headers, payload.headers, sizeof payload.headers);
    return sender_send(&worker->deliver.sender, &attempt->context, &request);
}

/* A delivery that cannot be sent is postponed: the receiver is not at fault, and no retry is used up. */
static void attempt_begin(struct worker *worker, const struct deliveries_lease *lease,
                          const struct delivery *delivery, bool is_failing)
{
    struct deliver_attempt *attempt = attempt_new(worker, lease, delivery, is_failing);
    const struct db db = attempt_store(attempt);
    if (attempt_send(attempt, lease) == IW_OK)
        return;
    const char *reason = attempt->context.reason != NULL ? attempt->context.reason : "not_sent";
    log_failure(&attempt->context, "delivery_not_sent");
    context_clear(&attempt->context);
    enum iw_error error = deliveries_postpone(&db, delivery, reason, clock_now_ms() + postpone_ms);
    deliver_database_report(&worker->deliver, &attempt->context, error, "delivery_not_postponed");
    attempt_free(attempt);
}

/* ---- recording ---- */

static void record_log(const struct deliver_attempt *attempt, const struct delivery_verdict *verdict,
                       const char *inactive_reason)
{
    static const struct {
        enum log_level level;
        int result;
        const char *name;
    } events[DELIVERY_EVENT_COUNT] = {
        [DELIVERY_EVENT_SUCCEED] = {LOG_INFO, METRIC_DELIVERED, "delivered"},
        [DELIVERY_EVENT_RETRY] = {LOG_WARN, METRIC_DELIVERY_RETRIED, "delivery_retried"},
        [DELIVERY_EVENT_FAIL] = {LOG_WARN, METRIC_DELIVERY_FAILED, "delivery_failed"}};
    metrics_add(attempt->worker->metrics, METRIC_DELIVERIES, (unsigned)events[verdict->event].result, 0, 1);
    log_event(events[verdict->event].level, &attempt->context, events[verdict->event].name,
              LOG_NUMBER("webhook_id", attempt->webhook_id),
              LOG_NUMBER("event_id", attempt->delivery.event_id),
              LOG_NUMBER("status", attempt->answer.status), LOG_TEXT("reason", attempt->reason),
              LOG_NUMBER("failures", verdict->failures), LOG_NUMBER("wait_ms", verdict->wait_ms),
              LOG_NUMBER("ms", clock_monotonic_ms() - attempt->begun_ms));
    if (inactive_reason != NULL)
        log_event(LOG_WARN, &attempt->context, "webhook_deactivated",
                  LOG_NUMBER("webhook_id", attempt->webhook_id), LOG_TEXT("reason", inactive_reason));
}

/* Mails to the owners of the account whose webhook was deactivated.  A mail that is not queued is only
 * logged. */
static void owners_notify(struct deliver_attempt *attempt, const char *reason)
{
    struct worker *worker = attempt->worker;
    const struct domain domain = {.context = &attempt->context,
                                  .config = &worker->config,
                                  .db = attempt_store(attempt),
                                  .secret_box = &worker->deliver.secret_box};
    if (webhook_deactivated_mail(&domain, attempt->context.account_id, attempt->webhook_id, reason) != IW_OK)
        log_failure(&attempt->context, "mail_not_queued");
    context_clear(&attempt->context);
}

/* Frees the attempt, unless the database is away and the lease still holds. */
static void attempt_record(struct deliver_attempt *attempt, int64_t now_ms)
{
    struct worker *worker = attempt->worker;
    const struct db db = attempt_store(attempt);
    const char *inactive_reason;
    const struct delivery_verdict verdict =
        delivery_judge(&attempt->answer, attempt->delivery.failures, crypto_random_u64());
    const struct deliveries_attempt record = {
        .webhook_id = attempt->webhook_id,
        .delivery = &attempt->delivery,
        .verdict = &verdict,
        .status = attempt->answer.is_answered ? attempt->answer.status : 0,
        .reason = attempt->reason,
        .now_ms = clock_now_ms(),
    };
    enum iw_error error = deliveries_record(&db, &record, &inactive_reason);
    if (error == IW_SERVICE_UNAVAILABLE && now_ms < attempt->give_up_at_ms) {
        deliver_database_report(&worker->deliver, &attempt->context, error, "delivery_not_recorded");
        attempt->record_at_ms = now_ms + record_retry_ms;
        return;
    }
    if (error == IW_OK)
        record_log(attempt, &verdict, inactive_reason);
    if (error == IW_OK && inactive_reason != NULL)
        owners_notify(attempt, inactive_reason);
    if (error != IW_OK)
        log_failure(&attempt->context, "delivery_not_recorded");
    deliver_wake(worker);
    attempt_free(attempt);
}

/* ---- errands ---- */

/* Deliveries in progress that count against a receiver. */
struct rivals {
    unsigned account; /* of its account */
    unsigned server;  /* to its server */
    unsigned both;    /* of its account to its server */
    unsigned failing; /* to receivers that failed, and slow ones */
    bool is_slow;     /* one of its account to its server is slow */
};

static struct rivals rivals_count(const struct worker *worker, const struct deliveries_receiver *receiver)
{
    struct rivals rivals = {.account = 0};
    char server[fetch_server_size];
    int64_t now_ms = clock_monotonic_ms();
    fetch_server(receiver->url, server);
    for (const struct deliver_attempt *attempt = worker->deliver.attempts; attempt != NULL;
         attempt = attempt->next) {
        bool is_slow = !attempt->is_answered && now_ms - attempt->begun_ms > slow_ms;
        bool is_account = attempt->context.account_id == receiver->account_id;
        bool is_server = strcmp(attempt->server, server) == 0;
        rivals.account += is_account;
        rivals.server += is_server;
        rivals.both += is_account && is_server;
        rivals.failing += attempt->is_failing || is_slow;
        rivals.is_slow |= is_slow && is_account && is_server;
    }
    return rivals;
}

/*
 * Places for one more that has taken some: it may hold as many as stay free. A single one gets half, two
 * get a third each, and a new one always finds room. Source: the dynamic threshold of shared buffers
 * (Choudhury and Hahne, 1998), with the factor 1.
 */
static unsigned share_of(unsigned room, unsigned taken)
{
    return room > taken ? (room - taken + 1) / 2 : 0;
}

/*
 * How many deliveries more may start to a receiver like this one. Accounts share all places, and the
 * places of each server. All slow and failing receivers together count as one.
 */
static unsigned room_for(const struct worker *worker, const struct deliveries_receiver *receiver)
{
    const struct deliver *deliver = &worker->deliver;
    const struct rivals rivals = rivals_count(worker, receiver);
    unsigned server_most = (unsigned)worker->config.outgoing_server_requests;
    unsigned room =
        sender_room(&deliver->sender, deliver->count, (unsigned)worker->config.webhooks_deliveries_max);
    unsigned left = server_most > rivals.server ? server_most - rivals.server : 0;
    unsigned taken = rivals.account;
    if ((receiver->is_failing || rivals.is_slow) && rivals.failing > taken)
        taken = rivals.failing;
    unsigned shared = share_of(room, taken), shared_server = share_of(left, rivals.both);
    return shared < shared_server ? shared : shared_server;
}

static enum iw_error receiver_lease(struct worker *worker, const struct db *db,
                                    const struct deliveries_receiver *receiver)
{
    struct deliveries_lease lease;
    const struct deliveries_request request = {
        .webhook_id = receiver->webhook_id,
        .owner = worker->owner,
        .lease_s = worker->config.webhooks_timeout_s + lease_margin_s,
        .now_ms = clock_now_ms(),
        .most = room_for(worker, receiver),
    };
    if (request.most == 0)
        return IW_OK;
    enum iw_error error = deliveries_lease(db, &request, &lease);
    for (unsigned i = 0; error == IW_OK && i < lease.count; i++)
        attempt_begin(worker, &lease, &lease.deliveries[i], receiver->is_failing);
    return error;
}

static enum iw_error errand_look(struct worker *worker, const struct db *db)
{
    struct deliveries_receiver *receivers;
    unsigned count, most = (unsigned)worker->config.webhooks_deliveries_max;
    enum iw_error error = deliveries_due(db, clock_now_ms(), (most + 1) / 2, 2 * most, &receivers, &count);
    for (unsigned i = 0; error == IW_OK && i < count; i++)
        error = receiver_lease(worker, db, &receivers[i]);
    return error;
}

/* Releases the leases of dead workers of this machine, and silent ones of any machine. */
static enum iw_error errand_sweep(struct worker *worker, const struct db *db)
{
    struct query_texts owners = {.count = 0};
    int64_t released = 0, silent = 0;
    enum iw_error error = leases_owners(db, LEASES_DELIVERIES, worker->machine, &owners);
    for (unsigned i = 0; error == IW_OK && i < owners.count; i++) {
        int64_t number = 0;
        if (owner_is_dead(owners.items[i]))
            error = leases_release_owner(db, LEASES_DELIVERIES, owners.items[i], &number);
        released += number;
    }
    if (error == IW_OK)
        error = leases_release_silent(db, LEASES_DELIVERIES, &silent);
    if (released + silent > 0)
        log_event(LOG_WARN, NULL, "deliveries_taken_back", LOG_TEXT("reason", "lease_lost"),
                  LOG_NUMBER("deliveries", released + silent));
    return error;
}

/* Deletes old rows, and makes deliveries due that are too far ahead since a clock stepped back. */
static enum iw_error errand_forget(struct worker *worker, const struct db *db)
{
    /* Deliveries first: events and webhooks stay while a delivery refers to them. */
    static enum iw_error (*const forgets[])(const struct db *db, int64_t before_ms, int64_t *count) = {
        deliveries_forget, events_forget, webhooks_forget};
    int64_t count = 0, hastened = 0;
    int64_t kept_ms = worker->config.webhooks_events_kept_days * 86400 * 1000;
    enum iw_error error = leases_hasten_stranded(db, LEASES_DELIVERIES, clock_now_ms(), &hastened);
    if (hastened > 0)
        log_event(LOG_WARN, NULL, "deliveries_hastened", LOG_TEXT("reason", "clock_set_back"),
                  LOG_NUMBER("deliveries", hastened));
    for (size_t i = 0; error == IW_OK && i < sizeof forgets / sizeof forgets[0]; i++) {
        int64_t rows = 0;
        error = forgets[i](db, clock_now_ms() - kept_ms, &rows);
        count += rows;
    }
    if (count > 0)
        log_event(LOG_INFO, NULL, "deliveries_forgotten", LOG_NUMBER("rows", count));
    return error;
}

static const struct {
    enum iw_error (*run)(struct worker *worker, const struct db *db);
    const char *failure;
    int64_t pause_ms;
} errands[DELIVER_ERRAND_COUNT] = {
    [DELIVER_SWEEP] = {errand_sweep, "delivery_sweep_failed", sweep_pause_ms},
    [DELIVER_LOOK] = {errand_look, "delivery_look_failed", look_pause_ms},
    [DELIVER_FORGET] = {errand_forget, "delivery_forget_failed", forget_pause_ms},
};

/* When an errand is due (monotonic); a look needs room. */
static int64_t errand_due_ms(const struct worker *worker, enum deliver_errand errand)
{
    const struct deliver *deliver = &worker->deliver;
    unsigned most = (unsigned)worker->config.webhooks_deliveries_max;
    if (worker->flags.stop_at_ms != 0 || worker->flags.is_keyring_unchecked)
        return INT64_MAX;
    if (errand == DELIVER_LOOK && sender_room(&deliver->sender, deliver->count, most) == 0)
        return INT64_MAX;
    return deliver->errand_at_ms[errand];
}

/* ---- open, close, reload ---- */

static enum iw_error keys_open(struct deliver *deliver, struct context *context, const struct config *config)
{
    enum iw_error error = secret_box_read(context, config->webhooks_secret_key_file, &deliver->secret_box);
    if (error == IW_OK)
        error = presign_new(context, config, &deliver->presign);
    return error == IW_OK ? sender_open(&deliver->sender, context, config) : error;
}

static void keys_close(struct deliver *deliver)
{
    sender_close(&deliver->sender);
    presign_free(deliver->presign);
    crypto_wipe(&deliver->secret_box, sizeof deliver->secret_box);
}

enum iw_error deliver_open(struct worker *worker, struct context *context)
{
    worker->deliver.arena = arena_new(errand_arena_bytes);
    return keys_open(&worker->deliver, context, &worker->config);
}

void deliver_close(struct worker *worker)
{
    struct deliver *deliver = &worker->deliver;
    keys_close(deliver);
    while (deliver->attempts != NULL)
        attempt_free(deliver->attempts);
    arena_free(deliver->arena);
}

enum iw_error deliver_check(struct context *context, const struct config *config)
{
    struct deliver deliver = {.count = 0};
    enum iw_error error = keys_open(&deliver, context, config);
    keys_close(&deliver);
    return error;
}

enum iw_error deliver_reload(struct worker *worker, struct context *context)
{
    struct presign *presign;
    enum iw_error error = presign_new(context, &worker->config, &presign);
    if (error != IW_OK)
        return error;
    presign_free(worker->deliver.presign);
    worker->deliver.presign = presign;
    sender_reload(&worker->deliver.sender);
    deliver_wake(worker);
    return IW_OK;
}

void deliver_wake(struct worker *worker)
{
    worker->deliver.errand_at_ms[DELIVER_LOOK] = 0;
}

/* ---- for the loop ---- */

unsigned deliver_poll(struct worker *worker, struct pollfd *polls, unsigned room)
{
    return sender_poll(&worker->deliver.sender, polls, room);
}

void deliver_take(struct worker *worker, const struct pollfd *polls, unsigned count)
{
    sender_step(&worker->deliver.sender, &worker->context, polls, count);
}

int64_t deliver_socket_next_ms(const struct worker *worker)
{
    return sender_next_ms(&worker->deliver.sender);
}

int64_t deliver_next_ms(const struct worker *worker)
{
    int64_t next_ms = INT64_MAX;
    for (int errand = 0; errand < DELIVER_ERRAND_COUNT; errand++) {
        int64_t at_ms = errand_due_ms(worker, (enum deliver_errand)errand);
        next_ms = at_ms < next_ms ? at_ms : next_ms;
    }
    const struct deliver_attempt *attempt = worker->deliver.attempts;
    for (; attempt != NULL; attempt = attempt->next)
        if (attempt->is_answered && attempt->record_at_ms < next_ms)
            next_ms = attempt->record_at_ms;
    return next_ms;
}

/* An errand that the database refuses waits for its next time. */
void deliver_step(struct worker *worker, int64_t now_ms)
{
    struct deliver *deliver = &worker->deliver;
    const struct db db = {&deliver->context, worker->domain.db.connection};
    for (struct deliver_attempt *attempt = deliver->attempts; attempt != NULL; attempt = attempt->next)
        if (attempt->is_answered && now_ms >= attempt->record_at_ms) {
            attempt_record(attempt, now_ms);
            return;
        }
    for (int errand = 0; errand < DELIVER_ERRAND_COUNT; errand++)
        if (errand_due_ms(worker, (enum deliver_errand)errand) <= now_ms) {
            deliver->errand_at_ms[errand] = now_ms + errands[errand].pause_ms;
            arena_reset(deliver->arena);
            context_init(&deliver->context, deliver->arena, NULL);
            deliver_database_report(deliver, &deliver->context, errands[errand].run(worker, &db),
                                    errands[errand].failure);
            return;
        }
}
