#include "worker/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/process.h"
#include "db/db.h"
#include "db/workers.h"
#include "worker/worker.h"

enum {
    turn_longest_ms = 1000,
    store_retry_ms = 2000,
    turn_arena_bytes = 256 * 1024 * 1024,
    processes_max = 256,
    /* A socket for each image process, a pipe for each of its two tasks, signals, wake-ups, two senders. */
    polls_max = 3 * processes_max + 2 + 2 * sender_descriptors_max
};

static void level_apply(const struct config *config)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(config->log_level, names[i]) == 0)
            log_level_set((enum log_level)i);
    clock_offset_set_s(config->test_clock_offset_s);
}

/* ---- signals ---- */

/* Signing keys that do not belong to the database, or cannot be read, keep the old ones. */
static enum iw_error keys_reload(struct worker *worker)
{
    struct context *context = &worker->context;
    struct keyring fresh = worker->keyring;
    enum iw_error error = keyring_load(context, &worker->config, KEYRING_SIGNING, &fresh);
    if (error == IW_OK)
        error = keyring_check(&worker->domain.db, &worker->config, &fresh);
    if (error == IW_CONFIG_INVALID)
        return error;
    worker->flags.is_keyring_unchecked = worker->flags.is_keyring_unchecked || error != IW_OK;
    context_clear(context);
    error = deliver_reload(worker, context);
    if (error == IW_OK)
        worker->keyring = fresh;
    return error;
}

/* A bad file keeps the old configuration; keys that need a restart keep their values. */
static void worker_reload(struct worker *worker)
{
    struct context context;
    struct config fresh;
    struct arena *arena = arena_new(0);
    process_reload_asked = 0;
    context_init(&context, arena, NULL);
    if (config_read_worker(&context, worker->config_file, &fresh) != IW_OK) {
        context.reason = "config_invalid";
        log_failure(&context, "reload_refused");
        arena_free(arena);
        return;
    }
    process_notify("RELOADING=1");
    config_keep_fixed(&fresh, &worker->config, arena);
    arena_free(worker->config_arena);
    worker->config_arena = arena;
    worker->config = fresh;
    level_apply(&worker->config);
    if (keys_reload(worker) != IW_OK) {
        log_failure(&worker->context, "reload_refused");
        context_clear(&worker->context);
    }
    sender_reload(&worker->transfers);
    log_event(LOG_INFO, NULL, "reloaded", LOG_TEXT("file", worker->config_file));
    process_notify("READY=1");
}

/* Running jobs are finished; the others are released (work.c). */
static void worker_stop(struct worker *worker)
{
    unsigned jobs = 0;
    for (const struct task_pool *pool = worker->pools; pool < worker->pools + JOB_CLASS_COUNT; pool++)
        jobs += task_busy_count(pool) - task_count(pool, TASK_LEASED) - task_count(pool, TASK_PREFETCHED);
    worker->flags.stop_at_ms = clock_monotonic_ms() + worker->config.image_timeout_s * 1000;
    process_notify("STOPPING=1");
    log_event(LOG_INFO, NULL, "stopping", LOG_NUMBER("jobs", jobs));
}

static unsigned signals_poll(struct worker *worker, struct pollfd *polls, unsigned room)
{
    (void)worker;
    if (room > 0)
        polls[0] = (struct pollfd){.fd = process_signal_descriptor(), .events = POLLIN};
    return room > 0;
}

static void signals_take(struct worker *worker, const struct pollfd *polls, unsigned count)
{
    (void)polls;
    (void)count;
    process_signal_drain();
    if (process_reload_asked)
        worker_reload(worker);
    if (process_stop_count > 0 && worker->flags.stop_at_ms == 0)
        worker_stop(worker);
}

/* ---- the loop ---- */

/* Descriptors to poll.  take is called after every poll, also without an event. */
struct event_source {
    unsigned (*poll)(struct worker *worker, struct pollfd *polls, unsigned room);
    void (*take)(struct worker *worker, const struct pollfd *polls, unsigned count);
    int64_t (*next_ms)(const struct worker *worker); /* take wants to be called then; NULL: never */
};

