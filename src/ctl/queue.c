/* imgwardctl queue, status: waiting and running jobs, workers, and pausing the queue. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/render.h"
#include "base/text.h"
#include "ctl/table.h"
#include "db/db.h"
#include "db/deliveries.h"
#include "db/files.h"
#include "db/jobs.h"
#include "db/workers.h"
#include "domain/health.h"
#include "service/redis/queue.h"
#include "service/redis/redis.h"

enum { dead_default = 50, dead_max = 100000, drain_default_s = 600, drain_max_s = 86400 };

/* ---- queue status ---- */

struct queue_facts {
    struct jobs_count *counts;
    unsigned count;
    struct query_table owners;
    int64_t wakeups; /* unread wake-ups; -1 if Redis is unavailable */
};

static void queue_print(const struct ctl *ctl, const struct queue_facts *facts)
{
    printf("%-8s  %-7s  %8s  %10s\n", "kind", "state", "jobs", "oldest, s");
    for (unsigned i = 0; i < facts->count; i++)
        printf("%-8s  %-7s  %8" PRId64 "  %10" PRId64 "\n", job_kind_name(facts->counts[i].kind),
               job_state_name(facts->counts[i].state), facts->counts[i].count, facts->counts[i].oldest_s);
    if (facts->count == 0)
        printf("no jobs\n");
    if (facts->wakeups >= 0)
        printf("\nwake-ups: %" PRId64 " unread\n\n", facts->wakeups);
    else
        printf("\nwake-ups: Redis is not reachable; workers find jobs by the sweep\n\n");
    table_print(ctl, &facts->owners);
}

static void queue_render(struct render *render, const void *of)
{
    const struct queue_facts *facts = of;
    render_array_begin(render, "jobs");
    for (unsigned i = 0; i < facts->count; i++) {
        render_object_begin(render, NULL);
        render_string(render, "kind", job_kind_name(facts->counts[i].kind));
        render_string(render, "state", job_state_name(facts->counts[i].state));
        render_integer(render, "count", facts->counts[i].count);
        render_integer(render, "oldestSeconds", facts->counts[i].oldest_s);
        render_object_end(render);
    }
    render_array_end(render);
    if (facts->wakeups >= 0)
        render_integer(render, "wakeups", facts->wakeups);
    else
        render_null(render, "wakeups");
    table_render(render, &facts->owners);
}

static int64_t wakeups_read(struct ctl *ctl, const struct config *config)
{
    const char *password;
    if (config_secret(ctl->context, config->redis_password_file, &password) != IW_OK) {
        context_clear(ctl->context);
        return -1;
    }
    struct redis *redis = redis_new(config, password);
    int64_t wakeups = queue_length(redis, config, ctl->context);
    redis_free(redis);
    return wakeups;
}

static enum ctl_exit queue_status_run(struct ctl *ctl)
{
    struct config config;
    struct queue_facts facts = {.count = 0};
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = jobs_counts(db, &facts.counts, &facts.count);
    if (error == IW_OK)
        error = jobs_inspect_owners(db, &facts.owners);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    facts.wakeups = wakeups_read(ctl, &config);
    if (ctl_option(ctl, "--json") != NULL)
        table_object_print(ctl, queue_render, &facts);
    else
        queue_print(ctl, &facts);
    return CTL_DONE;
}

/* ---- status ---- */

struct status {
    struct queue_facts queue;
    struct worker_row *workers;
    unsigned worker_count;
    struct query_table rates;
    struct query_count *deliveries, *db;
    unsigned delivery_count, store_count;
    bool is_paused;
};

static enum iw_error status_read(const struct db *db, struct status *status)
{
    enum iw_error error = jobs_counts(db, &status->queue.counts, &status->queue.count);
    if (error == IW_OK)
        error = jobs_inspect_owners(db, &status->queue.owners);
    if (error == IW_OK)
        error = workers_list(db, &status->workers, &status->worker_count);
    if (error == IW_OK)
        error = workers_paused(db, &status->is_paused);
    if (error == IW_OK)
        error = jobs_inspect_rates(db, &status->rates);
    if (error == IW_OK)
        error = deliveries_status_counts(db, &status->deliveries, &status->delivery_count);
    return error == IW_OK ? files_store_bytes(db, &status->db, &status->store_count) : error;
}

