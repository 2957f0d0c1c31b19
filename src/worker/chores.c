/* What time asks of jobs and orders: leases of the dead, orders that are due, files that nobody needs. */
#include <imgward/fault.h>

#include "base/clock.h"
#include "base/log.h"
#include "domain/reclaim.h"
#include "domain/retention.h"
#include "store/leases.h"
#include "store/workers.h"
#include "worker/worker.h"

enum {
    database_retry_ms = 1000,
    retention_ms = 3000,
    stranded_ms = 10000,
    retention_orders = 20,
    reclaim_ms = 60 * 60 * 1000,
    orphans_ms = 10000,
    orphans_pause_ms = 10 * 60 * 1000, /* where a step sees the whole store */
    orphans_keys = 200,                /* a step of some milliseconds */
    unfinished_age_s = 24 * 60 * 60
};

/* Takes back what dead supervisors of this machine and silent ones of any had leased. */
static enum iw_error leases_take_back(struct worker *worker, int64_t *taken)
{
    const struct store *store = &worker->domain.store;
    struct query_texts owners = {.count = 0};
    int64_t jobs = 0;
    enum iw_error error = leases_owners(store, LEASES_JOBS, worker->machine, &owners);
    for (unsigned i = 0; error == IW_OK && i < owners.count; i++) {
        if (!owner_is_dead(owners.items[i]))
            continue;
        error = leases_release_owner(store, LEASES_JOBS, owners.items[i], &jobs);
        *taken += jobs;
    }
    jobs = 0;
    if (error == IW_OK)
        error = leases_release_silent(store, LEASES_JOBS, &jobs);
    *taken += jobs;
    return error;
}

static void chore_sweep(struct worker *worker, int64_t now_ms)
{
    int64_t taken = 0;
    worker->sweep_at_ms = now_ms + worker->config.worker_sweep_ms;
    if (!worker_database_said(worker, leases_take_back(worker, &taken), "sweep_failed"))
        return;
    if (taken > 0)
        fault_point(FAULT_WORKER_SWEPT);
    metrics_add(worker->metrics, METRIC_LEASES_LOST, 0, 0, (uint64_t)taken);
    if (taken > 0)
        log_event(LOG_WARN, NULL, "leases_taken_back", LOG_TEXT("reason", "lease_lost"),
                  LOG_NUMBER("jobs", taken));
    lease_look_ask(worker);
}

/* Jobs that a clock set back has put out of reach. */
static void chore_hasten(struct worker *worker, int64_t now_ms)
{
    int64_t count = 0;
    worker->stranded_at_ms = now_ms + stranded_ms;
    enum iw_error error = leases_hasten_stranded(&worker->domain.store, LEASES_JOBS, clock_now_ms(), &count);
    if (!worker_database_said(worker, error, "sweep_failed") || count == 0)
        return;
    log_event(LOG_WARN, NULL, "jobs_hastened", LOG_TEXT("reason", "clock_set_back"),
              LOG_NUMBER("jobs", count));
    lease_look_ask(worker);
}

static void chore_retention(struct worker *worker, int64_t now_ms)
{
    unsigned abandoned = 0, expired = 0;
    worker->retention_at_ms = now_ms + retention_ms;
    enum iw_error error = retention_abandon(&worker->domain, worker->storage, retention_orders, &abandoned);
    if (error == IW_OK)
        error = retention_expire(&worker->domain, worker->storage, retention_orders, &expired);
    worker_database_said(worker, error, "retention_failed");
    if (abandoned == retention_orders || expired == retention_orders)
        worker->retention_at_ms = now_ms;
}

static void chore_reclaim(struct worker *worker, int64_t now_ms)
{
    unsigned orders = 0, unfinished = 0;
    worker->reclaim_at_ms = now_ms + reclaim_ms;
    enum iw_error error = reclaim_inputs(&worker->domain, worker->storage, &orders);
    if (error == IW_OK && workers_forget(&worker->domain.store, "") != IW_OK)
        context_clear(&worker->context);
    if (error == IW_OK)
        error = storage_sweep(worker->storage, &worker->context, unfinished_age_s, &unfinished);
    if (!worker_database_said(worker, error, "reclaim_failed"))
        worker->reclaim_at_ms = now_ms + database_retry_ms;
    if (orders + unfinished > 0)
        log_event(LOG_INFO, NULL, "reclaimed", LOG_NUMBER("orders", orders),
                  LOG_NUMBER("unfinished", unfinished));
}

/* A step at a time, round and round. */
static void chore_orphans(struct worker *worker, int64_t now_ms)
{
    unsigned count = 0, from = worker->orphans_part;
    enum iw_error error =
        reclaim_outputs(&worker->domain, worker->storage, &worker->orphans_part, orphans_keys, &count);
    bool is_whole =
        worker_database_said(worker, error, "reclaim_failed") && from == 0 && worker->orphans_part == 0;
    worker->orphans_at_ms = now_ms + (is_whole ? orphans_pause_ms : orphans_ms);
    if (count > 0)
        log_event(LOG_INFO, NULL, "orphans_deleted", LOG_NUMBER("files", count));
}

void chores_tick(struct worker *worker, int64_t now_ms)
{
    if (worker->stop_at_ms != 0)
        return;
    if (now_ms >= worker->sweep_at_ms)
        chore_sweep(worker, now_ms);
    if (now_ms >= worker->stranded_at_ms && !worker->is_database_away)
        chore_hasten(worker, now_ms);
    if (now_ms >= worker->retention_at_ms && !worker->is_database_away)
        chore_retention(worker, now_ms);
    if (now_ms >= worker->reclaim_at_ms && !worker->is_database_away)
        chore_reclaim(worker, now_ms);
    if (now_ms >= worker->orphans_at_ms && !worker->is_database_away)
        chore_orphans(worker, now_ms);
}

/* What is not done now does not keep the loop awake. */
int64_t chores_next_ms(const struct worker *worker)
{
    if (worker->stop_at_ms != 0)
        return INT64_MAX;
    bool is_sweep_first = worker->is_database_away || worker->sweep_at_ms < worker->retention_at_ms;
    return is_sweep_first ? worker->sweep_at_ms : worker->retention_at_ms;
}
