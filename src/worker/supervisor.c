#include "worker/supervisor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <imgward/fault.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "base/process.h"
#include "domain/upkeep.h"
#include "store/workers.h"
#include "worker/worker.h"

enum {
    turn_longest_ms = 1000,
    database_retry_ms = 1000,
    upkeep_ms = 3000,
    stranded_ms = 10000,
    upkeep_orders = 20,
    reclaim_ms = 60 * 60 * 1000,
    orphans_ms = 10000,
    orphans_pause_ms = 10 * 60 * 1000, /* where a step sees the whole store */
    orphans_keys = 200,                /* a step of some milliseconds */
    unfinished_age_s = 24 * 60 * 60,
    pool_arena_bytes = 256 * 1024 * 1024,
    processes_max = 256
};

static void level_apply(const struct config *config)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(config->log_level, names[i]) == 0)
            log_level_set((enum log_level)i);
    clock_offset_set_s(config->test_clock_offset_s);
}

/* ---- the database: away and back is told once ---- */

static bool database_said(struct worker *worker, enum iw_error error, const char *event)
{
    if (error == IW_OK) {
        if (worker->is_database_away)
            log_event(LOG_INFO, NULL, "database_back");
        worker->is_database_away = false;
        return true;
    }
    if (!worker->is_database_away || error != IW_SERVICE_UNAVAILABLE)
        log_failure(&worker->context, event);
    worker->is_database_away = error == IW_SERVICE_UNAVAILABLE;
    context_clear(&worker->context);
    return false;
}

/* ---- leases ---- */

void worker_look_ask(struct worker *worker)
{
    for (int class = 0; class < JOB_CLASS_COUNT; class ++)
        worker->pools[class].is_look_asked = true;
}

static unsigned tasks_able(const struct pool *pool)
{
    unsigned count = 0;
    for (unsigned i = 0; i < pool->count; i++)
        count += task_is_able(&pool->tasks[i]);
    return count;
}

static unsigned tasks_busy(const struct worker *worker)
{
    unsigned count = 0;
    for (const struct pool *pool = worker->pools; pool < worker->pools + JOB_CLASS_COUNT; pool++)
        for (unsigned i = 0; i < pool->count; i++)
            count += pool->tasks[i].state != TASK_FREE;
    return count;
}

static bool is_any_able(const struct worker *worker)
{
    return tasks_able(&worker->pools[JOB_CLASS_IMAGE]) + tasks_able(&worker->pools[JOB_CLASS_TRANSFER]) > 0;
}

static void job_hand_out(struct worker *worker, struct pool *pool, const struct job *job)
{
    for (unsigned i = 0; i < pool->count; i++)
        if (task_is_able(&pool->tasks[i])) {
            task_begin(worker, &pool->tasks[i], job);
            return;
        }
}

/* Leases as many jobs as can begin at once; what is left is for whoever hears the bell next. */
static void worker_look(struct worker *worker, enum job_class class)
{
    struct job jobs[jobs_lease_max];
    struct pool *pool = &worker->pools[class];
    unsigned able = tasks_able(pool), count = 0;
    int64_t now_ms = clock_monotonic_ms();
    const struct jobs_place place = {.owner = worker->owner,
                                     .class = class,
                                     .lease_s = worker->config.worker_lease_s,
                                     .account_most = pool->account_most,
                                     .cursor = &pool->cursor};
    if (!pool->is_look_asked || able == 0 || now_ms < worker->look_at_ms || worker->stop_at_ms != 0 ||
        worker->is_paused)
        return;
    pool->is_look_asked = false;
    enum iw_error error = jobs_lease(&worker->context, worker->domain.db, &place, able, jobs, &count);
    if (!database_said(worker, error, "lease_failed")) {
        pool->is_look_asked = true;
        worker->look_at_ms = now_ms + database_retry_ms;
        return;
    }
    if (count > 0)
        fault_point(FAULT_WORKER_LEASED);
    for (unsigned i = 0; i < count; i++)
        job_hand_out(worker, pool, &jobs[i]);
    if (count == able || count == jobs_lease_max) {
        pool->is_look_asked = true;
        queue_ring(worker->domain.redis, &worker->start, &worker->context, jobs[count - 1].order_id);
    }
}

