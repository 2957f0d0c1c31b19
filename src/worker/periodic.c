#include "worker/periodic.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "db/leases.h"
#include "db/workers.h"
#include "domain/accounts/quota.h"
#include "domain/accounts/request_log.h"
#include "domain/files/reclaim.h"
#include "domain/files/retention.h"
#include "domain/keyring.h"
#include "domain/orders/job_retry.h"
#include "domain/orders/order_confirm.h"
#include "domain/orders/order_search.h"
#include "domain/people/user.h"
#include "worker/mailer.h"
#include "worker/owner.h"
#include "worker/shared.h"

enum {
    database_retry_ms = 1000,
    retention_pause_ms = 3000,
    hasten_pause_ms = 10000,
    retention_orders = 20,
    retention_looked_at = 100,
    reclaim_pause_ms = 60 * 60 * 1000,
    orphans_pause_ms = 10000,
    orphans_whole_pause_ms = 10 * 60 * 1000, /* if one step saw the whole store */
    orphans_keys = 200,                      /* a step of some milliseconds */
    uploads_pause_ms = 500,
    quotas_step_ms = 20,
    quotas_pause_ms = 5000,
    quotas_pause_max_ms = 30000, /* half of the shortest interval of an account */
    census_step_ms = 20,
    census_pause_ms = 10000,
    census_pause_max_ms = 30000,
    index_pause_ms = 1000,
    index_pause_max_ms = 10000,
    index_busy_factor = 4,
    index_idle_factor = 50,
    unfinished_age_s = 24 * 60 * 60,
    retries_pause_ms = 2000,
    users_pause_ms = 10000,
    users_step = 1000 /* rows of the smallest step: after so many, more may be left */
};

static int64_t periodic_sweep(struct periodic *periodic)
{
    struct shared *shared = periodic->shared;
    int64_t released = 0;
    enum iw_error error = owner_leases_release(&shared->domain.db, LEASES_JOBS, shared->machine, &released);
    if (!shared_database_report(shared, error, "sweep_failed"))
        return shared->domain.config->worker_sweep_ms;
    if (released > 0)
        fault_point(FAULT_LEASES_LOST, "");
    metrics_add(shared->metrics, METRIC_LEASES_LOST, 0, 0, (uint64_t)released);
    if (released > 0)
        log_event(LOG_WARN, NULL, "leases_taken_back", LOG_TEXT("reason", "lease_lost"),
                  LOG_NUMBER("jobs", released));
    shared_lease_want(shared);
    return shared->domain.config->worker_sweep_ms;
}

/* Jobs that are scheduled too far ahead since a clock stepped back. */
static int64_t periodic_hasten(struct periodic *periodic)
{
    int64_t count = 0;
    enum iw_error error =
        leases_hasten_stranded(&periodic->shared->domain.db, LEASES_JOBS, clock_now_ms(), &count);
    if (!shared_database_report(periodic->shared, error, "sweep_failed") || count == 0)
        return hasten_pause_ms;
    log_event(LOG_WARN, NULL, "jobs_hastened", LOG_TEXT("reason", "clock_set_back"),
              LOG_NUMBER("jobs", count));
    shared_lease_want(periodic->shared);
    return hasten_pause_ms;
}

static int64_t periodic_retention(struct periodic *periodic)
{
    struct shared *shared = periodic->shared;
    unsigned abandoned = 0, expired = 0, stuck = 0, forgotten = 0;
    bool is_account_left = false;
    enum iw_error error =
        retention_abandon(&shared->domain, shared->domain.storage, retention_orders, &abandoned);
    if (error == IW_OK)
        error = retention_expire(&shared->domain, shared->domain.storage, retention_orders, &expired);
    if (error == IW_OK)
        error = retention_stuck(&shared->domain, shared->domain.storage, retention_looked_at,
                                &periodic->stuck_after_id, &stuck);
    if (error == IW_OK)
        error =
            retention_forget(&shared->domain, retention_looked_at, &periodic->forget_after_id, &forgotten);
    if (error == IW_OK)
        error = retention_account_delete(&shared->domain, shared->domain.storage, retention_orders,
                                         &is_account_left);
    shared_database_report(shared, error, "retention_failed");
    is_account_left = is_account_left && error == IW_OK;
    return abandoned == retention_orders || expired == retention_orders || is_account_left
               ? 0
               : retention_pause_ms;
}

