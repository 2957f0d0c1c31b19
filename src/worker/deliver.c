#include "worker/deliver.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "base/redact.h"
#include "base/text.h"
#include "db/deliveries.h"
#include "db/events.h"
#include "db/leases.h"
#include "db/webhooks.h"
#include "domain/webhooks/webhook.h"
#include "service/files/presign.h"
#include "worker/owner.h"
#include "worker/payload.h"
#include "worker/shared.h"

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

/* A delivery between lease and record. */
struct deliver_attempt {
    struct deliver *deliver;
    struct deliver_attempt *next;
    struct arena *arena;
    struct context context;
    int64_t webhook_id;
    char server[fetch_server_size];
    bool is_failing; /* the previous attempt at the receiver failed */
    struct delivery delivery;
    int64_t begun_ms; /* monotonic */
    struct payload payload;

    bool is_answered;      /* the fields below are valid */
    int64_t record_at_ms;  /* monotonic */
    int64_t give_up_at_ms; /* monotonic: end of the lease; then another worker may hold it */
    struct delivery_answer answer;
    const char *reason; /* constant */
    const char *body;   /* the start of the answer, without secrets */
};

/* As shared_database_report, for deliveries; the worker's own report logs that the database is back. */
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

static struct db attempt_db(struct deliver_attempt *attempt)
{
    return (struct db){&attempt->context, attempt->deliver->shared->domain.db.connection};
}

/* ---- one attempt ---- */

static struct deliver_attempt *attempt_new(struct deliver *deliver, const struct deliveries_lease *lease,
                                           const struct delivery *delivery, bool is_failing)
{
    struct deliver_attempt *attempt = calloc(1, sizeof *attempt);
    if (attempt == NULL)
        abort();
    attempt->deliver = deliver;
    attempt->arena = arena_new(attempt_arena_bytes);
    context_init(&attempt->context, attempt->arena, NULL);
    attempt->context.account_id = lease->account_id;
    attempt->webhook_id = lease->webhook_id;
    fetch_server(lease->url, attempt->server);
    attempt->is_failing = is_failing;
    attempt->delivery = *delivery;
    attempt->begun_ms = clock_monotonic_ms();
    attempt->give_up_at_ms =
        attempt->begun_ms + (deliver->shared->domain.config->webhooks_timeout_s + lease_margin_s) * 1000;
    attempt->next = deliver->attempts;
    deliver->attempts = attempt;
    deliver->count++;
    return attempt;
}

static void attempt_free(struct deliver_attempt *attempt)
{
    struct deliver *deliver = attempt->deliver;
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
    attempt->body = redact_answer(attempt->arena, result->answer, result->answer_bytes, fetch_answer_size);
}

static enum iw_error attempt_send(struct deliver_attempt *attempt, const struct deliveries_lease *lease)
{
    struct deliver *deliver = attempt->deliver;
    struct shared *shared = deliver->shared;
    struct payload *payload = &attempt->payload;
    struct domain domain = {.context = &attempt->context,
                            .config = shared->domain.config,
                            .db = attempt_db(attempt),
                            .storage = shared->domain.storage,
                            .presign = deliver->presign,
                            .secret_box = &deliver->secret_box};
    enum iw_error error = payload_build(&domain, lease, attempt->delivery.event_id, payload);
    if (error != IW_OK)
        return error;
    struct fetch_request request = {.method = FETCH_POST,
                                    .url = lease->url,
                                    .source = -1,
                                    .target = -1,
                                    .body = payload->body,
                                    .body_bytes = payload->body_bytes,
                                    .timeout_s = shared->domain.config->webhooks_timeout_s,
                                    .redirects_max = 0,
                                    .done = attempt_done,
                                    .user = attempt};
    memcpy(request.headers, payload->headers, sizeof payload->headers);
    return sender_send(&deliver->sender, &attempt->context, &request);
}

