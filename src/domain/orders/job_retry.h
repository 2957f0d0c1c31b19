/*
 * Failed jobs that an operator retries in the console.  The console's user of the database may not change
 * jobs: it writes a request, and the worker makes the retry.
 */
#ifndef DOMAIN_ORDERS_JOB_RETRY_H
#define DOMAIN_ORDERS_JOB_RETRY_H

#include "db/jobs.h"
#include "domain/domain.h"
#include "domain/people/audit.h"

struct job_retry_rows {
    struct jobs_failed *items;
    size_t count;
    int64_t total;
};
enum iw_error job_retry_list(struct domain *domain, int64_t limit, int64_t offset,
                             struct job_retry_rows *rows) IW_MUST_USE;

/* RESOURCE_NOT_FOUND: the job has not failed, or its order has ended. */
enum iw_error job_retry_request(struct domain *domain, int64_t id,
                                const struct audit_actor *actor) IW_MUST_USE;

/* Makes the requested retries; *count: how many requests there were. */
enum iw_error job_retry_make(struct domain *domain, unsigned *count) IW_MUST_USE;

#endif