static const struct event_source sources[] = {
    {signals_poll, signals_take, NULL}, {image_process_poll, image_process_take, NULL},
    {archive_poll, archive_take, NULL}, {transfer_poll, transfer_take, transfer_next_ms},
    {lease_poll, lease_take, NULL},     {deliver_poll, deliver_take, deliver_socket_next_ms},
};

/* Work at a time.  One step takes milliseconds at most, or is rare. */
struct timer {
    int64_t (*next_ms)(const struct worker *worker); /* monotonic; INT64_MAX: never */
    void (*step)(struct worker *worker, int64_t now_ms);
};

static const struct timer timers[] = {
    {heartbeat_next_ms, heartbeat_step}, {image_process_next_ms, image_process_step},
    {work_next_ms, work_step},           {lease_next_ms, lease_step},
    {cleanup_next_ms, cleanup_step},     {periodic_next_ms, periodic_step},
    {deliver_next_ms, deliver_step},
};

enum { source_count = sizeof sources / sizeof sources[0], timer_count = sizeof timers / sizeof timers[0] };

/* Runs one due timer, each in its turn. */
static void timer_step(struct worker *worker)
{
    int64_t now_ms = clock_monotonic_ms();
    for (unsigned i = 0; i < timer_count; i++) {
        worker->timer_last = (worker->timer_last + 1) % timer_count;
        const struct timer *timer = &timers[worker->timer_last];
        if (timer->next_ms(worker) <= now_ms) {
            timer->step(worker, now_ms);
            return;
        }
    }
}

/* Milliseconds until the next timer or source is due. */
static int wait_ms(const struct worker *worker)
{
    int64_t now_ms = clock_monotonic_ms(), next_ms = now_ms + turn_longest_ms;
    for (unsigned i = 0; i < timer_count + source_count; i++) {
        int64_t (*next)(const struct worker *) =
            i < timer_count ? timers[i].next_ms : sources[i - timer_count].next_ms;
        int64_t at_ms = next != NULL ? next(worker) : INT64_MAX;
        next_ms = at_ms < next_ms ? at_ms : next_ms;
    }
    return next_ms > now_ms ? (int)(next_ms - now_ms) : 0;
}

/* Waits for an event until the next timer, and gives each source its events. */
static void events_take(struct worker *worker)
{
    struct pollfd polls[polls_max];
    unsigned firsts[source_count + 1] = {0};
    for (unsigned i = 0; i < source_count; i++)
        firsts[i + 1] = firsts[i] + sources[i].poll(worker, polls + firsts[i], polls_max - firsts[i]);
    if (poll(polls, firsts[source_count], wait_ms(worker)) < 0)
        return;
    for (unsigned i = 0; i < source_count; i++)
        sources[i].take(worker, polls + firsts[i], firsts[i + 1] - firsts[i]);
}

/* True when all jobs are finished, at a second TERM, or when finishing takes too long. */
static bool is_over(const struct worker *worker)
{
    if (worker->flags.is_keyring_refused)
        return true;
    if (worker->flags.stop_at_ms == 0)
        return false;
    unsigned busy = worker->deliver.count;
    for (const struct task_pool *pool = worker->pools; pool < worker->pools + JOB_CLASS_COUNT; pool++)
        busy += task_busy_count(pool);
    return process_stop_count > 1 || busy == 0 || clock_monotonic_ms() >= worker->flags.stop_at_ms;
}

/*
 * A turn takes all events, starts all jobs that have a place, and does one slow step.
 * So an image process gets its next picture before the result of its last one is recorded.
 */
static void worker_serve(struct worker *worker)
{
    while (!is_over(worker)) {
        arena_reset(worker->arena);
        context_init(&worker->context, worker->arena, NULL);
        events_take(worker);
        work_begin(worker);
        timer_step(worker);
    }
    while (process_stop_count < 2 && cleanup_next_ms(worker) != INT64_MAX)
        cleanup_step(worker, clock_monotonic_ms());
}