static int64_t oldest_s(const struct queue_facts *facts)
{
    int64_t oldest = 0;
    for (unsigned i = 0; i < facts->count; i++)
        if (facts->counts[i].state == JOB_QUEUED && facts->counts[i].oldest_s > oldest)
            oldest = facts->counts[i].oldest_s;
    return oldest;
}

static void status_print(const struct ctl *ctl, const struct status *status)
{
    printf("queue: %s, oldest job waits %" PRId64 " s\n\n", status->is_paused ? "PAUSED" : "open",
           oldest_s(&status->queue));
    queue_print(ctl, &status->queue);
    printf("workers\n");
    for (unsigned i = 0; i < status->worker_count; i++)
        printf("  %s:%" PRId64 "  %s  %" PRId64 " of %" PRId64 " image processes busy, since %s%s\n",
               status->workers[i].host, status->workers[i].pid, status->workers[i].version,
               status->workers[i].busy, status->workers[i].places,
               ctl_time(ctl, status->workers[i].started_ms),
               status->workers[i].silent_s > 30 ? ", SILENT" : "");
    printf("%s\n", status->worker_count == 0 ? "  no worker has registered\n" : "");
    table_print(ctl, &status->rates);
    printf("deliveries");
    for (unsigned i = 0; i < status->delivery_count; i++)
        printf("  %s %" PRId64, status->deliveries[i].state, status->deliveries[i].count);
    printf("\nstore");
    for (unsigned i = 0; i < status->store_count; i++)
        printf("  %s %" PRId64 " MiB", status->db[i].state, status->db[i].count >> 20);
    printf("\n");
}

static void gauges_render(struct render *render, const char *name, const struct query_count *gauges,
                          unsigned count)
{
    render_object_begin(render, name);
    for (unsigned i = 0; i < count; i++)
        render_integer(render, gauges[i].state, gauges[i].count);
    render_object_end(render);
}

static void status_render(struct render *render, const void *facts)
{
    const struct status *status = facts;
    render_boolean(render, "isPaused", status->is_paused);
    render_integer(render, "oldestSeconds", oldest_s(&status->queue));
    queue_render(render, &status->queue);
    render_array_begin(render, "workers");
    for (unsigned i = 0; i < status->worker_count; i++) {
        render_object_begin(render, NULL);
        render_string(render, "host", status->workers[i].host);
        render_integer(render, "pid", status->workers[i].pid);
        render_string(render, "version", status->workers[i].version);
        render_integer(render, "places", status->workers[i].places);
        render_integer(render, "busy", status->workers[i].busy);
        render_integer(render, "silentSeconds", status->workers[i].silent_s);
        render_time(render, "startedAt", status->workers[i].started_ms);
        render_object_end(render);
    }
    render_array_end(render);
    table_render(render, &status->rates);
    gauges_render(render, "deliveries", status->deliveries, status->delivery_count);
    gauges_render(render, "storeBytes", status->db, status->store_count);
}

static enum ctl_exit status_run(struct ctl *ctl)
{
    struct config config;
    struct status status = {.is_paused = false};
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = status_read(db, &status);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    status.queue.wakeups = wakeups_read(ctl, &config);
    if (ctl_option(ctl, "--json") != NULL)
        table_object_print(ctl, status_render, &status);
    else
        status_print(ctl, &status);
    return CTL_DONE;
}

/* ---- pause, resume, drain, dead ---- */

static enum ctl_exit pause_set(struct ctl *ctl, bool is_paused)
{
    struct config config;
    bool is_changed = false;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = workers_pause(db, is_paused, &is_changed);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    printf("queue: %s%s; workers follow within %" PRId64 " s\n", is_changed ? "" : "was already ",
           is_paused ? "paused" : "open", config.worker_heartbeat_s);
    return CTL_DONE;
}

static enum ctl_exit pause_run(struct ctl *ctl)
{
    return pause_set(ctl, true);
}

static enum ctl_exit resume_run(struct ctl *ctl)
{
    return pause_set(ctl, false);
}

