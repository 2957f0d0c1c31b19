/*
 * Retries of failed jobs on an operator's command, while their order is in progress.  A finished order cannot
 * be retried: its inputs are deleted, and its webhooks are notified.
 *
 * The console's user of the database may not change jobs: the console writes a request, and the worker makes
 * the retry.
 */
#ifndef DOMAIN_ORDERS_JOB_RETRY_H
#define DOMAIN_ORDERS_JOB_RETRY_H

#include <stdint.h>

#include "db/jobs.h"
#include "domain/domain.h"
#include "domain/people/audit.h"
#include "model/order.h"

/* The changes of one order. */
struct job_retry {
    enum order_status status; /* of the order; the next three are 0 unless it is in progress */
    int64_t hurried;          /* jobs whose backoff was cut short */
    int64_t reopened;         /* failed jobs that are queued again */
    int64_t lost; /* files whose push failed: their results are deleted, so that no retry is possible */
};

/* One transaction for jobs, files and the order's counts.  ORDER_NOT_FOUND. */
enum iw_error job_retry_order(const struct domain *domain, int64_t order_id,
                              struct job_retry *retry) IW_MUST_USE;

struct job_retry_rows {
    struct jobs_failed *items;
    size_t count;
    int64_t total;
};
enum iw_error job_retry_list(struct domain *domain, int64_t limit, int64_t offset,
                             struct job_retry_rows *rows) IW_MUST_USE;

/* RESOURCE_NOT_FOUND if the job has not failed, or its order has ended. */
enum iw_error job_retry_request(struct domain *domain, int64_t id,
                                const struct audit_actor *actor) IW_MUST_USE;

/* Makes the requested retries; *count: how many requests there were. */
enum iw_error job_retry_make(struct domain *domain, unsigned *count) IW_MUST_USE;

#endif
