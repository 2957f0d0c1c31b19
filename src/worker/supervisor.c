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
#include "store/db.h"
#include "store/leases.h"
#include "store/workers.h"
#include "worker/worker.h"

enum {
    turn_longest_ms = 1000,
    database_retry_ms = 1000,
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

bool worker_database_said(struct worker *worker, enum iw_error error, const char *event)
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

/* Jobs that are leased, whatever has become of them. */
static unsigned tasks_busy(const struct worker *worker)
{
    unsigned count = 0;
    for (const struct pool *pool = worker->pools; pool < worker->pools + JOB_CLASS_COUNT; pool++)
        for (unsigned i = 0; i < pool->count; i++)
            count += pool->tasks[i].state != TASK_FREE;
    return count;
}

/* What is worked on: image processes and archives, and transfers. */
static unsigned places_busy(const struct worker *worker)
{
    const struct pool *transfers = &worker->pools[JOB_CLASS_TRANSFER];
    unsigned count = image_process_busy_count(worker);
    for (unsigned i = 0; i < transfers->count; i++)
        count += transfers->tasks[i].state != TASK_FREE;
    return count;
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
                                   .places = worker->process_count,
                                   .busy = places_busy(worker),
                                   .metrics = text.data};
    enum iw_error error = workers_note(&worker->domain.store, &row);
    if (error == IW_OK)
        error = workers_paused(&worker->domain.store, &is_paused);
    /* An older schema has no such tables: the work goes on. */
    if (error != IW_OK && error != IW_SERVICE_UNAVAILABLE && !worker->is_notice_refused)
        log_failure(context, "worker_not_told");
    worker->is_notice_refused = error != IW_OK && error != IW_SERVICE_UNAVAILABLE;
    context_clear(context);
    if (is_paused != worker->is_paused)
        log_event(LOG_INFO, NULL, is_paused ? "queue_paused" : "queue_resumed");
    worker->is_paused = is_paused;
    if (is_paused)
        lease_give_all_back(worker);
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
    enum iw_error error = leases_renew(&worker->domain.store, LEASES_JOBS, worker->owner,
                                       worker->config.worker_lease_s, &count);
    if (!worker_database_said(worker, error, "heartbeat_failed"))
        worker->heartbeat_at_ms = now_ms + database_retry_ms;
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
    for (unsigned i = 0; i < worker->process_count; i++)
        image_process_tick(worker, &worker->processes[i], now_ms);
    clear_tick(worker, now_ms);
    lease_tell_tick(worker, now_ms);
    chores_tick(worker, now_ms);
}

/* When a task of a class has something to do, or there is to be looked for one. */
static int64_t pool_next_ms(const struct worker *worker, enum job_class class)
{
    int64_t next_ms = INT64_MAX;
    const struct pool *pool = &worker->pools[class];
    for (unsigned i = 0; i < pool->count; i++)
        next_ms = task_next_ms(&pool->tasks[i]) < next_ms ? task_next_ms(&pool->tasks[i]) : next_ms;
    if (pool->is_look_asked && !worker->is_paused && worker->stop_at_ms == 0 &&
        worker->look_at_ms < next_ms && lease_room(worker, class) > 0)
        next_ms = worker->look_at_ms;
    return next_ms;
}

/* No image process is started any more when all is to end. */
static int64_t image_processes_next_ms(const struct worker *worker)
{
    int64_t next_ms = INT64_MAX;
    for (unsigned i = 0; i < worker->process_count && worker->stop_at_ms == 0; i++)
        if (image_process_next_ms(&worker->processes[i]) < next_ms)
            next_ms = image_process_next_ms(&worker->processes[i]);
    return next_ms;
}

