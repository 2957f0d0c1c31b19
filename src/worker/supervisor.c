#include "worker/supervisor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/process.h"
#include "db/db.h"
#include "db/workers.h"
#include "domain/keyring.h"
#include "worker/archive.h"
#include "worker/cleanup.h"
#include "worker/deliver.h"
#include "worker/heartbeat.h"
#include "worker/image_process.h"
#include "worker/lease.h"
#include "worker/loop.h"
#include "worker/mailer.h"
#include "worker/periodic.h"
#include "worker/picture.h"
#include "worker/shared.h"
#include "worker/task.h"
#include "worker/transfer.h"
#include "worker/work.h"

enum {
    store_retry_ms = 2000,
    turn_arena_bytes = 256 * 1024 * 1024,
    processes_max = 256,
    /* A socket for each image process, a pipe for each of its two tasks, signals, wake-ups, two senders. */
    polls_max = 3 * processes_max + 2 + 2 * sender_descriptors_max
};

/* The whole worker: only this file knows it. */
struct worker {
    const char *config_file;
    struct config start;        /* as at the start */
    struct config config;       /* in use */
    struct arena *config_arena; /* of config */
    struct arena *arena;        /* of one turn of the loop */
    struct context context;     /* on arena */
    struct keyring keyring;     /* of the keys in use */
    struct shared shared;
    struct task_pool pools[JOB_CLASS_COUNT];

    struct image_processes processes;
    struct picture_jobs pictures;
    struct archive_jobs archives;
    struct transfer_jobs transfers;
    struct deliver deliver;
    struct mailer mailer;
    struct cleanup cleanup;
    struct lease_state lease;
    struct work work;
    struct periodic periodic;
    struct heartbeat heartbeat;

    struct loop loop;
    struct pollfd polls[polls_max];
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

/* If the signing keys cannot be read, or do not belong to the database, the old keys stay in use. */
static enum iw_error keys_reload(struct worker *worker)
{
    struct context *context = &worker->context;
    struct keyring fresh = worker->keyring;
    enum iw_error error = keyring_load(context, &worker->config, KEYRING_SIGNING, &fresh);
    if (error == IW_OK)
        error = keyring_check(&worker->shared.domain.db, &worker->config, &fresh);
    if (error == IW_CONFIG_INVALID)
        return error;
    worker->shared.is_keyring_unchecked = worker->shared.is_keyring_unchecked || error != IW_OK;
    context_clear(context);
    error = deliver_reload(&worker->deliver, context);
    if (error == IW_OK)
        worker->keyring = fresh;
    return error;
}

/* If the file is bad, the old configuration stays in use.  Keys that need a restart keep their values. */
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
    sender_reload(&worker->transfers.sender);
    image_process_reload(&worker->processes);
    log_event(LOG_INFO, NULL, "reloaded", LOG_TEXT("file", worker->config_file));
    process_notify("READY=1");
}

/* Running jobs are finished; the others are released (work.c). */
static void worker_stop(struct worker *worker)
{
    unsigned jobs = 0;
    for (const struct task_pool *pool = worker->pools; pool < worker->pools + JOB_CLASS_COUNT; pool++)
        jobs += task_busy_count(pool) - task_count(pool, TASK_LEASED) - task_count(pool, TASK_PREFETCHED);
    worker->shared.stop_at_ms = clock_monotonic_ms() + worker->config.image_timeout_s * 1000;
    process_notify("STOPPING=1");
    log_event(LOG_INFO, NULL, "stopping", LOG_NUMBER("jobs", jobs));
}

static unsigned signals_poll(void *part, struct pollfd *polls, unsigned room)
{
    (void)part;
    if (room > 0)
        polls[0] = (struct pollfd){.fd = process_signal_descriptor(), .events = POLLIN};
    return room > 0;
}

static void signals_take(void *part, const struct pollfd *polls, unsigned count)
{
    struct worker *worker = part;
    (void)polls;
    (void)count;
    process_signal_drain();
    if (process_reload_asked)
        worker_reload(worker);
    if (process_stop_count > 0 && worker->shared.stop_at_ms == 0)
        worker_stop(worker);
}

static const struct loop_source signals_source = {.poll = signals_poll, .take = signals_take};

