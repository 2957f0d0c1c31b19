/*
 * Health of the service for monitoring: whether its dependencies are available,
 * and the numbers that are only in the database.
 *
 * An unavailable dependency is a result, not an error.  src/api/watch.c renders it.
 */
#ifndef DOMAIN_HEALTH_H
#define DOMAIN_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "domain/domain.h"
#include "store/jobs.h"
#include "store/query.h"
#include "store/workers.h"

/* The dependencies of a request.  The service works without Redis. */
struct health {
    bool has_database;
    bool has_redis;
    bool has_store;
    int64_t free_bytes; /* of the store's file system; valid with has_store, as the next */
    int64_t size_bytes;
};

struct health health_check(struct domain *domain);

/* Rows by kind; NULL when they could not be read.  The context's arena owns the arrays. */
struct health_numbers {
    struct jobs_count *jobs;
    unsigned job_count;
    struct query_count *orders;
    unsigned order_count;
    struct query_count *deliveries;
    unsigned delivery_count;
    struct worker_row *workers;
    unsigned worker_count;
    int64_t delivery_oldest_s;
    int paused;         /* 1 yes, 0 no, -1 unknown */
    int64_t near_limit; /* accounts with a limit used to 80 per cent */
};

/* False, without any number, when the database is away. */
bool health_numbers(struct domain *domain, struct health_numbers *numbers);

/* Bytes of the stored files by kind, in the order of enum metric_store, as of the last census. */
bool health_store_bytes(struct domain *domain, struct query_count **gauges, unsigned *count);

/* True when the worker's last heartbeat is recent. */
bool health_worker_is_up(const struct worker_row *worker);

#endif
