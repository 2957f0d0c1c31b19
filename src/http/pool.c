#include "http/pool.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/fault.h"
#include "base/hosts.h"
#include "base/log.h"
#include "base/process.h"
#include "http/child.h"
#include "http/fastcgi.h"
#include "http/in_flight.h"
#include "http/probe.h"
#include "http/request_metrics.h"

const char pool_usage[] =
    "Signals: TERM finishes current requests and exits, a second TERM exits at once; HUP reloads.\n";

enum {
    tick_ms = 1000,
    /* A process that died earlier than this probably fails at its start. */
    short_life_ms = 1000,
    pause_first_ms = 100,
    pause_max_ms = 5000
};

struct child_slot {
    pid_t pid; /* 0 if the slot is free */
    int64_t started_ms;
    bool is_leaving; /* asked to finish */
};

struct pool {
    const char *config_file;
    const struct edge *edge;
    struct arena *arena; /* of the configuration in force */
    struct config config;
    int listener;
    struct metrics *metrics; /* this and the next are shared with the children */
    struct in_flight *in_flight;
    struct probe probe;
    bool is_keyring_checked; /* the keys of the configuration in force belong to the database */
    struct hosts *hosts;
    unsigned process_count;
    struct child_slot *slots; /* three per process, because up to two generations remain after a reload */
    unsigned slot_count;
    unsigned short_lives;  /* number of consecutive early deaths */
    int64_t fork_after_ms; /* monotonic */
};

static void level_apply(const struct config *config)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(config->log_level, names[i]) == 0)
            log_level_set((enum log_level)i);
    clock_offset_set_s(config->test_clock_offset_s);
}

static unsigned pool_count(const struct pool *pool, bool is_leaving)
{
    unsigned count = 0;
    for (unsigned i = 0; i < pool->slot_count; i++)
        count += pool->slots[i].pid != 0 && pool->slots[i].is_leaving == is_leaving;
    return count;
}

/* Runs in the child after fork(). */
static _Noreturn void child_begin(struct pool *pool, unsigned slot, pid_t supervisor)
{
    if (!process_die_with_parent(supervisor))
        _exit(EXIT_FAILURE);
    const struct child_share share = {pool->metrics, pool->in_flight, pool->hosts, slot,
                                      pool->is_keyring_checked};
    int code = child_run(&pool->config, pool->edge, pool->listener, &share);
    free(pool->slots);
    arena_free(pool->arena);
    exit(code);
}

/* Blocks signals during fork(), because a child must not run the supervisor's handlers. */
static void slot_fork(struct pool *pool, struct child_slot *slot)
{
    sigset_t all, before;
    pid_t supervisor = getpid();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        child_begin(pool, (unsigned)(slot - pool->slots), supervisor);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        log_event(LOG_ERROR, NULL, "fork_failed", LOG_TEXT("cause", strerror(errno)));
        pool->fork_after_ms = clock_monotonic_ms() + tick_ms;
        return;
    }
    *slot = (struct child_slot){.pid = pid, .started_ms = clock_monotonic_ms()};
    fault_point(FAULT_PROCESS_FORKED, "pool");
}

static void pool_fill(struct pool *pool)
{
    unsigned missing = pool->process_count - pool_count(pool, false);
    for (unsigned i = 0; i < pool->slot_count && missing > 0; i++) {
        if (clock_monotonic_ms() < pool->fork_after_ms)
            return;
        if (pool->slots[i].pid != 0)
            continue;
        slot_fork(pool, &pool->slots[i]);
        missing--;
    }
}

/* Logs and counts a death. If the whole pool dies early, delays the next fork. */
static void death_record(struct pool *pool, const struct child_slot *slot, int state)
{
    int64_t now_ms = clock_monotonic_ms();
    bool is_clean = WIFEXITED(state) && WEXITSTATUS(state) == 0;
    if (is_clean || slot->is_leaving)
        return;
    log_event(LOG_ERROR, NULL, "child_died", LOG_NUMBER("child", slot->pid),
              LOG_NUMBER("signal", WIFSIGNALED(state) ? WTERMSIG(state) : 0),
              LOG_NUMBER("status", WIFEXITED(state) ? WEXITSTATUS(state) : 0),
              LOG_NUMBER("lived_ms", now_ms - slot->started_ms));
    metrics_add(pool->metrics, METRIC_CHILD_DEATHS, 0, 0, 1);
    pool->short_lives = now_ms - slot->started_ms < short_life_ms ? pool->short_lives + 1 : 0;
    if (pool->short_lives < pool->process_count)
        return;
    unsigned doublings = pool->short_lives / pool->process_count;
    int64_t pause_ms = doublings < 6 ? pause_first_ms << doublings : pause_max_ms;
    pool->fork_after_ms = now_ms + pause_ms;
}

static void pool_reap(struct pool *pool)
{
    int state;
    for (pid_t pid; (pid = waitpid(-1, &state, WNOHANG)) > 0;) {
        probe_reaped(&pool->probe, pid);
        for (unsigned i = 0; i < pool->slot_count; i++)
            if (pool->slots[i].pid == pid) {
                death_record(pool, &pool->slots[i], state);
                in_flight_leave(pool->in_flight, i);
                pool->slots[i] = (struct child_slot){.pid = 0};
                fault_point(FAULT_PROCESS_REAPED, "pool");
            }
    }
}