/* The row that tells of this worker, and the switch that an operator may have set. */
static void worker_tell(struct worker *worker)
{
    struct context *context = &worker->context;
    struct text text;
    bool is_paused = worker->is_paused;
    char host[256] = "", label[300];
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    snprintf(label, sizeof label, "worker=\"%s:%ld\"", host, (long)getpid());
    text_init(&text, context->arena);
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        if (metrics_scope((enum metric)i) == METRIC_SCOPE_WORKER)
            metrics_print(worker->metrics, (enum metric)i, label, &text);
    const struct worker_row row = {.owner = worker->owner,
                                   .host = host,
                                   .pid = getpid(),
                                   .version = PACKAGE_VERSION,
                                   .places = worker->pools[JOB_CLASS_IMAGE].count,
                                   .busy = tasks_busy(worker),
                                   .metrics = text.data};
    enum iw_error error = workers_note(context, worker->domain.db, &row);
    if (error == IW_OK)
        error = workers_paused(context, worker->domain.db, &is_paused);
    /* An older schema has no such tables: the work goes on. */
    if (error != IW_OK && error != IW_SERVICE_UNAVAILABLE && !worker->is_notice_refused)
        log_failure(context, "worker_not_told");
    worker->is_notice_refused = error != IW_OK && error != IW_SERVICE_UNAVAILABLE;
    context_clear(context);
    if (is_paused != worker->is_paused)
        log_event(LOG_INFO, NULL, is_paused ? "queue_paused" : "queue_resumed");
    worker->is_paused = is_paused;
}

static void worker_heartbeat(struct worker *worker, int64_t now_ms)
{
    int64_t count = 0;
    fault_point(FAULT_WORKER_HEARTBEAT);
    process_notify("WATCHDOG=1");
    worker->heartbeat_at_ms = now_ms + worker->config.worker_heartbeat_s * 1000;
    if (!worker->is_database_away)
        worker_tell(worker);
    if (tasks_busy(worker) == 0)
        return;
    enum iw_error error =
        jobs_renew(&worker->context, worker->domain.db, worker->owner, worker->config.worker_lease_s, &count);
    if (!database_said(worker, error, "heartbeat_failed"))
        worker->heartbeat_at_ms = now_ms + database_retry_ms;
}

/* Takes back what dead supervisors of this machine and silent ones of any had leased. */
static enum iw_error leases_take_back(struct worker *worker, int64_t *taken)
{
    struct context *context = &worker->context;
    struct db *db = worker->domain.db;
    const char **owners;
    unsigned count = 0;
    int64_t jobs = 0;
    enum iw_error error = jobs_owners(context, db, worker->machine, &owners, &count);
    for (unsigned i = 0; error == IW_OK && i < count; i++) {
        if (!owner_is_dead(owners[i]))
            continue;
        error = jobs_release_owner(context, db, owners[i], &jobs);
        *taken += jobs;
    }
    jobs = 0;
    if (error == IW_OK)
        error = jobs_release_silent(context, db, &jobs);
    *taken += jobs;
    return error;
}

static void worker_sweep(struct worker *worker, int64_t now_ms)
{
    int64_t taken = 0;
    worker->sweep_at_ms = now_ms + worker->config.worker_sweep_ms;
    if (!database_said(worker, leases_take_back(worker, &taken), "sweep_failed"))
        return;
    if (taken > 0)
        fault_point(FAULT_WORKER_SWEPT);
    metrics_add(worker->metrics, METRIC_LEASES_LOST, 0, 0, (uint64_t)taken);
    if (taken > 0)
        log_event(LOG_WARN, NULL, "leases_taken_back", LOG_TEXT("reason", "lease_lost"),
                  LOG_NUMBER("jobs", taken));
    worker_look_ask(worker);
}

/* Jobs that a clock set back has put out of reach. */
static void worker_hasten(struct worker *worker, int64_t now_ms)
{
    int64_t count = 0;
    worker->stranded_at_ms = now_ms + stranded_ms;
    enum iw_error error = jobs_hasten_stranded(&worker->context, worker->domain.db, &count);
    if (!database_said(worker, error, "sweep_failed") || count == 0)
        return;
    log_event(LOG_WARN, NULL, "jobs_hastened", LOG_TEXT("reason", "clock_set_back"),
              LOG_NUMBER("jobs", count));
    worker_look_ask(worker);
}

/* ---- what time asks of orders ---- */

static void worker_upkeep(struct worker *worker, int64_t now_ms)
{
    unsigned abandoned = 0, expired = 0;
    worker->upkeep_at_ms = now_ms + upkeep_ms;
    enum iw_error error = upkeep_abandon(&worker->domain, worker->storage, upkeep_orders, &abandoned);
    if (error == IW_OK)
        error = upkeep_expire(&worker->domain, worker->storage, upkeep_orders, &expired);
    database_said(worker, error, "upkeep_failed");
    if (abandoned == upkeep_orders || expired == upkeep_orders)
        worker->upkeep_at_ms = now_ms;
}

