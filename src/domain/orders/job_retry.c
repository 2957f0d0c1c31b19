#include "domain/orders/job_retry.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "domain/orders/reopen.h"
#include "service/redis/queue.h"

enum iw_error job_retry_list(struct domain *domain, int64_t limit, int64_t offset,
                             struct job_retry_rows *rows)
{
    return jobs_failed_page(&domain->db, limit, offset, &rows->items, &rows->count, &rows->total);
}

enum iw_error job_retry_request(struct domain *domain, int64_t id, const struct audit_actor *actor)
{
    int64_t order_id;
    enum iw_error error = jobs_failed_order(&domain->db, id, &order_id);
    if (error == IW_OK && order_id == 0)
        return context_fail(domain->context, IW_RESOURCE_NOT_FOUND,
                            "No failed job of an order in progress has this id.");
    if (error == IW_OK)
        error = jobs_retry_request(&domain->db, id, clock_now_ms());
    return error == IW_OK ? audit_add(domain, actor, "jobRetried", "jobId",
                                      arena_printf(domain->context->arena, "%" PRId64, id), NULL)
                          : error;
}

static enum iw_error retry_one(struct domain *domain, int64_t id)
{
    int64_t order_id;
    struct reopening reopening = {.reopened = 0};
    enum iw_error error = jobs_failed_order(&domain->db, id, &order_id);
    if (error == IW_OK && order_id != 0)
        error = reopen_order(domain, order_id, &reopening);
    if (error == IW_OK)
        error = jobs_retry_done(&domain->db, id);
    if (error != IW_OK || reopening.reopened == 0)
        return error;
    log_event(LOG_INFO, domain->context, "jobs_reopened", LOG_NUMBER("order_id", order_id),
              LOG_NUMBER("jobs", reopening.reopened));
    queue_notify(domain->redis, domain->config, domain->context, order_id);
    return IW_OK;
}

enum iw_error job_retry_make(struct domain *domain, unsigned *count)
{
    struct query_ids ids = {.count = 0};
    enum iw_error error = jobs_retry_take(&domain->db, &ids);
    for (unsigned i = 0; error == IW_OK && i < ids.count; i++)
        error = retry_one(domain, ids.items[i]);
    *count = ids.count;
    return error;
}