static int64_t periodic_reclaim(struct periodic *periodic)
{
    struct shared *shared = periodic->shared;
    unsigned orders = 0, unfinished = 0;
    shared->is_reclaim_wanted = false;
    enum iw_error error = reclaim_inputs(&shared->domain, shared->domain.storage, &orders);
    if (error == IW_OK && workers_forget(&shared->domain.db, "") != IW_OK)
        context_clear(shared->domain.context);
    if (error == IW_OK)
        error = storage_sweep(shared->domain.storage, shared->domain.context, unfinished_age_s, &unfinished);
    bool is_done = shared_database_report(shared, error, "reclaim_failed");
    if (orders + unfinished > 0)
        log_event(LOG_INFO, NULL, "reclaimed", LOG_NUMBER("orders", orders),
                  LOG_NUMBER("unfinished", unfinished));
    return is_done ? reclaim_pause_ms : database_retry_ms;
}

/* One step of an endless walk over the store. */
static int64_t periodic_orphans(struct periodic *periodic)
{
    struct shared *shared = periodic->shared;
    unsigned count = 0;
    struct storage_cursor *cursor = &periodic->orphans;
    bool is_from_start = storage_cursor_is_start(cursor);
    enum iw_error error =
        reclaim_files(&shared->domain, shared->domain.storage, cursor, orphans_keys, &count);
    bool is_done = shared_database_report(shared, error, "reclaim_failed");
    if (count > 0)
        log_event(LOG_INFO, NULL, "orphans_deleted", LOG_NUMBER("files", count));
    return is_done && is_from_start && storage_cursor_is_start(cursor) ? orphans_whole_pause_ms
                                                                       : orphans_pause_ms;
}

/* The pause is a multiple of the work.  It has a bound, because the work may have waited for a lock. */
static int64_t pause_after(int64_t begin_ms, int64_t factor, int64_t least_ms, int64_t most_ms)
{
    int64_t pause_ms = (clock_monotonic_ms() - begin_ms) * factor;
    return pause_ms < least_ms ? least_ms : pause_ms > most_ms ? most_ms : pause_ms;
}

/* Reads the rows of an account. */
static int64_t periodic_quotas(struct periodic *periodic)
{
    bool is_done = false;
    int64_t begin_ms = clock_monotonic_ms();
    enum iw_error error = quota_reconcile(&periodic->shared->domain, &is_done);
    shared_database_report(periodic->shared, error, "reconcile_failed");
    return is_done ? pause_after(begin_ms, 20, quotas_step_ms, quotas_pause_max_ms) : quotas_pause_ms;
}

/* Failed jobs that an operator retries in the console. */
static int64_t periodic_retries(struct periodic *periodic)
{
    unsigned count = 0;
    enum iw_error error = job_retry_make(&periodic->shared->domain, &count);
    shared_database_report(periodic->shared, error, "retries_failed");
    if (count > 0)
        shared_lease_want(periodic->shared);
    return retries_pause_ms;
}

/* Ended sessions, tokens and invitations, old events and requests of the console. */
static int64_t periodic_users(struct periodic *periodic)
{
    struct shared *shared = periodic->shared;
    int64_t requests = 0, others = 0;
    enum iw_error error = request_log_forget_old(&shared->domain, &requests);
    if (error == IW_OK)
        error = user_forget(&shared->domain, &others);
    shared_database_report(shared, error, "retention_failed");
    return error == IW_OK && requests + others >= users_step ? 0 : users_pause_ms;
}

/* Writes segments of orders for lists. */
static int64_t periodic_index(struct periodic *periodic)
{
    bool is_changed = false;
    int64_t begin_ms = clock_monotonic_ms();
    enum iw_error error =
        order_search_index(&periodic->shared->domain, &periodic->index_after_id, &is_changed);
    shared_database_report(periodic->shared, error, "index_failed");
    return is_changed && error == IW_OK
               ? pause_after(begin_ms, index_busy_factor, 0, index_pause_max_ms)
               : pause_after(begin_ms, index_idle_factor, index_pause_ms, index_pause_max_ms);
}

