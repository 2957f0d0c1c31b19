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

#include "db/census.h"
#include "db/workers.h"
#include "domain/domain.h"

/* The dependencies of a request.  The service works without Redis. */
struct health {
    bool has_database;
    bool has_redis;
    bool has_store;
    bool has_room;      /* the next two are known: the store is a file system */
    int64_t free_bytes; /* of the store's file system */
    int64_t size_bytes;
    const char *database_cause; /* why it is not available, in the arena; NULL if it is */
    const char *redis_cause;
    const char *store_cause;
};

struct health health_check(struct domain *domain);

/*
 * Returns one line for systemctl status: the unavailable dependencies with cause and effect, or that all of
 * them respond.
 */
const char *health_text(struct arena *arena, const struct health *health);

/* The numbers of the database; workers is NULL if they could not be read.  The context's arena owns them. */
struct health_numbers {
    struct census_rows rows;
    struct worker_row *workers;
    unsigned worker_count;
    int paused;           /* 1 yes, 0 no, -1 unknown */
    int64_t cluster_size; /* nodes of the database cluster; 0 means no cluster, -1 if unknown */
};

/* False, without numbers, if the database is away. */
bool health_numbers(struct domain *domain, struct health_numbers *numbers);

/* The sum of the rows of a state. */
int64_t health_number(const struct health_numbers *numbers, enum census_source source, const char *state);

/* How long the oldest job, order or delivery of a row has waited; 0 if nothing waits. */
int64_t health_age_s(const struct census_row *row);
int64_t health_oldest_s(const struct health_numbers *numbers, enum census_source source, const char *state);

/* True if the worker's last heartbeat is recent. */
bool health_worker_is_up(const struct worker_row *worker);

/*
 * Returns false while the worker's last access to the file store failed less than a minute ago; the worker
 * tries every 30 s.
 */
bool health_has_store(int64_t store_failed_ms);

/* What a worker reports of the image processes and the file store; is_well is true if none fails. */
const char *health_worker_text(struct arena *arena, const struct worker_row *worker, bool *is_well);

/* The worker whose mail failed last, when none was sent since; NULL if there is none. */
const struct worker_row *health_mail_failed(const struct worker_row *workers, unsigned count);

#endif
