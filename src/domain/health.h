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
    bool has_room;      /* the next two are known: the store is a file system */
    int64_t free_bytes; /* of the store's file system */
    int64_t size_bytes;
    const char *database_cause; /* why it is not available, the arena's; NULL when it is */
    const char *redis_cause;
    const char *store_cause;
};

struct health health_check(struct domain *domain);

/* One line for systemctl status: what is away, why, and what that means; or that all answer. */
const char *health_text(struct arena *arena, const struct health *health);

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
    int paused;           /* 1 yes, 0 no, -1 unknown */
    int64_t near_limit;   /* accounts with a limit used to 80 per cent */
    int64_t cluster_size; /* nodes of the database cluster; 0: no cluster, -1: unknown */
};

/* False, without any number, when the database is away. */
bool health_numbers(struct domain *domain, struct health_numbers *numbers);

/* Bytes of the stored files by kind, in the order of enum metric_store, as of the last census. */
bool health_store_bytes(struct domain *domain, struct query_count **gauges, unsigned *count);

/* True when the worker's last heartbeat is recent. */
bool health_worker_is_up(const struct worker_row *worker);

/* False while the worker's last access to the file store failed less than a minute ago: it tries every 30 s.
 */
bool health_has_store(int64_t store_failed_ms);

/* What a worker reports of its image processes and its file store; is_well: no failure. */
const char *health_worker_text(struct arena *arena, const struct worker_row *worker, bool *is_well);

/* The worker whose mail failed last, when none was sent since; NULL: none. */
const struct worker_row *health_mail_failed(const struct worker_row *workers, unsigned count);

#endif