/* ---- start and stop ---- */

static enum iw_error secrets_read(struct context *context, const struct config *config,
                                  const char **database_password, const char **redis_password)
{
    enum iw_error error = config_secret(context, config->database_password_file, database_password);
    return error == IW_OK ? config_secret(context, config->redis_password_file, redis_password) : error;
}

/* Without these files every job would fail. */
static enum iw_error programs_check(struct context *context, const struct config *config)
{
    if (access(config->worker_image_program, X_OK) != 0)
        return context_fail(context, IW_CONFIG_INVALID, "worker.image_program: %s cannot be run: %s.",
                            config->worker_image_program, strerror(errno));
    if (access(config->image_weights_file, R_OK) != 0)
        return context_fail(context, IW_CONFIG_INVALID, "image.weights_file: %s cannot be read: %s.",
                            config->image_weights_file, strerror(errno));
    return IW_OK;
}

/* A source may hang until its time limit, so that transfers keep room for other accounts; pictures do not. */
static enum iw_error pools_make(struct worker *worker, struct context *context)
{
    unsigned processes = (unsigned)worker->config.worker_processes;
    unsigned transfers = (unsigned)worker->config.worker_transfers;
    enum iw_error error =
        image_process_open(worker, context, processes < processes_max ? processes : processes_max);
    /* Two for each process: while it has one, the job before is recorded or the next one waits. */
    task_pool_make(&worker->pools[JOB_CLASS_IMAGE], JOB_CLASS_IMAGE, 2 * worker->processes.count,
                   2 * processes_max);
    task_pool_make(&worker->pools[JOB_CLASS_TRANSFER], JOB_CLASS_TRANSFER, transfers, transfers / 2);
    return error;
}

/* Waits while the file store is read-only, full or broken, so that the service recovers without an operator.
 */
static enum iw_error store_wait(struct worker *worker, struct context *context)
{
    for (bool is_first = true;; is_first = false) {
        enum iw_error error = storage_open(context, &worker->start, &worker->storage);
        if (error == IW_OK && !is_first)
            log_event(LOG_INFO, NULL, "store_back");
        if (error != IW_SERVICE_UNAVAILABLE || process_stop_count > 0)
            return error;
        if (is_first)
            log_failure(context, "store_away");
        process_status("Waiting for the file store: %s",
                       context->cause != NULL ? context->cause : context->sentence);
        context_clear(context);
        if (is_first) {
            error = process_pid_file_write(context, worker->start.worker_pid_file);
            if (error != IW_OK)
                return error;
            /* The unit's start timeout must not end the wait. */
            process_notify("READY=1");
        }
        struct pollfd signals = {.fd = process_signal_descriptor(), .events = POLLIN};
        poll(&signals, 1, store_retry_ms);
        process_signal_drain();
    }
}

static enum iw_error keyring_open(struct worker *worker, struct context *context)
{
    enum iw_error error = IW_OK;
    for (unsigned purpose = 0; error == IW_OK && purpose < keyring_purpose_count; purpose++)
        error = keyring_load(context, &worker->config, (enum keyring_purpose)purpose, &worker->keyring);
    if (error == IW_OK && worker->keyring.ids[KEYRING_WATERMARK][0] == '\0')
        log_event(LOG_WARN, NULL, "watermark_key_absent",
                  LOG_TEXT("file", worker->config.image_watermark_key_file));
    return error;
}

static enum iw_error keyring_compare_all(struct worker *worker, struct context *context)
{
    const struct db db = {context, worker->domain.db.connection};
    enum iw_error error = keyring_check(&db, &worker->config, &worker->keyring);
    if (error == IW_CONFIG_INVALID)
        return error;
    worker->flags.is_keyring_unchecked = error != IW_OK;
    context_clear(context);
    return IW_OK;
}

