#include "worker/heartbeat.h"

#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "db/leases.h"
#include "db/workers.h"
#include "domain/health.h"
#include "worker/worker.h"

enum { database_retry_ms = 1000 };

static enum iw_error row_write(struct worker *worker)
{
    struct text text;
    char host[256] = "", label[300];
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    snprintf(label, sizeof label, "worker=\"%s:%ld\"", host, (long)getpid());
    text_init(&text, worker->context.arena);
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        if (metrics_scope((enum metric)i) == METRIC_SCOPE_WORKER)
            metrics_print(worker->metrics, (enum metric)i, label, &text);
    const struct image_processes *all = &worker->processes;
    const char *store_reason;
    int64_t store_failed_ms = storage_failed_ms(worker->storage, &store_reason);
    const struct worker_row row = {.owner = worker->owner,
                                   .host = host,
                                   .pid = getpid(),
                                   .version = PACKAGE_VERSION,
                                   .places = worker->processes.count,
                                   .busy = task_count(&worker->pools[JOB_CLASS_IMAGE], TASK_RUNNING) +
                                           task_busy_count(&worker->pools[JOB_CLASS_TRANSFER]),
                                   .metrics = text.data,
                                   .image_ready = image_process_ready_count(worker),
                                   .image_failing_ms = all->failing_ms,
                                   .image_reason = all->failing_ms != 0 ? all->reason : NULL,
                                   .store_failed_ms = store_failed_ms,
                                   .store_reason = store_reason};
    return workers_note(&worker->domain.db, &row);
}

/* An older schema has no such tables; the work continues. */
static void row_exchange(struct worker *worker)
{
    bool is_paused = worker->flags.is_paused;
    enum iw_error error = row_write(worker);
    if (error == IW_OK)
        error = workers_paused(&worker->domain.db, &is_paused);
    bool is_failed = error != IW_OK && error != IW_SERVICE_UNAVAILABLE;
    if (is_failed && !worker->heartbeat.is_row_failed)
        log_failure(&worker->context, "worker_not_told");
    worker->heartbeat.is_row_failed = is_failed;
    context_clear(&worker->context);
    if (is_paused != worker->flags.is_paused)
        log_event(LOG_INFO, NULL, is_paused ? "queue_paused" : "queue_resumed");
    worker->flags.is_paused = is_paused;
}

/* The line of systemctl status. */
static void status_report(struct worker *worker)
{
    struct text text;
    const char *reason;
    const struct image_processes *all = &worker->processes;
    int64_t store_failed_ms = storage_failed_ms(worker->storage, &reason);
    text_init(&text, worker->context.arena);
    text_printf(&text, "%u of %u image processes ready", image_process_ready_count(worker), all->count);
    if (all->failing_ms != 0)
        text_printf(&text, "; %s", all->reason);
    if (worker->flags.is_database_away)
        text_add_string(&text, "; the database is away");
    if (!health_has_store(store_failed_ms))
        text_printf(&text, "; the file store failed: %s", reason);
    process_status("%s", text.data);
}

int64_t heartbeat_next_ms(const struct worker *worker)
{
    return worker->heartbeat.at_ms;
}

void heartbeat_step(struct worker *worker, int64_t now_ms)
{
    int64_t count = 0;
    process_notify("WATCHDOG=1");
    status_report(worker);
    worker->heartbeat.at_ms = now_ms + worker->config.worker_heartbeat_s * 1000;
    if (!worker->flags.is_database_away)
        row_exchange(worker);
    if (task_busy_count(&worker->pools[JOB_CLASS_IMAGE]) +
            task_busy_count(&worker->pools[JOB_CLASS_TRANSFER]) ==
        0)
        return;
    enum iw_error error =
        leases_renew(&worker->domain.db, LEASES_JOBS, worker->owner, worker->config.worker_lease_s, &count);
    if (!flags_database_report(&worker->flags, &worker->context, error, "heartbeat_failed"))
        worker->heartbeat.at_ms = now_ms + database_retry_ms;
}