static int wait_ms(const struct worker *worker)
{
    int64_t now_ms = clock_monotonic_ms(), next_ms = now_ms + turn_longest_ms;
    const int64_t at_ms[] = {worker->heartbeat_at_ms, chores_next_ms(worker), image_processes_next_ms(worker),
                             pool_next_ms(worker, JOB_CLASS_IMAGE), pool_next_ms(worker, JOB_CLASS_TRANSFER)};
    for (size_t i = 0; i < sizeof at_ms / sizeof at_ms[0]; i++)
        next_ms = at_ms[i] < next_ms ? at_ms[i] : next_ms;
    if (worker->clear_count > 0)
        next_ms = now_ms;
    if (worker->tell_order_id != 0 && worker->tell_at_ms < next_ms)
        next_ms = worker->tell_at_ms;
    int fetch_ms = fetch_wait_ms(worker->fetch);
    if (fetch_ms >= 0 && now_ms + fetch_ms < next_ms)
        next_ms = now_ms + fetch_ms;
    if (deliver_next_ms(worker->deliver) < next_ms)
        next_ms = deliver_next_ms(worker->deliver);
    return next_ms > now_ms ? (int)(next_ms - now_ms) : 0;
}

/* The descriptors of image processes, then those of archives' children. */
static unsigned work_poll(const struct worker *worker, struct pollfd *places)
{
    const struct pool *pool = &worker->pools[JOB_CLASS_IMAGE];
    unsigned count = 0;
    for (unsigned i = 0; i < worker->process_count; i++)
        places[count++] = (struct pollfd){.fd = worker->processes[i].client.socket, .events = POLLIN};
    for (unsigned i = 0; i < pool->count; i++)
        places[count++] = (struct pollfd){.fd = pool->tasks[i].child_pipe, .events = POLLIN};
    return count;
}

static void work_take(struct worker *worker, const struct pollfd *places)
{
    const struct pool *pool = &worker->pools[JOB_CLASS_IMAGE];
    for (unsigned i = 0; i < worker->process_count; i++, places++)
        if (places->revents != 0)
            image_process_poll(worker, &worker->processes[i]);
    for (unsigned i = 0; i < pool->count; i++, places++)
        if (places->revents != 0)
            archive_task_poll(worker, &pool->tasks[i]);
}

/* Waits for a signal, the bell, an image process or a child, and takes what they say. */
static void events_take(struct worker *worker, int timeout_ms)
{
    struct pollfd places[3 * processes_max + 2 + deliver_descriptors_max + fetch_descriptors_max];
    unsigned count = work_poll(worker, places);
    places[count] = (struct pollfd){.fd = process_signal_descriptor(), .events = POLLIN};
    places[count + 1] = (struct pollfd){.fd = queue_descriptor(&worker->queue), .events = POLLIN};
    struct pollfd *sockets = places + count + 2;
    unsigned socket_count = deliver_poll(worker->deliver, sockets, deliver_descriptors_max);
    struct pollfd *transfers = sockets + socket_count;
    unsigned transfer_count = fetch_poll(worker->fetch, transfers, fetch_descriptors_max);
    if (poll(places, count + 2 + socket_count + transfer_count, timeout_ms) < 0)
        return;
    process_signal_drain();
    work_take(worker, places);
    transfer_step(worker, transfers, transfer_count);
    if (queue_heard(&worker->queue, &worker->context)) {
        lease_look_ask(worker);
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

/*
 * What is not begun is put back; where the database does not hear of that, whoever
 * comes next on this machine finds the leases of a dead owner.
 */
static void worker_stop(struct worker *worker)
{
    struct task *task;
    worker->stop_at_ms = clock_monotonic_ms() + worker->config.image_timeout_s * 1000;
    process_notify("STOPPING=1");
    lease_give_all_back(worker);
    while ((task = image_process_task_next(worker)) != NULL)
        task_free(worker, task);
    log_event(LOG_INFO, NULL, "stopping", LOG_NUMBER("jobs", tasks_busy(worker)));
}

/* True when the loop is to end: all is finished, or it is asked a second time, or it takes too long. */
static bool is_over(struct worker *worker)
{
    if (process_stop_count == 0)
        return false;
    if (worker->stop_at_ms == 0)
        worker_stop(worker);
    unsigned busy = tasks_busy(worker) + deliver_count(worker->deliver);
    return process_stop_count > 1 || busy == 0 || clock_monotonic_ms() >= worker->stop_at_ms;
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
            lease_look(worker, (enum job_class) class);
        bool has_room = lease_room(worker, JOB_CLASS_IMAGE) + lease_room(worker, JOB_CLASS_TRANSFER) > 0;
        if (has_room && worker->stop_at_ms == 0)
            queue_listen(&worker->queue, &worker->context);
        events_take(worker, wait_ms(worker));
    }
    if (process_stop_count < 2)
        clear_run(worker);
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
                                       .child_pipe = -1,
                                       .input_file = -1,
                                       .original_file = -1,
                                       .result_file = -1,
                                       .thumbnail_file = -1,
                                       .source_file = -1};
}

