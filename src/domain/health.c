#include "domain/health.h"

#include "base/clock.h"
#include "service/queue.h"
#include "service/storage.h"
#include "store/deliveries.h"
#include "store/files.h"
#include "store/orders.h"
#include "store/provision.h"
#include "store/quotas.h"

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

bool health_numbers(struct domain *domain, struct health_numbers *numbers)
{
    const struct store *store = &domain->store;
    int64_t oldest_s;
    bool is_paused;
    *numbers = (struct health_numbers){.delivery_oldest_s = -1, .paused = -1, .near_limit = -1};
    if (!is_ok(domain, jobs_counts(store, &numbers->jobs, &numbers->job_count)))
        return false;
    if (!is_ok(domain, orders_status_counts(store, &numbers->orders, &numbers->order_count)))
        numbers->orders = NULL;
    if (!is_ok(domain, deliveries_status_counts(store, &numbers->deliveries, &numbers->delivery_count)))
        numbers->deliveries = NULL;
    if (is_ok(domain, deliveries_oldest(store, clock_now_ms(), &oldest_s)))
        numbers->delivery_oldest_s = oldest_s;
    if (is_ok(domain, workers_paused(store, &is_paused)))
        numbers->paused = is_paused;
    if (!is_ok(domain, quotas_warned_count(store, &numbers->near_limit)))
        numbers->near_limit = -1;
    if (!is_ok(domain, workers_list(store, &numbers->workers, &numbers->worker_count)))
        numbers->workers = NULL;
    return true;
}

bool health_store_bytes(struct domain *domain, struct query_count **gauges, unsigned *count)
{
    return is_ok(domain, files_store_bytes(&domain->store, gauges, count));
}

bool health_worker_is_up(const struct worker_row *worker)
{
    return worker->silent_s < worker_silent_s;
}
