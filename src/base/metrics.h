/*
 * Prometheus metrics: one table (metrics.c) with the name, type, labels and help of each metric.
 *
 * The values of a program are in shared memory that is mapped before the first fork. So every process reports
 * the sums of all processes, and no counts are lost when a process dies. Counting costs one atomic addition.
 * This module does not depend on HTTP or the database; gauges from the database are printed by their callers.
 */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum metric {
    /* pool */
    METRIC_REQUESTS,        /* endpoint, class */
    METRIC_REQUEST_SECONDS, /* endpoint */
    METRIC_ERRORS,          /* code: an enum iw_error */
    METRIC_RATE_LIMITED,
    METRIC_USAGE_REFUSED, /* limit: an enum quota */
    METRIC_REDIS_AWAY,
    METRIC_DATABASE_CHANGES,
    METRIC_DATABASE_SERVER,
    METRIC_CHILD_DEATHS,
    METRIC_STORE_BYTES, /* of: an enum metric_store */
    /* worker */
    METRIC_JOBS,          /* kind: an enum job_kind; result */
    METRIC_JOB_SECONDS,   /* kind */
    METRIC_JOB_QUEUED,    /* kind */
    METRIC_ORDER_SECONDS, /* type: an enum order_type */
    METRIC_STAGE_MS,      /* stage: an enum image_stage; CPU time */
    METRIC_IMAGE_DEATHS,  /* reason */
    METRIC_LEASES_LOST,
    METRIC_DELIVERIES, /* result */
    METRIC_COUNT
};

/* Indices of the label values that are listed in metrics.c. */
enum metric_job_result {
    METRIC_JOB_DONE,
    METRIC_JOB_RETRIED,
    METRIC_JOB_FAILED,
    METRIC_JOB_REFUSED,
    METRIC_JOB_CANCELLED
};
enum metric_store { METRIC_STORE_INPUTS, METRIC_STORE_RESULTS, METRIC_STORE_ARCHIVES };
enum metric_death { METRIC_DEATH_CRASH, METRIC_DEATH_TIMEOUT };
enum metric_delivery { METRIC_DELIVERED, METRIC_DELIVERY_RETRIED, METRIC_DELIVERY_FAILED };
enum metric_class { METRIC_CLASS_NONE, METRIC_CLASS_1XX, METRIC_CLASS_COUNT = 6 };

enum metric_scope { METRIC_SCOPE_POOL, METRIC_SCOPE_WORKER };

struct metrics;

/*
 * Allocates the shared memory; call it before forking. The array endpoints has the values of the label
 * endpoint and is borrowed; pass NULL and 0 if there are none. The caller owns the result.
 */
struct metrics *metrics_new(const char *const *endpoints, unsigned endpoint_count);
void metrics_free(struct metrics *metrics);

/*
 * Adds to a counter. The numbers a and b are the indices of the label values, 0 for labels that the metric
 * does not have. If metrics is NULL, nothing is counted.
 */
void metrics_add(struct metrics *metrics, enum metric metric, unsigned a, unsigned b, uint64_t amount);

/* Sets a gauge that is too expensive to compute on every scrape. */
void metrics_set(struct metrics *metrics, enum metric metric, unsigned a, uint64_t value);

/* Adds a duration to a histogram. */
void metrics_observe(struct metrics *metrics, enum metric metric, unsigned a, int64_t ms);

/* Name and scope of a metric. */
const char *metrics_name(enum metric metric);
enum metric_scope metrics_scope(enum metric metric);

/* Prints the lines # HELP and # TYPE of a metric. */
void metrics_print_head(enum metric metric, struct text *text);

/*
 * Prints the samples of every label value, those that are 0 too, so that a rate sees the first event; a gauge
 * only once it is set. The text label, such as worker="a:1", is printed before the metric's labels; "" for
 * none.
 */
void metrics_print(const struct metrics *metrics, enum metric metric, const char *label, struct text *text);

#endif
