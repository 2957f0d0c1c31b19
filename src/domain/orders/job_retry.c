#include "domain/orders/job_retry.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "db/files.h"
#include "db/jobs.h"
#include "db/orders.h"
#include "db/transaction.h"
#include "service/redis/queue.h"

/* Files come before jobs: failed jobs identify the files. */
static enum iw_error order_files_reopen(const struct db *db, struct order_progress *order,
                                        struct job_retry *retry)
{
    int64_t now_ms = clock_now_ms(), files = 0;
    enum iw_error error = files_reopen(db, order->id, now_ms, &files);
    if (error == IW_OK)
        error = jobs_reopen(db, order->id, &retry->reopened);
    if (error != IW_OK || retry->reopened == 0)
        return error;
    order->failed_count -= files;
    return orders_progress_write(db, order, now_ms);
}

enum iw_error job_retry_order(const struct domain *domain, int64_t order_id, struct job_retry *retry)
{
    enum iw_error error;
    const struct db *db = &domain->db;
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        struct order_progress order;
        error = orders_progress_lock(db, order_id, &order);
        if (error != IW_OK)
            continue;
        *retry = (struct job_retry){.status = order.status};
        if (order.status != ORDER_IN_PROGRESS)
            continue;
        error = jobs_hurry(db, order_id, &retry->hurried);
        if (error == IW_OK)
            error = order_files_reopen(db, &order, retry);
        if (error == IW_OK)
            error = jobs_lost(db, order_id, &retry->lost);
    }
    return error;
}

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
    struct job_retry retry = {.reopened = 0};
    enum iw_error error = jobs_failed_order(&domain->db, id, &order_id);
    if (error == IW_OK && order_id != 0)
        error = job_retry_order(domain, order_id, &retry);
    if (error == IW_OK)
        error = jobs_retry_done(&domain->db, id);
    if (error != IW_OK || retry.reopened == 0)
        return error;
    log_event(LOG_INFO, domain->context, "jobs_reopened", LOG_NUMBER("order_id", order_id),
              LOG_NUMBER("jobs", retry.reopened));
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