static void worker_reclaim(struct worker *worker, int64_t now_ms)
{
    unsigned orders = 0, unfinished = 0;
    worker->reclaim_at_ms = now_ms + reclaim_ms;
    enum iw_error error = upkeep_reclaim(&worker->domain, worker->storage, &orders);
    if (error == IW_OK && workers_forget(&worker->context, worker->domain.db, "") != IW_OK)
        context_clear(&worker->context);
    if (error == IW_OK)
        error = storage_sweep(worker->storage, &worker->context, unfinished_age_s, &unfinished);
    if (!database_said(worker, error, "reclaim_failed"))
        worker->reclaim_at_ms = now_ms + database_retry_ms;
    if (orders + unfinished > 0)
        log_event(LOG_INFO, NULL, "reclaimed", LOG_NUMBER("orders", orders),
                  LOG_NUMBER("unfinished", unfinished));
}

/* A step at a time, round and round. */
static void worker_orphans(struct worker *worker, int64_t now_ms)
{
    unsigned count = 0, from = worker->orphans_part;
    enum iw_error error =
        upkeep_orphans(&worker->domain, worker->storage, &worker->orphans_part, orphans_keys, &count);
    bool is_whole = database_said(worker, error, "reclaim_failed") && from == 0 && worker->orphans_part == 0;
    worker->orphans_at_ms = now_ms + (is_whole ? orphans_pause_ms : orphans_ms);
    if (count > 0)
        log_event(LOG_INFO, NULL, "orphans_deleted", LOG_NUMBER("files", count));
}

/* ---- the loop ---- */

static void timers_run(struct worker *worker)
{
    int64_t now_ms = clock_monotonic_ms();
    if (now_ms >= worker->heartbeat_at_ms)
        worker_heartbeat(worker, now_ms);
    for (struct pool *pool = worker->pools; pool < worker->pools + JOB_CLASS_COUNT; pool++)
        for (unsigned i = 0; i < pool->count; i++)
            task_tick(worker, &pool->tasks[i], now_ms);
    if (worker->stop_at_ms != 0)
        return;
    if (now_ms >= worker->sweep_at_ms)
        worker_sweep(worker, now_ms);
    if (now_ms >= worker->stranded_at_ms && !worker->is_database_away)
        worker_hasten(worker, now_ms);
    if (now_ms >= worker->upkeep_at_ms && !worker->is_database_away)
        worker_upkeep(worker, now_ms);
    if (now_ms >= worker->reclaim_at_ms && !worker->is_database_away)
        worker_reclaim(worker, now_ms);
    if (now_ms >= worker->orphans_at_ms && !worker->is_database_away)
        worker_orphans(worker, now_ms);
}

/* When a place of the pool has something to do, or is to look for it. */
static int64_t pool_next_ms(const struct worker *worker, const struct pool *pool)
{
    int64_t next_ms = INT64_MAX;
    for (unsigned i = 0; i < pool->count; i++)
        next_ms = task_next_ms(&pool->tasks[i]) < next_ms ? task_next_ms(&pool->tasks[i]) : next_ms;
    if (pool->is_look_asked && !worker->is_paused && tasks_able(pool) > 0 && worker->look_at_ms < next_ms)
        next_ms = worker->look_at_ms;
    return next_ms;
}

static int wait_ms(const struct worker *worker)
{
    int64_t now_ms = clock_monotonic_ms(), next_ms = now_ms + turn_longest_ms;
    const int64_t at_ms[] = {worker->heartbeat_at_ms, worker->sweep_at_ms, worker->upkeep_at_ms};
    for (size_t i = 0; i < sizeof at_ms / sizeof at_ms[0]; i++)
        next_ms = at_ms[i] < next_ms ? at_ms[i] : next_ms;
    for (int class = 0; class < JOB_CLASS_COUNT; class ++) {
        int64_t pool_ms = pool_next_ms(worker, &worker->pools[class]);
        next_ms = pool_ms < next_ms ? pool_ms : next_ms;
    }
    int fetch_ms = fetch_wait_ms(worker->fetch);
    if (fetch_ms >= 0 && now_ms + fetch_ms < next_ms)
        next_ms = now_ms + fetch_ms;
    if (deliver_next_ms(worker->deliver) < next_ms)
        next_ms = deliver_next_ms(worker->deliver);
    return next_ms > now_ms ? (int)(next_ms - now_ms) : 0;
}

