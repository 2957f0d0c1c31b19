/*
 * How the service is, for those who watch it: whether what it needs is there, and
 * the numbers that the database alone knows.
 *
 * What is away is part of the answer and no failure.  Knows nothing of how it is
 * shown (src/api/watch.c).
 */
#ifndef DOMAIN_HEALTH_H
#define DOMAIN_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "domain/domain.h"
#include "store/query.h"
#include "store/jobs.h"
#include "store/workers.h"

/* Whether what a request needs is there.  Without Redis the service goes on. */
struct health {
    bool has_database;
    bool has_redis;
    bool has_store;
    int64_t free_bytes; /* of the store's file system; valid with has_store, as the next */
    int64_t size_bytes;
};

struct health health_check(struct domain *domain);

/* Rows of one kind; NULL where they could not be read.  The arrays are the context's arena's. */
struct health_numbers {
    struct jobs_count *jobs;
    unsigned job_count;
    struct query_count *orders;
    unsigned order_count;
    struct query_count *deliveries;
    unsigned delivery_count;
    struct worker_row *workers;
    unsigned worker_count;
    int64_t delivery_oldest_s; /* -1: not known */
    int paused;                /* 1 yes, 0 no, -1: not known */
};

/* False, with nothing read, when the database is away. */
bool health_numbers(struct domain *domain, struct health_numbers *numbers);

/* Bytes that rows name, by kind (files_store_bytes): dear for big tables.  False when they cannot be read. */
bool health_store_bytes(struct domain *domain, struct query_count **gauges, unsigned *count);

/* True when a worker has given a sign of life lately. */
bool health_worker_is_up(const struct worker_row *worker);

#endif