/* ---- the loop ---- */

/* True if all jobs are finished, at a second TERM, or if finishing takes too long. */
static bool is_over(const struct worker *worker)
{
    if (worker->shared.is_keyring_refused)
        return true;
    if (worker->shared.stop_at_ms == 0)
        return false;
    unsigned busy = worker->deliver.count;
    for (const struct task_pool *pool = worker->pools; pool < worker->pools + JOB_CLASS_COUNT; pool++)
        busy += task_busy_count(pool);
    return process_stop_count > 1 || busy == 0 || clock_monotonic_ms() >= worker->shared.stop_at_ms;
}

/*
 * A turn takes all events, starts all jobs that have a place, and does one slow step.
 * So an image process gets another picture before the previous result is recorded.
 */
static void worker_serve(struct worker *worker)
{
    while (!is_over(worker)) {
        arena_reset(worker->arena);
        context_init(&worker->context, worker->arena, NULL);
        loop_wait(&worker->loop);
        work_begin(&worker->work);
        loop_step(&worker->loop);
    }
    while (process_stop_count < 2 && cleanup_timer.next_ms(&worker->cleanup) != INT64_MAX)
        cleanup_timer.step(&worker->cleanup, clock_monotonic_ms());
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

/* Gives each part what it needs. */
static void parts_wire(struct worker *worker)
{
    struct shared *shared = &worker->shared;
    struct image_processes *processes = &worker->processes;
    struct task_pool *pools = worker->pools, *pictures = &pools[JOB_CLASS_IMAGE];
    const struct work_kind picture = {&picture_kind, &worker->pictures};
    *shared = (struct shared){.domain = {.context = &worker->context, .config = &worker->config},
                              .start = &worker->start};
    *processes = (struct image_processes){.shared = shared, .keyring = &worker->keyring};
    worker->pictures = (struct picture_jobs){.shared = shared, .processes = processes};
    worker->archives = (struct archive_jobs){.shared = shared, .pool = pictures};
    worker->transfers = (struct transfer_jobs){.shared = shared, .pool = &pools[JOB_CLASS_TRANSFER]};
    worker->deliver = (struct deliver){.shared = shared};
    worker->mailer = (struct mailer){.shared = shared, .secret_box = &worker->deliver.secret_box};
    worker->cleanup = (struct cleanup){.shared = shared, .pictures = pictures};
    worker->lease = (struct lease_state){
        .shared = shared, .pools = pools, .processes = processes, .transfers = &worker->transfers.sender};
    worker->work = (struct work){.shared = shared,
                                 .pools = pools,
                                 .kinds = {[JOB_PROTECT] = picture,
                                           [JOB_EMBED] = picture,
                                           [JOB_EXTRACT] = picture,
                                           [JOB_ARCHIVE] = {&archive_kind, &worker->archives},
                                           [JOB_FETCH] = {&transfer_fetch_kind, &worker->transfers},
                                           [JOB_PUSH] = {&transfer_push_kind, &worker->transfers}},
                                 .lease = &worker->lease,
                                 .record = {.shared = shared, .cleanup = &worker->cleanup}};
    worker->periodic =
        (struct periodic){.shared = shared, .keyring = &worker->keyring, .mailer = &worker->mailer};
    worker->heartbeat = (struct heartbeat){.shared = shared, .pools = pools, .processes = processes};
}

/* The sources and timers of the loop, in the order of their turns. */
static void loop_wire(struct worker *worker)
{
    worker->loop = (struct loop){.sources = {{&signals_source, worker},
                                             {&image_process_source, &worker->processes},
                                             {&archive_source, &worker->archives},
                                             {&transfer_source, &worker->transfers},
                                             {&lease_source, &worker->lease},
                                             {&deliver_source, &worker->deliver}},
                                 .timers = {{&heartbeat_timer, &worker->heartbeat},
                                            {&image_process_timer, &worker->processes},
                                            {&work_timer, &worker->work},
                                            {&lease_timer, &worker->lease},
                                            {&cleanup_timer, &worker->cleanup},
                                            {&periodic_timer, &worker->periodic},
                                            {&deliver_timer, &worker->deliver}},
                                 .polls = worker->polls,
                                 .polls_max = polls_max};
}

/* An account may fill all places for pictures, but only half of those for transfers: a source may hang. */
static enum iw_error pools_make(struct worker *worker, struct context *context)
{
    unsigned processes = (unsigned)worker->config.worker_processes;
    unsigned transfers = (unsigned)worker->config.worker_transfers;
    enum iw_error error = image_process_open(&worker->processes, context,
                                             processes < processes_max ? processes : processes_max);
    /* Two for each process: while a picture runs, the previous job is recorded or the next one waits. */
    task_pool_make(&worker->pools[JOB_CLASS_IMAGE], JOB_CLASS_IMAGE, 2 * worker->processes.count,
                   2 * processes_max);
    task_pool_make(&worker->pools[JOB_CLASS_TRANSFER], JOB_CLASS_TRANSFER, transfers, transfers / 2);
    /* The child of an archive takes the place of an image process. */
    worker->work.places[JOB_CLASS_IMAGE] = worker->processes.count;
    worker->work.places[JOB_CLASS_TRANSFER] = transfers;
    return error;
}

/* Waits while the file store is read-only, full or broken: the service recovers without an operator. */
static enum iw_error store_wait(struct worker *worker, struct context *context)
{
    for (bool is_first = true;; is_first = false) {
        enum iw_error error = storage_open(context, &worker->start, &worker->shared.domain.storage);
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
    const struct db db = {context, worker->shared.domain.db.connection};
    enum iw_error error = keyring_check(&db, &worker->config, &worker->keyring);
    if (error == IW_CONFIG_INVALID)
        return error;
    worker->shared.is_keyring_unchecked = error != IW_OK;
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
    parts_wire(worker);
    loop_wire(worker);
    /* Before the wait for the file store, which systemd counts as started. */
    error = keyring_open(worker, context);
    if (error == IW_OK)
        error = pools_make(worker, context);
    if (error == IW_OK)
        error = image_process_prove(&worker->processes, context);
    if (error == IW_OK)
        error = store_wait(worker, context);
    if (error != IW_OK)
        return error;
    struct domain *domain = &worker->shared.domain;
    domain->db = (struct db){&worker->context, db_new(&worker->start, database_password)};
    domain->redis = redis_new(&worker->start, redis_password);
    db_statement_limit_s(domain->db.connection, 4 * (unsigned)worker->start.database_timeout_s);
    worker->shared.metrics = metrics_new(NULL, 0);
    owner_self(worker->shared.owner);
    owner_machine(worker->shared.machine);
    lease_open(&worker->lease, redis_new(&worker->start, redis_password));
    periodic_open(&worker->periodic);
    error = deliver_open(&worker->deliver, context);
    if (error == IW_OK)
        error = keyring_compare_all(worker, context);
    if (error == IW_OK)
        error = sender_open(&worker->transfers.sender, context, &worker->config);
    return error == IW_OK ? process_pid_file_write(context, worker->start.worker_pid_file) : error;
}

static void worker_close(struct worker *worker)
{
    sender_close(&worker->transfers.sender);
    image_process_close(&worker->processes);
    work_close(&worker->work);
    deliver_close(&worker->deliver);
    mailer_close(&worker->mailer);
    lease_close(&worker->lease);
    redis_free(worker->shared.domain.redis);
    db_free(worker->shared.domain.db.connection);
    storage_close(worker->shared.domain.storage);
    metrics_free(worker->shared.metrics);
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
              LOG_TEXT("owner", worker.shared.owner));
    process_notify("READY=1");
    fault_point(FAULT_PROCESS_STARTED, "worker");
    worker_serve(&worker);
    process_pid_file_remove(worker.start.worker_pid_file);
    if (workers_forget(&worker.shared.domain.db, worker.shared.owner) != IW_OK)
        context_clear(&worker.context);
    worker_close(&worker);
    log_event(LOG_INFO, NULL, "stopped");
    arena_free(worker.arena);
    if (!worker.shared.is_keyring_refused)
        return EXIT_SUCCESS;
    context_fail(context, IW_CONFIG_INVALID, "The keys do not belong to the database.");
    return EXIT_FAILURE;
}
