#include "worker/heartbeat.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "db/leases.h"
#include "db/workers.h"
#include "domain/health.h"
#include "worker/image_process.h"
#include "worker/shared.h"
#include "worker/task.h"

enum { database_retry_ms = 1000 };

static enum iw_error row_write(struct heartbeat *heartbeat)
{
    struct shared *shared = heartbeat->shared;
    struct text text;
    char host[256] = "", label[300];
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    snprintf(label, sizeof label, "worker=\"%s:%ld\"", host, (long)getpid());
    text_init(&text, shared->domain.context->arena);
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        if (metrics_scope((enum metric)i) == METRIC_SCOPE_WORKER)
            metrics_print(shared->metrics, (enum metric)i, label, &text);
    const struct image_processes *all = heartbeat->processes;
    const char *store_reason;
    int64_t store_failed_ms = storage_failed_ms(shared->domain.storage, &store_reason);
    const struct worker_row row = {.owner = shared->owner,
                                   .host = host,
                                   .pid = getpid(),
                                   .version = PACKAGE_VERSION,
                                   .places = all->count,
                                   .busy = task_count(&heartbeat->pools[JOB_CLASS_IMAGE], TASK_RUNNING) +
                                           task_busy_count(&heartbeat->pools[JOB_CLASS_TRANSFER]),
                                   .metrics = text.data,
                                   .image_ready = image_process_ready_count(all),
                                   .image_failing_ms = all->failing_ms,
                                   .image_reason = all->failing_ms != 0 ? all->reason : NULL,
                                   .store_failed_ms = store_failed_ms,
                                   .store_reason = store_reason};
    return workers_note(&shared->domain.db, &row);
}

/* An older schema has no such tables; the work continues. */
static void row_exchange(struct heartbeat *heartbeat)
{
    struct shared *shared = heartbeat->shared;
    bool is_paused = shared->is_paused;
    enum iw_error error = row_write(heartbeat);
    if (error == IW_OK)
        error = workers_paused(&shared->domain.db, &is_paused);
    bool is_failed = error != IW_OK && error != IW_SERVICE_UNAVAILABLE;
    if (is_failed && !heartbeat->is_row_failed)
        log_failure(shared->domain.context, "worker_row_failed");
    heartbeat->is_row_failed = is_failed;
    context_clear(shared->domain.context);
    if (is_paused != shared->is_paused)
        log_event(LOG_INFO, NULL, is_paused ? "queue_paused" : "queue_resumed");
    shared->is_paused = is_paused;
}

/* The line of systemctl status. */
static void status_report(struct heartbeat *heartbeat)
{
    struct shared *shared = heartbeat->shared;
    struct text text;
    const char *reason;
    const struct image_processes *all = heartbeat->processes;
    int64_t store_failed_ms = storage_failed_ms(shared->domain.storage, &reason);
    text_init(&text, shared->domain.context->arena);
    text_printf(&text, "%u of %u image processes ready", image_process_ready_count(all), all->count);
    if (all->failing_ms != 0)
        text_printf(&text, "; %s", all->reason);
    if (shared->is_database_away)
        text_add_string(&text, "; the database is away");
    if (!health_has_store(store_failed_ms))
        text_printf(&text, "; the file store failed: %s", reason);
    process_status("%s", text.data);
}

/*
 * The ids of the jobs in progress.  A job that the worker does not know is not renewed: its lease was
 * committed, but the reply was lost.
 */
static const char *job_ids(const struct heartbeat *heartbeat)
{
    struct text text;
    text_init(&text, heartbeat->shared->domain.context->arena);
    for (const struct task_pool *pool = heartbeat->pools; pool < heartbeat->pools + JOB_CLASS_COUNT; pool++)
        for (unsigned i = 0; i < pool->count; i++)
            if (pool->tasks[i].state != TASK_FREE)
                text_printf(&text, "%s%" PRId64, text.length > 0 ? "," : "", pool->tasks[i].job.id);
    return text.data;
}

static int64_t heartbeat_next_ms(const void *part)
{
    return ((const struct heartbeat *)part)->at_ms;
}

static void heartbeat_step(void *part, int64_t now_ms)
{
    struct heartbeat *heartbeat = part;
    struct shared *shared = heartbeat->shared;
    int64_t count = 0;
    process_notify("WATCHDOG=1");
    status_report(heartbeat);
    heartbeat->at_ms = now_ms + shared->domain.config->worker_heartbeat_s * 1000;
    if (!shared->is_database_away)
        row_exchange(heartbeat);
    const char *ids = job_ids(heartbeat);
    if (ids[0] == '\0')
        return;
    enum iw_error error = leases_renew(&shared->domain.db, LEASES_JOBS, shared->owner, ids,
                                       shared->domain.config->worker_lease_s, &count);
    if (!shared_database_report(shared, error, "heartbeat_failed"))
        heartbeat->at_ms = now_ms + database_retry_ms;
}

const struct loop_timer heartbeat_timer = {heartbeat_next_ms, heartbeat_step};