static void pool_signal(struct pool *pool, int number)
{
    for (unsigned i = 0; i < pool->slot_count; i++)
        if (pool->slots[i].pid != 0) {
            kill(pool->slots[i].pid, number);
            pool->slots[i].is_leaving = true;
        }
}

/*
 * If the file is invalid or its secrets cannot be read, the current configuration stays in force. Keys that
 * need a restart keep their values. The reload waits while two generations of processes are still leaving.
 */
static void pool_reload(struct pool *pool)
{
    struct context context;
    struct config config;
    bool is_keyring_checked = false;
    if (pool_count(pool, true) > pool->process_count)
        return;
    process_reload_asked = 0;
    process_notify("RELOADING=1");
    struct arena *arena = arena_new(0);
    context_init(&context, arena, NULL);
    enum iw_error error = pool->edge->configure(&context, pool->config_file, &config);
    if (error == IW_OK) {
        config_keep_fixed(&config, &pool->config, arena);
        error = child_keyring_check(&context, &config, &is_keyring_checked);
    }
    if (error == IW_OK) {
        pool->is_keyring_checked = is_keyring_checked;
        arena_free(pool->arena);
        pool->arena = arena;
        pool->config = config;
        level_apply(&pool->config);
        fault_point(FAULT_POOL_RELOADED, "");
        pool_signal(pool, SIGTERM);
        log_event(LOG_INFO, NULL, "reloaded", LOG_TEXT("file", pool->config_file));
    } else {
        log_failure(&context, "reload_refused");
        arena_free(arena);
    }
    process_notify("READY=1");
}

static void pool_wait(struct pool *pool, int timeout_ms)
{
    struct pollfd wake = {.fd = process_signal_descriptor(), .events = POLLIN};
    poll(&wake, 1, timeout_ms);
    process_signal_drain();
    process_child_died = 0;
    pool_reap(pool);
}

static void pool_serve(struct pool *pool)
{
    while (process_stop_count == 0) {
        pool_fill(pool);
        probe_step(&pool->probe, &pool->config);
        int64_t pause_ms = pool->fork_after_ms - clock_monotonic_ms();
        pool_wait(pool, pause_ms > 0 && pause_ms < tick_ms ? (int)pause_ms : tick_ms);
        if (process_reload_asked)
            pool_reload(pool);
        process_notify("WATCHDOG=1");
    }
}

static void pool_drain(struct pool *pool)
{
    process_notify("STOPPING=1");
    log_event(LOG_INFO, NULL, "stopping", LOG_NUMBER("processes", pool_count(pool, false)));
    unlink(pool->config.api_socket);
    pool_signal(pool, SIGTERM);
    while (pool_count(pool, true) > 0) {
        if (process_stop_count > 1)
            pool_signal(pool, SIGKILL);
        pool_wait(pool, tick_ms);
    }
}

static enum iw_error pool_open(struct pool *pool, struct context *context)
{
    enum iw_error error = pool->edge->configure(context, pool->config_file, &pool->config);
    if (error == IW_OK)
        error = child_keyring_check(context, &pool->config, &pool->is_keyring_checked);
    if (error != IW_OK)
        return error;
    level_apply(&pool->config);
    process_signals_install();
    pool->listener = fastcgi_listen(context, pool->config.api_socket, (int)pool->config.api_backlog);
    return pool->listener < 0 ? context->error : process_pid_file_write(context, pool->config.api_pid_file);
}

enum iw_error pool_check(struct context *context, const char *config_file, const struct edge *edge)
{
    struct config config;
    enum iw_error error = edge->configure(context, config_file, &config);
    return error == IW_OK ? child_check(context, &config) : error;
}

int pool_run(struct context *context, const char *config_file, const struct edge *edge)
{
    struct pool pool = {.config_file = config_file, .edge = edge, .arena = arena_new(0), .listener = -1};
    struct context pool_context;
    context_init(&pool_context, pool.arena, NULL);
    if (pool_open(&pool, &pool_context) != IW_OK) {
        context_fail(context, pool_context.error, "%s", pool_context.sentence);
        arena_free(pool.arena);
        return EXIT_FAILURE;
    }
    pool.metrics = request_metrics_new(edge->routes);
    pool.process_count = (unsigned)pool.config.api_processes;
    pool.slot_count = pool.process_count * 3;
    pool.slots = calloc(pool.slot_count, sizeof *pool.slots);
    if (pool.slots == NULL)
        abort();
    pool.in_flight = in_flight_new(pool.slot_count);
    pool.hosts = hosts_new();
    probe_init(&pool.probe);
    pool_fill(&pool);
    log_event(LOG_INFO, NULL, "started", LOG_NUMBER("processes", pool.process_count));
    process_notify("READY=1");
    pool_serve(&pool);
    pool_drain(&pool);
    process_pid_file_remove(pool.config.api_pid_file);
    log_event(LOG_INFO, NULL, "stopped");
    in_flight_free(pool.in_flight);
    hosts_free(pool.hosts);
    probe_fini(&pool.probe);
    free(pool.slots);
    arena_free(pool.arena);
    return EXIT_SUCCESS;
}