/* Waits for a signal, the bell, an image process or a child, and takes what they say. */
static void events_take(struct worker *worker, int timeout_ms)
{
    struct pollfd places[processes_max + 2 + deliver_descriptors_max + fetch_descriptors_max];
    struct task *tasks = worker->pools[JOB_CLASS_IMAGE].tasks;
    unsigned count = worker->pools[JOB_CLASS_IMAGE].count;
    for (unsigned i = 0; i < count; i++)
        places[i] = (struct pollfd){.fd = task_descriptor(&tasks[i]), .events = POLLIN};
    places[count] = (struct pollfd){.fd = process_signal_descriptor(), .events = POLLIN};
    places[count + 1] = (struct pollfd){.fd = queue_descriptor(&worker->queue), .events = POLLIN};
    struct pollfd *sockets = places + count + 2;
    unsigned socket_count = deliver_poll(worker->deliver, sockets, deliver_descriptors_max);
    struct pollfd *transfers = sockets + socket_count;
    unsigned transfer_count = fetch_poll(worker->fetch, transfers, fetch_descriptors_max);
    if (poll(places, count + 2 + socket_count + transfer_count, timeout_ms) < 0)
        return;
    process_signal_drain();
    for (unsigned i = 0; i < count; i++)
        if (places[i].revents != 0)
            task_poll(worker, &tasks[i]);
    transfer_step(worker, transfers, transfer_count);
    if (queue_heard(&worker->queue, &worker->context)) {
        worker_look_ask(worker);
        deliver_wake(worker->deliver);
    }
    deliver_step(worker->deliver, sockets, socket_count, worker->stop_at_ms != 0);
}