static void image_processes_make(struct worker *worker, unsigned count)
{
    worker->processes = calloc(count, sizeof *worker->processes);
    worker->process_count = count;
    if (worker->processes == NULL)
        abort();
    for (unsigned i = 0; i < count; i++)
        worker->processes[i].client.socket = -1;
}

/* A source may hang for as long as it is given; a picture does not, so that nothing is kept free there. */
static void pools_make(struct worker *worker)
{
    int64_t wanted = worker->config.worker_processes;
    unsigned processes = (unsigned)(wanted > 0 ? wanted : process_core_count());
    unsigned transfers = (unsigned)worker->config.worker_transfers;
    image_processes_make(worker, processes < processes_max ? processes : processes_max);
    pool_make(worker, JOB_CLASS_IMAGE, 2 * worker->process_count, 2 * processes_max);
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
                                     .store = {&worker->context, db_new(&worker->start, database_password)},
                                     .redis = redis_new(&worker->start, redis_password)};
    queue_init(&worker->queue, redis_new(&worker->start, redis_password), &worker->start);
    owner_self(worker->owner);
    owner_machine(worker->machine);
    pools_make(worker);
    /* Anywhere: one that is started again often sees all parts, too. */
    worker->orphans_part = (unsigned)(crypto_random_u64() % storage_part_count);
    worker->metrics = metrics_new(NULL, 0);
    error = deliver_new(context, &worker->config, worker->domain.store.db, worker->owner, worker->metrics,
                        &worker->deliver);
    if (error == IW_OK)
        error = transfer_open(worker, context);
    return error == IW_OK ? process_pid_file_write(context, worker->start.worker_pid_file) : error;
}

static void worker_close(struct worker *worker)
{
    int wait_status;
    transfer_close(worker);
    for (unsigned i = 0; i < worker->process_count; i++)
        image_process_end(&worker->processes[i], &wait_status);
    free(worker->processes);
    for (struct pool *pool = worker->pools; pool < worker->pools + JOB_CLASS_COUNT; pool++) {
        for (unsigned i = 0; i < pool->count; i++)
            task_drop(&pool->tasks[i]);
        free(pool->tasks);
    }
    deliver_free(worker->deliver);
    redis_free(worker->queue.redis);
    redis_free(worker->domain.redis);
    db_free(worker->domain.store.db);
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
    log_event(LOG_INFO, NULL, "started", LOG_NUMBER("processes", worker.process_count),
              LOG_TEXT("owner", worker.owner));
    process_notify("READY=1");
    fault_point(FAULT_WORKER_STARTED);
    worker_serve(&worker);
    process_pid_file_remove(worker.start.worker_pid_file);
    if (workers_forget(&worker.domain.store, worker.owner) != IW_OK)
        context_clear(&worker.context);
    worker_close(&worker);
    log_event(LOG_INFO, NULL, "stopped");
    arena_free(worker.arena);
    return EXIT_SUCCESS;
}
