#include "domain/health.h"

#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "domain/census.h"
#include "model/order.h"
#include "service/queue.h"
#include "service/storage.h"
#include "store/provision.h"

enum { worker_silent_s = 30 };

/* Clears the context: an unavailable dependency is not an error here. */
static bool is_ok(struct domain *domain, enum iw_error error)
{
    context_clear(domain->context);
    return error == IW_OK;
}

struct health health_check(struct domain *domain)
{
    struct health health = {0};
    health.has_database = is_ok(domain, provision_ping(&domain->store));
    health.has_redis = queue_length(domain->redis, domain->config, domain->context) >= 0;
    context_clear(domain->context);
    health.has_store = storage_room(domain->config->store_path, &health.free_bytes, &health.size_bytes);
    return health;
}

/* The rows of a source, as counts by state. */
static void counts_make(struct arena *arena, const struct census_rows *rows, enum census_source source,
                        struct query_count **counts, unsigned *count)
{
    *counts = arena_array(arena, rows->count + 1, sizeof **counts);
    *count = 0;
    for (unsigned i = 0; i < rows->count; i++)
        if (rows->items[i].source == source)
            (*counts)[(*count)++] =
                (struct query_count){.state = rows->items[i].state, .count = rows->items[i].number};
}

static int64_t age_s(int64_t oldest_ms)
{
    int64_t age_ms = clock_now_ms() - oldest_ms;
    return oldest_ms == 0 || age_ms < 0 ? 0 : age_ms / 1000;
}

static void jobs_make(struct arena *arena, const struct census_rows *rows, struct health_numbers *numbers)
{
    numbers->jobs = arena_array(arena, rows->count + 1, sizeof *numbers->jobs);
    for (unsigned i = 0; i < rows->count; i++) {
        struct jobs_count *one = &numbers->jobs[numbers->job_count];
        *one = (struct jobs_count){.state = job_state_by_name(rows->items[i].state),
                                   .count = rows->items[i].number,
                                   .oldest_s = age_s(rows->items[i].oldest_ms)};
        if (rows->items[i].source == CENSUS_JOBS && job_kind_read(rows->items[i].kind, &one->kind))
            numbers->job_count++;
    }
}

/* The orders that have not ended; archives are bytes. */
static void orders_make(struct arena *arena, const struct census_rows *rows, struct health_numbers *numbers)
{
    unsigned kept = 0;
    counts_make(arena, rows, CENSUS_ORDERS, &numbers->orders, &numbers->order_count);
    for (unsigned i = 0; i < numbers->order_count; i++) {
        enum order_status status;
        if (order_status_read(numbers->orders[i].state, &status) && !order_is_ended(status))
            numbers->orders[kept++] = numbers->orders[i];
    }
    numbers->order_count = kept;
}

bool health_numbers(struct domain *domain, struct health_numbers *numbers)
{
    const struct store *store = &domain->store;
    struct arena *arena = domain->context->arena;
    struct census_rows rows;
    bool is_paused;
    *numbers = (struct health_numbers){.paused = -1};
    if (!is_ok(domain, census_numbers(domain, &rows)))
        return false;
    jobs_make(arena, &rows, numbers);
    orders_make(arena, &rows, numbers);
    counts_make(arena, &rows, CENSUS_DELIVERIES, &numbers->deliveries, &numbers->delivery_count);
    for (unsigned i = 0; i < rows.count; i++) {
        if (rows.items[i].source == CENSUS_ACCOUNTS)
            numbers->near_limit = rows.items[i].number;
        if (rows.items[i].source == CENSUS_DELIVERIES && strcmp(rows.items[i].state, "pending") == 0)
            numbers->delivery_oldest_s = age_s(rows.items[i].oldest_ms);
    }
    if (is_ok(domain, workers_paused(store, &is_paused)))
        numbers->paused = is_paused;
    if (!is_ok(domain, workers_list(store, &numbers->workers, &numbers->worker_count)))
        numbers->workers = NULL;
    return true;
}

/* The published ones: they are never counted for a request. */
bool health_store_bytes(struct domain *domain, struct query_count **gauges, unsigned *count)
{
    static const char *const names[] = {[METRIC_STORE_INPUTS] = "inputs",
                                        [METRIC_STORE_RESULTS] = "results",
                                        [METRIC_STORE_ARCHIVES] = "archives"};
    struct census_rows rows;
    if (!is_ok(domain, census_read(&domain->store, &rows)))
        return false;
    *count = sizeof names / sizeof names[0];
    *gauges = arena_array(domain->context->arena, *count, sizeof **gauges);
    for (unsigned i = 0; i < *count; i++) {
        (*gauges)[i] = (struct query_count){.state = names[i]};
        for (unsigned row = 0; row < rows.count; row++)
            if (strcmp(rows.items[row].state, names[i]) == 0)
                (*gauges)[i].count = rows.items[row].number;
    }
    return true;
}

bool health_worker_is_up(const struct worker_row *worker)
{
    return worker->silent_s < worker_silent_s;
}