/* Drivers borrow worker->start, which no reload changes. */
static enum iw_error worker_open(struct worker *worker, struct context *context)
{
    const char *database_password, *redis_password;
    enum iw_error error = config_read_worker(context, worker->config_file, &worker->start);
    if (error == IW_OK)
        error = secrets_read(context, &worker->start, &database_password, &redis_password);
    if (error == IW_OK)
        error = programs_check(context, &worker->start);
    if (error != IW_OK)
        return error;
    level_apply(&worker->start);
    process_signals_install();
    worker->config_arena = arena_new(0);
    worker->config = worker->start;
    context_init(&worker->context, worker->arena, NULL);
    /* Before the wait for the file store, which systemd counts as started. */
    error = keyring_open(worker, context);
    if (error == IW_OK)
        error = pools_make(worker, context);
    if (error == IW_OK)
        error = image_process_prove(worker, context);
    if (error == IW_OK)
        error = store_wait(worker, context);
    if (error != IW_OK)
        return error;
    worker->domain = (struct domain){.context = &worker->context,
                                     .config = &worker->config,
                                     .db = {&worker->context, db_new(&worker->start, database_password)},
                                     .redis = redis_new(&worker->start, redis_password)};
    worker->domain.storage = worker->storage;
    db_statement_limit_s(worker->domain.db.connection, 4 * (unsigned)worker->start.database_timeout_s);
    worker->metrics = metrics_new(NULL, 0);
    owner_self(worker->owner);
    owner_machine(worker->machine);
    lease_open(worker, redis_new(&worker->start, redis_password));
    periodic_open(worker);
    error = deliver_open(worker, context);
    if (error == IW_OK)
        error = keyring_compare_all(worker, context);
    if (error == IW_OK)
        error = sender_open(&worker->transfers, context, &worker->config);
    return error == IW_OK ? process_pid_file_write(context, worker->start.worker_pid_file) : error;
}

static void worker_close(struct worker *worker)
{
    sender_close(&worker->transfers);
    image_process_close(worker);
    work_close(worker);
    deliver_close(worker);
    mailer_close(worker);
    lease_close(worker);
    redis_free(worker->domain.redis);
    db_free(worker->domain.db.connection);
    storage_close(worker->storage);
    metrics_free(worker->metrics);
    arena_free(worker->config_arena);
}

enum iw_error supervisor_check(struct context *context, const char *config_file)
{
    struct config config;
    const char *database_password, *redis_password;
    enum iw_error error = config_read_worker(context, config_file, &config);
    if (error == IW_OK)
        error = secrets_read(context, &config, &database_password, &redis_password);
    if (error == IW_OK)
        error = deliver_check(context, &config);
    return error == IW_OK ? programs_check(context, &config) : error;
}

int supervisor_run(struct context *context, const char *config_file)
{
    static struct worker worker;
    worker = (struct worker){.config_file = config_file, .arena = arena_new(turn_arena_bytes)};
    if (worker_open(&worker, context) != IW_OK) {
        arena_free(worker.arena);
        if (process_stop_count == 0)
            return EXIT_FAILURE;
        process_pid_file_remove(worker.start.worker_pid_file);
        return EXIT_SUCCESS;
    }
    log_event(LOG_INFO, NULL, "started", LOG_NUMBER("processes", worker.processes.count),
              LOG_TEXT("owner", worker.owner));
    process_notify("READY=1");
    fault_point(FAULT_PROCESS_STARTED, "worker");
    worker_serve(&worker);
    process_pid_file_remove(worker.start.worker_pid_file);
    if (workers_forget(&worker.domain.db, worker.owner) != IW_OK)
        context_clear(&worker.context);
    worker_close(&worker);
    log_event(LOG_INFO, NULL, "stopped");
    arena_free(worker.arena);
    if (!worker.flags.is_keyring_refused)
        return EXIT_SUCCESS;
    context_fail(context, IW_CONFIG_INVALID, "The keys do not belong to the database.");
    return EXIT_FAILURE;
}