static enum iw_error leased_count(const struct db *db, int64_t *leased)
{
    struct jobs_count *counts;
    unsigned count;
    enum iw_error error = jobs_counts(db, &counts, &count);
    *leased = 0;
    for (unsigned i = 0; error == IW_OK && i < count; i++)
        *leased += counts[i].state == JOB_LEASED ? counts[i].count : 0;
    return error;
}

/* Counts the live workers without a heartbeat in the last past_ms; silent_s is rounded down. */
static enum iw_error unaware_count(const struct db *db, int64_t past_ms, unsigned *unaware)
{
    struct worker_row *workers;
    unsigned count = 0;
    enum iw_error error = workers_list(db, &workers, &count);
    *unaware = 0;
    for (unsigned i = 0; error == IW_OK && i < count; i++)
        *unaware += health_worker_is_up(&workers[i]) && (workers[i].silent_s + 1) * 1000 > past_ms;
    return error;
}

/* Workers notice the pause at their next heartbeat; until then they may lease more jobs. */
static enum ctl_exit drain_run(struct ctl *ctl)
{
    struct config config;
    bool is_changed;
    int64_t wait_s, leased = 0, past_ms = 0;
    unsigned unaware = 0;
    if (!ctl_option_integer(ctl, "--wait", 1, drain_max_s, drain_default_s, &wait_s))
        return CTL_FAILED;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = workers_pause(db, true, &is_changed);
    int64_t paused_ms = clock_monotonic_ms();
    while (error == IW_OK) {
        bool is_over = past_ms >= wait_s * 1000, is_heard = past_ms > config.worker_heartbeat_s * 1000;
        if (is_heard || is_over)
            error = unaware_count(db, past_ms, &unaware);
        if (error == IW_OK)
            error = leased_count(db, &leased);
        if (is_over || (is_heard && leased == 0 && unaware == 0))
            break;
        sleep(1);
        past_ms = clock_monotonic_ms() - paused_ms;
    }
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    printf("queue: paused, %" PRId64 " jobs running\n", leased);
    if (unaware > 0)
        printf("%u workers have not read the pause yet\n", unaware);
    return leased == 0 && unaware == 0 ? CTL_DONE : CTL_NEGATIVE;
}

static enum ctl_exit dead_run(struct ctl *ctl)
{
    struct config config;
    struct query_table table;
    int64_t most;
    if (!ctl_option_integer(ctl, "--most", 1, dead_max, dead_default, &most))
        return CTL_FAILED;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = jobs_inspect_failed(db, most, &table);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    table_show(ctl, &table);
    return CTL_DONE;
}

const struct ctl_command queue_commands[] = {
    {.words = {"status"},
     .arguments = "",
     .options = {{"--json", NULL, "print a JSON object"}},
     .help = "Show the queue, workers, rates, deliveries and the size of the store on one screen.",
     .run = status_run},
    {.words = {"queue", "status"},
     .arguments = "",
     .options = {{"--json", NULL, "print a JSON object"}},
     .help = "Count waiting jobs, running jobs by worker, and jobs that ended within a day.",
     .run = queue_status_run},
    {.words = {"queue", "pause"},
     .arguments = "",
     .help = "Stop all workers from starting jobs.  Running jobs are finished; new orders are accepted.",
     .run = pause_run},
    {.words = {"queue", "resume"},
     .arguments = "",
     .help = "Let the workers start jobs again.",
     .run = resume_run},
    {.words = {"queue", "drain"},
     .arguments = "",
     .options = {{"--wait", "S", "wait at most S seconds; 600 when omitted"}},
     .help = "Pause the queue; wait until each worker knows and no job runs. Exit code 1: the wait ended.",
     .example = "imgwardctl queue drain --wait 120",
     .run = drain_run},
    {.words = {"queue", "dead"},
     .arguments = "",
     .options = {{"--most", "N", "print at most N jobs; 50 when omitted"},
                 {"--json", NULL, "print a JSON array"}},
     .help = "List the failed jobs with their reasons, newest first.",
     .run = dead_run},
    {.words = {NULL}},
};
