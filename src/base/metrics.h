/*
 * Counters and times for Prometheus: one table (metrics.c) with every metric's
 * name, kind, labels and help.
 *
 * The values of a program lie in one block of memory that its processes share:
 * it is made before they are forked, so that what any of them counts is told by
 * all of them, and a process that dies takes nothing with it.  Adding is one
 * atomic addition.  Knows neither HTTP nor the database; what is read from
 * there is printed by whoever reads it.
 */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum metric {
    /* of the pool */
    METRIC_REQUESTS,        /* endpoint, class */
    METRIC_REQUEST_SECONDS, /* endpoint */
    METRIC_ERRORS,          /* code: an enum iw_error */
    METRIC_RATE_LIMITED,
    METRIC_REDIS_AWAY,
    METRIC_CHILD_DEATHS,
    METRIC_STORE_BYTES, /* of: an enum metric_store */
    /* of a worker */
    METRIC_JOBS,         /* kind: an enum job_kind; result */
    METRIC_JOB_SECONDS,  /* kind */
    METRIC_STAGE_MS,     /* stage: an enum image_stage; CPU time */
    METRIC_IMAGE_DEATHS, /* reason */
    METRIC_LEASES_LOST,
    METRIC_DELIVERIES, /* result */
    METRIC_COUNT
};

/* The labels' values that have a number of their own here. */
enum metric_job_result { METRIC_JOB_DONE, METRIC_JOB_RETRIED, METRIC_JOB_FAILED, METRIC_JOB_CANCELLED };
enum metric_store { METRIC_STORE_INPUTS, METRIC_STORE_RESULTS, METRIC_STORE_ARCHIVES };
enum metric_death { METRIC_DEATH_CRASH, METRIC_DEATH_TIMEOUT };
enum metric_delivery { METRIC_DELIVERED, METRIC_DELIVERY_RETRIED, METRIC_DELIVERY_FAILED };
enum metric_class { METRIC_CLASS_NONE, METRIC_CLASS_1XX, METRIC_CLASS_COUNT = 6 };

enum metric_scope { METRIC_SCOPE_POOL, METRIC_SCOPE_WORKER };

struct metrics;

/*
 * Makes the block of a program before it forks.  endpoints are the values of
 * the label endpoint, borrowed; NULL and 0 where there are none.  Lives until
 * metrics_free or the end of the program.
 */
struct metrics *metrics_new(const char *const *endpoints, unsigned endpoint_count);
void metrics_free(struct metrics *metrics);

/* Adds to a counter; a and b are the numbers of its labels' values, 0 where it has none.  NULL counts
 * nothing.
 */
void metrics_add(struct metrics *metrics, enum metric metric, unsigned a, unsigned b, uint64_t amount);

/* Sets a gauge that is too dear to be read with every scrape. */
void metrics_set(struct metrics *metrics, enum metric metric, unsigned a, uint64_t value);

/* True for one process at a time, once in period_ms (monotonic clock): whoever hears it sets the gauge anew.
 */
bool metrics_is_due(struct metrics *metrics, enum metric metric, int64_t now_ms, int64_t period_ms);

/* Notes a time in a histogram. */
void metrics_observe(struct metrics *metrics, enum metric metric, unsigned a, int64_t ms);

/* The name of a metric, what scope it belongs to. */
const char *metrics_name(enum metric metric);
enum metric_scope metrics_scope(enum metric metric);

/* The lines # HELP and # TYPE of a metric. */
void metrics_print_head(enum metric metric, struct text *text);

/*
 * The lines of samples that are not 0.  label is printed before the metric's own
 * ("worker=\"a:1\""), "" for none.
 */
void metrics_print(const struct metrics *metrics, enum metric metric, const char *label, struct text *text);

#endif