/* If a delivery cannot be sent, it is postponed without using up a retry: the receiver is not at fault. */
static void attempt_begin(struct deliver *deliver, const struct deliveries_lease *lease,
                          const struct delivery *delivery, bool is_failing)
{
    struct deliver_attempt *attempt = attempt_new(deliver, lease, delivery, is_failing);
    const struct db db = attempt_db(attempt);
    if (attempt_send(attempt, lease) == IW_OK)
        return;
    const char *reason = attempt->context.reason != NULL ? attempt->context.reason : "not_sent";
    log_failure(&attempt->context, "delivery_not_sent");
    context_clear(&attempt->context);
    enum iw_error error = deliveries_postpone(&db, delivery, reason, clock_now_ms() + postpone_ms);
    deliver_database_report(deliver, &attempt->context, error, "delivery_not_postponed");
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
    metrics_add(attempt->deliver->shared->metrics, METRIC_DELIVERIES, (unsigned)events[verdict->event].result,
                0, 1);
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

/* Queues mails to the owners of the account whose webhook was deactivated.  A failure is only logged. */
static void owners_notify(struct deliver_attempt *attempt, const char *reason)
{
    struct deliver *deliver = attempt->deliver;
    const struct domain domain = {.context = &attempt->context,
                                  .config = deliver->shared->domain.config,
                                  .db = attempt_db(attempt),
                                  .secret_box = &deliver->secret_box};
    if (webhook_deactivated_mail(&domain, attempt->context.account_id, attempt->webhook_id, reason) != IW_OK)
        log_failure(&attempt->context, "mail_not_queued");
    context_clear(&attempt->context);
}

/* What was sent and answered, for the console; NULL if it is not kept. */
static const struct deliveries_exchange *exchange_of(const struct deliver_attempt *attempt)
{
    struct text headers;
    const struct config *config = attempt->deliver->shared->domain.config;
    if (!config->console_enabled || !config->console_keep_bodies)
        return NULL;
    text_init(&headers, attempt->arena);
    for (unsigned i = 0; i < payload_headers_count && attempt->payload.headers[i] != NULL; i++)
        text_printf(&headers, "%s%s", i == 0 ? "" : "\n", attempt->payload.headers[i]);
    struct deliveries_exchange *exchange = arena_alloc(attempt->arena, sizeof *exchange);
    *exchange = (struct deliveries_exchange){.headers = headers.data,
                                             .payload = redact(attempt->arena, attempt->payload.body,
                                                               attempt->payload.body_bytes, redact_body_max),
                                             .answer = attempt->body};
    return exchange;
}

/*
 * Bodies that cannot be written must not repeat a delivery, so after such a failure the attempt is recorded
 * without them.
 */
static enum iw_error attempt_write(struct deliver_attempt *attempt, struct deliveries_attempt *record,
                                   const char **inactive_reason)
{
    const struct db db = attempt_db(attempt);
    enum iw_error error = deliveries_record(&db, record, inactive_reason);
    if (error != IW_SERVER_INTERNAL_ERROR || record->exchange == NULL)
        return error;
    log_failure(&attempt->context, "delivery_bodies_not_kept");
    context_clear(&attempt->context);
    record->exchange = NULL;
    return deliveries_record(&db, record, inactive_reason);
}

/* Frees the attempt.  If the database is away, keeps it until the lease ends. */
static void attempt_record(struct deliver_attempt *attempt, int64_t now_ms)
{
    struct deliver *deliver = attempt->deliver;
    const char *inactive_reason;
    const struct delivery_verdict verdict =
        delivery_judge(&attempt->answer, attempt->delivery.failures, crypto_random_u64());
    struct deliveries_attempt record = {
        .webhook_id = attempt->webhook_id,
        .delivery = &attempt->delivery,
        .verdict = &verdict,
        .status = attempt->answer.is_answered ? attempt->answer.status : 0,
        .reason = attempt->reason,
        .now_ms = clock_now_ms(),
        .exchange = exchange_of(attempt),
    };
    enum iw_error error = attempt_write(attempt, &record, &inactive_reason);
    if (error == IW_SERVICE_UNAVAILABLE && now_ms < attempt->give_up_at_ms) {
        deliver_database_report(deliver, &attempt->context, error, "delivery_not_recorded");
        attempt->record_at_ms = now_ms + record_retry_ms;
        return;
    }
    if (error == IW_OK)
        record_log(attempt, &verdict, inactive_reason);
    if (error == IW_OK && inactive_reason != NULL)
        owners_notify(attempt, inactive_reason);
    if (error != IW_OK)
        log_failure(&attempt->context, "delivery_not_recorded");
    deliver->shared->is_delivery_wanted = true;
    attempt_free(attempt);
}

/* ---- errands ---- */

/* Deliveries in progress that count against a receiver. */
struct rivals {
    unsigned account; /* of the receiver's account */
    unsigned server;  /* to the receiver's server */
    unsigned both;    /* of that account to that server */
    unsigned failing; /* to receivers that failed, and slow deliveries */
    bool is_slow;     /* a delivery of that account to that server is slow */
};

static struct rivals rivals_count(const struct deliver *deliver, const struct deliveries_receiver *receiver)
{
    struct rivals rivals = {.account = 0};
    char server[fetch_server_size];
    int64_t now_ms = clock_monotonic_ms();
    fetch_server(receiver->url, server);
    for (const struct deliver_attempt *attempt = deliver->attempts; attempt != NULL;
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
 * Returns how many more places an account may take: it may hold as many as stay free.  So a single account
 * gets half of the room, two get a third each, and a new account always finds room.  Source: the dynamic
 * threshold of shared buffers (Choudhury and Hahne, 1998), with the factor 1.
 */
static unsigned share_of(unsigned room, unsigned taken)
{
    return room > taken ? (room - taken + 1) / 2 : 0;
}

/*
 * Returns how many more deliveries to the receiver may start.  Accounts share all places, and the places of
 * each server.  All slow and failing receivers together count as one account.
 */
static unsigned room_for(const struct deliver *deliver, const struct deliveries_receiver *receiver)
{
    const struct rivals rivals = rivals_count(deliver, receiver);
    unsigned server_most = (unsigned)deliver->shared->domain.config->outgoing_server_requests;
    unsigned room = sender_room(&deliver->sender, deliver->count,
                                (unsigned)deliver->shared->domain.config->webhooks_deliveries_max);
    unsigned left = server_most > rivals.server ? server_most - rivals.server : 0;
    unsigned taken = rivals.account;
    if ((receiver->is_failing || rivals.is_slow) && rivals.failing > taken)
        taken = rivals.failing;
    unsigned shared = share_of(room, taken), shared_server = share_of(left, rivals.both);
    return shared < shared_server ? shared : shared_server;
}

static enum iw_error receiver_lease(struct deliver *deliver, const struct db *db,
                                    const struct deliveries_receiver *receiver)
{
    struct shared *shared = deliver->shared;
    struct deliveries_lease lease;
    const struct deliveries_request request = {
        .webhook_id = receiver->webhook_id,
        .owner = shared->owner,
        .lease_s = shared->domain.config->webhooks_timeout_s + lease_margin_s,
        .now_ms = clock_now_ms(),
        .most = room_for(deliver, receiver),
    };
    if (request.most == 0)
        return IW_OK;
    enum iw_error error = deliveries_lease(db, &request, &lease);
    for (unsigned i = 0; error == IW_OK && i < lease.count; i++)
        attempt_begin(deliver, &lease, &lease.deliveries[i], receiver->is_failing);
    return error;
}

static enum iw_error errand_look(struct deliver *deliver, const struct db *db)
{
    struct deliveries_receiver *receivers;
    unsigned count, most = (unsigned)deliver->shared->domain.config->webhooks_deliveries_max;
    enum iw_error error = deliveries_due(db, clock_now_ms(), (most + 1) / 2, 2 * most, &receivers, &count);
    for (unsigned i = 0; error == IW_OK && i < count; i++)
        error = receiver_lease(deliver, db, &receivers[i]);
    return error;
}

static enum iw_error errand_sweep(struct deliver *deliver, const struct db *db)
{
    int64_t released = 0;
    enum iw_error error = owner_leases_release(db, LEASES_DELIVERIES, deliver->shared->machine, &released);
    if (released > 0)
        log_event(LOG_WARN, NULL, "deliveries_taken_back", LOG_TEXT("reason", "lease_lost"),
                  LOG_NUMBER("deliveries", released));
    return error;
}

/* Deletes old rows, and makes deliveries due that are too far ahead since a clock stepped back. */
static enum iw_error errand_forget(struct deliver *deliver, const struct db *db)
{
    /* Deliveries first: events and webhooks stay while a delivery refers to them. */
    static enum iw_error (*const forgets[])(const struct db *db, int64_t before_ms, int64_t *count) = {
        deliveries_forget, events_forget, webhooks_forget};
    int64_t count = 0, hastened = 0;
    int64_t kept_ms = deliver->shared->domain.config->webhooks_events_kept_days * 86400 * 1000;
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
    enum iw_error (*run)(struct deliver *deliver, const struct db *db);
    const char *failure;
    int64_t pause_ms;
} errands[DELIVER_ERRAND_COUNT] = {
    [DELIVER_SWEEP] = {errand_sweep, "delivery_sweep_failed", sweep_pause_ms},
    [DELIVER_LOOK] = {errand_look, "delivery_look_failed", look_pause_ms},
    [DELIVER_FORGET] = {errand_forget, "delivery_forget_failed", forget_pause_ms},
};

/* When an errand is due (monotonic); a look needs room. */
static int64_t errand_due_ms(const struct deliver *deliver, enum deliver_errand errand)
{
    struct shared *shared = deliver->shared;
    unsigned most = (unsigned)shared->domain.config->webhooks_deliveries_max;
    if (shared->stop_at_ms != 0 || shared->is_keyring_unchecked)
        return INT64_MAX;
    if (errand == DELIVER_LOOK && sender_room(&deliver->sender, deliver->count, most) == 0)
        return INT64_MAX;
    return errand == DELIVER_LOOK && shared->is_delivery_wanted ? 0 : deliver->errand_at_ms[errand];
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

enum iw_error deliver_open(struct deliver *deliver, struct context *context)
{
    deliver->arena = arena_new(errand_arena_bytes);
    return keys_open(deliver, context, deliver->shared->domain.config);
}

void deliver_close(struct deliver *deliver)
{
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

enum iw_error deliver_reload(struct deliver *deliver, struct context *context)
{
    struct shared *shared = deliver->shared;
    struct presign *presign;
    enum iw_error error = presign_new(context, shared->domain.config, &presign);
    if (error != IW_OK)
        return error;
    presign_free(deliver->presign);
    deliver->presign = presign;
    sender_reload(&deliver->sender);
    shared->is_delivery_wanted = true;
    return IW_OK;
}

/* ---- for the loop ---- */

static unsigned deliver_poll(void *part, struct pollfd *polls, unsigned room)
{
    return sender_poll(&((struct deliver *)part)->sender, polls, room);
}

static void deliver_take(void *part, const struct pollfd *polls, unsigned count)
{
    struct deliver *deliver = part;
    sender_step(&deliver->sender, deliver->shared->domain.context, polls, count);
}

static int64_t deliver_socket_next_ms(const void *part)
{
    return sender_next_ms(&((const struct deliver *)part)->sender);
}

static int64_t deliver_next_ms(const void *part)
{
    const struct deliver *deliver = part;
    int64_t next_ms = INT64_MAX;
    for (int errand = 0; errand < DELIVER_ERRAND_COUNT; errand++) {
        int64_t at_ms = errand_due_ms(deliver, (enum deliver_errand)errand);
        next_ms = at_ms < next_ms ? at_ms : next_ms;
    }
    const struct deliver_attempt *attempt = deliver->attempts;
    for (; attempt != NULL; attempt = attempt->next)
        if (attempt->is_answered && attempt->record_at_ms < next_ms)
            next_ms = attempt->record_at_ms;
    return next_ms;
}

/* If the database refuses an errand, the errand waits until it is due again. */
static void deliver_step(void *part, int64_t now_ms)
{
    struct deliver *deliver = part;
    struct shared *shared = deliver->shared;
    const struct db db = {&deliver->context, shared->domain.db.connection};
    for (struct deliver_attempt *attempt = deliver->attempts; attempt != NULL; attempt = attempt->next)
        if (attempt->is_answered && now_ms >= attempt->record_at_ms) {
            attempt_record(attempt, now_ms);
            return;
        }
    for (int errand = 0; errand < DELIVER_ERRAND_COUNT; errand++)
        if (errand_due_ms(deliver, (enum deliver_errand)errand) <= now_ms) {
            deliver->errand_at_ms[errand] = now_ms + errands[errand].pause_ms;
            if (errand == DELIVER_LOOK)
                shared->is_delivery_wanted = false;
            arena_reset(deliver->arena);
            context_init(&deliver->context, deliver->arena, NULL);
            deliver_database_report(deliver, &deliver->context, errands[errand].run(deliver, &db),
                                    errands[errand].failure);
            return;
        }
}

const struct loop_source deliver_source = {
    .poll = deliver_poll, .take = deliver_take, .next_ms = deliver_socket_next_ms};
const struct loop_timer deliver_timer = {deliver_next_ms, deliver_step};