/* Counts a slice of a table. */
static int64_t periodic_census(struct periodic *periodic)
{
    bool is_round = false;
    int64_t begin_ms = clock_monotonic_ms();
    enum iw_error error = census_step(&periodic->shared->domain.db, &periodic->census, &is_round);
    shared_database_report(periodic->shared, error, "census_failed");
    return is_round || error != IW_OK ? census_pause_ms
                                      : pause_after(begin_ms, 20, census_step_ms, census_pause_max_ms);
}

/* This process keeps the keys that it read at the start, so only a restart can change the result. */
static int64_t periodic_keyring(struct periodic *periodic)
{
    struct shared *shared = periodic->shared;
    enum iw_error error = keyring_check(&shared->domain.db, shared->domain.config, periodic->keyring);
    shared->is_keyring_refused = error == IW_CONFIG_INVALID;
    shared->is_keyring_unchecked = error != IW_OK;
    shared_database_report(shared, error, "keyring_check_failed");
    shared_lease_want(shared);
    return database_retry_ms;
}

/* Starts orders whose uploads are in the object store; nothing to do with a local store. */
static int64_t periodic_uploads(struct periodic *periodic)
{
    struct shared *shared = periodic->shared;
    bool is_more = false;
    if (!domain_is_direct(&shared->domain))
        return INT64_MAX / 2;
    enum iw_error error = order_upload_checks_run(&shared->domain, &is_more);
    shared_database_report(shared, error, "upload_check_failed");
    return is_more && error == IW_OK ? 0 : uploads_pause_ms;
}

static int64_t periodic_mails(struct periodic *periodic)
{
    return mailer_step(periodic->mailer);
}

/* Each returns the pause before its next run. */
static int64_t (*const runs[PERIODIC_COUNT])(struct periodic *periodic) = {
    [PERIODIC_SWEEP] = periodic_sweep,         [PERIODIC_HASTEN] = periodic_hasten,
    [PERIODIC_RETENTION] = periodic_retention, [PERIODIC_RECLAIM] = periodic_reclaim,
    [PERIODIC_ORPHANS] = periodic_orphans,     [PERIODIC_QUOTAS] = periodic_quotas,
    [PERIODIC_KEYRING] = periodic_keyring,     [PERIODIC_INDEX] = periodic_index,
    [PERIODIC_CENSUS] = periodic_census,       [PERIODIC_UPLOADS] = periodic_uploads,
    [PERIODIC_MAILS] = periodic_mails,         [PERIODIC_RETRIES] = periodic_retries,
    [PERIODIC_USERS] = periodic_users,
};

void periodic_open(struct periodic *periodic)
{
    periodic->last = PERIODIC_COUNT - 1;
    periodic->orphans = storage_cursor_random(periodic->shared->domain.storage);
}

/* While the database is away, only the sweep runs, which notices that the database is back. */
static int64_t due_ms(const struct periodic *periodic, enum periodic_kind kind)
{
    struct shared *shared = periodic->shared;
    if (shared->stop_at_ms != 0 || (shared->is_database_away && kind != PERIODIC_SWEEP))
        return INT64_MAX;
    if (kind == PERIODIC_KEYRING && !shared->is_keyring_unchecked)
        return INT64_MAX;
    return kind == PERIODIC_RECLAIM && shared->is_reclaim_wanted ? 0 : periodic->at_ms[kind];
}

static int64_t periodic_next_ms(const void *part)
{
    const struct periodic *periodic = part;
    int64_t next_ms = INT64_MAX;
    for (int kind = 0; kind < PERIODIC_COUNT; kind++) {
        int64_t at_ms = due_ms(periodic, (enum periodic_kind)kind);
        next_ms = at_ms < next_ms ? at_ms : next_ms;
    }
    return next_ms;
}

static void periodic_step(void *part, int64_t now_ms)
{
    struct periodic *periodic = part;
    for (int i = 0; i < PERIODIC_COUNT; i++) {
        periodic->last = (enum periodic_kind)((periodic->last + 1) % PERIODIC_COUNT);
        if (due_ms(periodic, periodic->last) > now_ms)
            continue;
        periodic->at_ms[periodic->last] = now_ms + runs[periodic->last](periodic);
        return;
    }
}

const struct loop_timer periodic_timer = {periodic_next_ms, periodic_step};