/* A bad file keeps the old configuration; keys that need a restart wait for one. */
static void worker_reload(struct worker *worker)
{
    struct context context;
    struct config fresh;
    struct arena *arena = arena_new(0);
    process_reload_asked = 0;
    context_init(&context, arena, NULL);
    if (config_read(&context, worker->config_file, &fresh) != IW_OK) {
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
    if (deliver_reload(worker->deliver, &worker->context) != IW_OK) {
        log_failure(&worker->context, "reload_refused");
        context_clear(&worker->context);
    }
    transfer_reload(worker);
    log_event(LOG_INFO, NULL, "reloaded", LOG_TEXT("file", worker->config_file));
    process_notify("READY=1");
}

/* True when the loop is to end: all is finished, or it is asked a second time, or it takes too long. */
static bool is_over(struct worker *worker)
{
    int64_t now_ms = clock_monotonic_ms();
    if (process_stop_count == 0)
        return false;
    if (worker->stop_at_ms == 0) {
        worker->stop_at_ms = now_ms + worker->config.image_timeout_s * 1000;
        process_notify("STOPPING=1");
        log_event(LOG_INFO, NULL, "stopping", LOG_NUMBER("jobs", tasks_busy(worker)));
    }
    unsigned busy = tasks_busy(worker) + deliver_count(worker->deliver);
    return process_stop_count > 1 || busy == 0 || now_ms >= worker->stop_at_ms;
}

static void worker_serve(struct worker *worker)
{
    while (!is_over(worker)) {
        arena_reset(worker->arena);
        context_init(&worker->context, worker->arena, NULL);
        if (process_reload_asked)
            worker_reload(worker);
        timers_run(worker);
        for (int class = 0; class < JOB_CLASS_COUNT; class ++)
            worker_look(worker, (enum job_class) class);
        if (is_any_able(worker) && worker->stop_at_ms == 0)
            queue_listen(&worker->queue, &worker->context);
        events_take(worker, wait_ms(worker));
    }
}

/* ---- begin and end ---- */

static void pool_make(struct worker *worker, enum job_class class, unsigned count, unsigned account_most)
{
    struct pool *pool = &worker->pools[class];
    *pool = (struct pool){.tasks = calloc(count, sizeof *pool->tasks),
                          .count = count,
                          .account_most = account_most,
                          .is_look_asked = true};
    if (pool->tasks == NULL)
        abort();
    for (unsigned i = 0; i < count; i++)
        pool->tasks[i] = (struct task){.worker = worker,
                                       .class = class,
                                       .arena = arena_new(0),
                                       .helper = {.pid = 0, .socket = -1},
                                       .child_pipe = -1,
                                       .result_file = -1,
                                       .thumbnail_file = -1,
                                       .source_file = -1};
}

/* A source may hang for as long as it is given; a picture does not, so that nothing is kept free there. */
static void pools_make(struct worker *worker)
{
    int64_t wanted = worker->config.worker_processes;
    unsigned processes = (unsigned)(wanted > 0 ? wanted : process_core_count());
    unsigned transfers = (unsigned)worker->config.worker_transfers;
    pool_make(worker, JOB_CLASS_IMAGE, processes < processes_max ? processes : processes_max, processes_max);
    pool_make(worker, JOB_CLASS_TRANSFER, transfers, transfers / 2);
}

static enum iw_error secrets_read(struct context *context, const struct config *config,
                                  const char **database_password, const char **redis_password)
{
    enum iw_error error = config_secret(context, config->database_password_file, database_password);
    return error == IW_OK ? config_secret(context, config->redis_password_file, redis_password) : error;
}

/* Without these no picture can be worked on, and every job would fail for a reason that is not its own. */
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

/* What drivers borrow lives in start, which no reload touches. */
static enum iw_error worker_open(struct worker *worker, struct context *context)
{
    const char *database_password, *redis_password;
    enum iw_error error = config_read(context, worker->config_file, &worker->start);
    if (error == IW_OK)
        error = secrets_read(context, &worker->start, &database_password, &redis_password);
    if (error == IW_OK)
        error = programs_check(context, &worker->start);
    if (error == IW_OK)
        error = storage_open(context, worker->start.store_path, &worker->storage);
    if (error != IW_OK)
        return error;
    worker->config_arena = arena_new(0);
    worker->config = worker->start;
    level_apply(&worker->config);
    process_signals_install();
    context_init(&worker->context, worker->arena, NULL);
    worker->domain = (struct domain){.context = &worker->context,
                                     .config = &worker->config,
                                     .db = db_new(&worker->start, database_password),
                                     .redis = redis_new(&worker->start, redis_password)};
    queue_init(&worker->queue, redis_new(&worker->start, redis_password), &worker->start);
    owner_self(worker->owner);
    owner_machine(worker->machine);
    pools_make(worker);
    /* Anywhere: one that is started again often sees all parts, too. */
    worker->orphans_part = (unsigned)(crypto_random_u64() % storage_part_count);
    worker->metrics = metrics_new(NULL, 0);
    error = deliver_new(context, &worker->config, worker->domain.db, worker->owner, worker->metrics,
                        &worker->deliver);
    if (error == IW_OK)
        error = transfer_open(worker, context);
    return error == IW_OK ? process_pid_file_write(context, worker->start.worker_pid_file) : error;
}

static void worker_close(struct worker *worker)
{
    transfer_close(worker);
    for (struct pool *pool = worker->pools; pool < worker->pools + JOB_CLASS_COUNT; pool++) {
        for (unsigned i = 0; i < pool->count; i++)
            task_drop(&pool->tasks[i]);
        free(pool->tasks);
    }
    deliver_free(worker->deliver);
    redis_free(worker->queue.redis);
    redis_free(worker->domain.redis);
    db_free(worker->domain.db);
    storage_close(worker->storage);
    metrics_free(worker->metrics);
    arena_free(worker->config_arena);
}

enum iw_error supervisor_check(struct context *context, const char *config_file)
{
    struct config config;
    const char *database_password, *redis_password;
    enum iw_error error = config_read(context, config_file, &config);
    if (error == IW_OK)
        error = secrets_read(context, &config, &database_password, &redis_password);
    if (error == IW_OK)
        error = deliver_check(context, &config);
    return error == IW_OK ? programs_check(context, &config) : error;
}

int supervisor_run(struct context *context, const char *config_file)
{
    static struct worker worker;
    worker = (struct worker){
        .config_file = config_file, .start_arena = context->arena, .arena = arena_new(pool_arena_bytes)};
    if (worker_open(&worker, context) != IW_OK) {
        arena_free(worker.arena);
        return EXIT_FAILURE;
    }
    log_event(LOG_INFO, NULL, "started", LOG_NUMBER("processes", worker.pools[JOB_CLASS_IMAGE].count),
              LOG_TEXT("owner", worker.owner));
    process_notify("READY=1");
    fault_point(FAULT_WORKER_STARTED);
    worker_serve(&worker);
    process_pid_file_remove(worker.start.worker_pid_file);
    if (workers_forget(&worker.context, worker.domain.db, worker.owner) != IW_OK)
        context_clear(&worker.context);
    worker_close(&worker);
    log_event(LOG_INFO, NULL, "stopped");
    arena_free(worker.arena);
    return EXIT_SUCCESS;
}
