#include "base/metrics.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"

/* Cells of a histogram: the buckets, the bucket +Inf, and the sum in milliseconds. */
enum { bucket_count = 14, histogram_cells = bucket_count + 2, values_max = 8 };

/*
 * METRIC_COUNTER_MS: counts milliseconds and prints seconds, the base unit of Prometheus.
 * METRIC_HISTOGRAM_LONG: what may wait for other work.
 */
enum metric_type { METRIC_COUNTER, METRIC_COUNTER_MS, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_HISTOGRAM_LONG };

/*
 * Of one piece of work: the default of Prometheus's libraries, 5 ms to 10 s, and to the longest time limits.
 * Of long histograms: from a small picture (0.1 s) in the same steps. 300 s is the limit of the alert
 * ImgwardQueueOld, 900 s job_wait_max_ms; after 3,600 s an upload URL has expired, and after a day
 * (orders.stuck_s) an order fails.
 */
static const int64_t buckets_ms[][bucket_count] = {
    {5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000},
    {100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 120000, 300000, 900000, 3600000, 86400000}};

/* The source of the values of a label: this table, the program's endpoints, or the error codes. */
enum metric_values { VALUES_NONE, VALUES_LISTED, VALUES_ENDPOINTS, VALUES_ERRORS };

struct metric_label {
    const char *name;
    enum metric_values kind;
    const char *values[values_max];
};

#define ENDPOINT                                                                                             \
    {                                                                                                        \
        "endpoint", VALUES_ENDPOINTS,                                                                        \
        {                                                                                                    \
            NULL                                                                                             \
        }                                                                                                    \
    }
#define JOB_KIND                                                                                             \
    {                                                                                                        \
        "kind", VALUES_LISTED,                                                                               \
        {                                                                                                    \
            "protect", "embed", "extract", "archive", "fetch", "push"                                        \
        }                                                                                                    \
    }

static const struct {
    const char *name;
    enum metric_type type;
    enum metric_scope scope;
    struct metric_label labels[2];
    const char *help;
} kinds[METRIC_COUNT] = {
    [METRIC_REQUESTS] = {"imgward_requests_total",
                         METRIC_COUNTER,
                         METRIC_SCOPE_POOL,
                         {ENDPOINT, {"class", VALUES_LISTED, {"none", "1xx", "2xx", "3xx", "4xx", "5xx"}}},
                         "Requests answered, by endpoint and status class."},
    [METRIC_REQUEST_SECONDS] = {"imgward_request_seconds",
                                METRIC_HISTOGRAM,
                                METRIC_SCOPE_POOL,
                                {ENDPOINT},
                                "Time from the arrival of a request in the pool to the end of the response."},
    [METRIC_ERRORS] = {"imgward_errors_total",
                       METRIC_COUNTER,
                       METRIC_SCOPE_POOL,
                       {{"code", VALUES_ERRORS, {NULL}}},
                       "Requests that were answered with an error, by error code."},
    [METRIC_RATE_LIMITED] = {"imgward_rate_limited_total",
                             METRIC_COUNTER,
                             METRIC_SCOPE_POOL,
                             {{NULL, VALUES_NONE, {NULL}}},
                             "Requests refused by the rate limit."},
    [METRIC_USAGE_REFUSED] = {"imgward_usage_refused_total",
                              METRIC_COUNTER,
                              METRIC_SCOPE_POOL,
                              {{"limit",
                                VALUES_LISTED,
                                {"ordersPending", "filesPending", "promisedBytes", "storedBytes",
                                 "filesPerDay", "textsPerDay", "webhooks"}}},
                              "Creations refused by a limit of the account, by limit."},
    [METRIC_REDIS_AWAY] = {"imgward_redis_away_total",
                           METRIC_COUNTER,
                           METRIC_SCOPE_POOL,
                           {{NULL, VALUES_NONE, {NULL}}},
                           "Requests that were not rate limited because Redis was unavailable."},
    [METRIC_DATABASE_CHANGES] = {"imgward_database_changes_total",
                                 METRIC_COUNTER,
                                 METRIC_SCOPE_POOL,
                                 {{NULL, VALUES_NONE, {NULL}}},
                                 "Switches of the pool to another server of database.hosts."},
    [METRIC_DATABASE_SERVER] = {"imgward_database_server",
                                METRIC_GAUGE,
                                METRIC_SCOPE_POOL,
                                {{NULL, VALUES_NONE, {NULL}}},
                                "Number of the server in database.hosts that the pool uses, counted from 1."},
    [METRIC_CHILD_DEATHS] = {"imgward_pool_deaths_total",
                             METRIC_COUNTER,
                             METRIC_SCOPE_POOL,
                             {{NULL, VALUES_NONE, {NULL}}},
                             "Pool processes that died and were replaced."},
    [METRIC_STORE_BYTES] =
        {"imgward_store_bytes",
         METRIC_GAUGE,
         METRIC_SCOPE_POOL,
         {{"of", VALUES_LISTED, {"inputs", "results", "archives"}}},
         "Bytes of the files that are recorded in the database, updated every five minutes."},
    [METRIC_JOBS] = {"imgward_jobs_total",
                     METRIC_COUNTER,
                     METRIC_SCOPE_WORKER,
                     {JOB_KIND,
                      {"result", VALUES_LISTED, {"done", "retried", "failed", "refused", "cancelled"}}},
                     "Job attempts, by kind and outcome."},
    [METRIC_JOB_SECONDS] = {"imgward_job_seconds",
                            METRIC_HISTOGRAM,
                            METRIC_SCOPE_WORKER,
                            {JOB_KIND},
                            "Time from the start of a job attempt to the recorded outcome."},
    [METRIC_JOB_QUEUED] = {"imgward_job_queued_seconds",
                           METRIC_HISTOGRAM_LONG,
                           METRIC_SCOPE_WORKER,
                           {JOB_KIND},
                           "Time in the queue of a job attempt, from the time when it was due to its start."},
    [METRIC_ORDER_SECONDS] = {"imgward_order_seconds",
                              METRIC_HISTOGRAM_LONG,
                              METRIC_SCOPE_WORKER,
                              {{"type", VALUES_LISTED, {"antiAi", "watermarkEmbed", "watermarkExtract"}}},
                              "Time from the start of an order to its end, by type."},
    [METRIC_STAGE_MS] = {"imgward_image_stage_seconds_total",
                         METRIC_COUNTER_MS,
                         METRIC_SCOPE_WORKER,
                         {{"stage", VALUES_LISTED, {"decode", "engine", "encode", "thumbnail"}}},
                         "CPU time of image processes, by stage."},
    [METRIC_IMAGE_DEATHS] = {"imgward_image_deaths_total",
                             METRIC_COUNTER,
                             METRIC_SCOPE_WORKER,
                             {{"reason", VALUES_LISTED, {"crash", "timeout"}}},
                             "Image processes that died while processing a picture."},
    [METRIC_LEASES_LOST] = {"imgward_leases_lost_total",
                            METRIC_COUNTER,
                            METRIC_SCOPE_WORKER,
                            {{NULL, VALUES_NONE, {NULL}}},
                            "Leases that expired because their worker died or sent no heartbeat."},
    [METRIC_DELIVERIES] = {"imgward_deliveries_total",
                           METRIC_COUNTER,
                           METRIC_SCOPE_WORKER,
                           {{"result", VALUES_LISTED, {"delivered", "retried", "failed"}}},
                           "Webhook delivery attempts, by outcome."},
};

struct metrics {
    const char *const *endpoints;
    unsigned endpoint_count;
    unsigned begins[METRIC_COUNT]; /* index of the first cell of each metric */
    size_t block_bytes;
    _Atomic uint64_t *cells; /* shared with processes that are forked later */
};

static unsigned label_count(const struct metrics *metrics, const struct metric_label *label)
{
    unsigned count = 0;
    if (label->kind == VALUES_ENDPOINTS)
        return metrics->endpoint_count;
    if (label->kind == VALUES_ERRORS)
        return IW_ERROR_COUNT;
    while (count < values_max && label->values[count] != NULL)
        count++;
    return label->kind == VALUES_NONE ? 1 : count;
}

static const char *label_value(const struct metrics *metrics, const struct metric_label *label, unsigned at)
{
    if (label->kind == VALUES_ENDPOINTS)
        return metrics->endpoints[at];
    return label->kind == VALUES_ERRORS ? iw_error_code((enum iw_error)at) : label->values[at];
}

static const int64_t *buckets_of(enum metric metric)
{
    return buckets_ms[kinds[metric].type == METRIC_HISTOGRAM_LONG];
}

static unsigned series_cells(enum metric metric)
{
    return kinds[metric].type >= METRIC_HISTOGRAM ? histogram_cells : 1;
}

struct metrics *metrics_new(const char *const *endpoints, unsigned endpoint_count)
{
    unsigned cells = 0;
    struct metrics *metrics = calloc(1, sizeof *metrics);
    if (metrics == NULL)
        abort();
    metrics->endpoints = endpoints;
    metrics->endpoint_count = endpoint_count;
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        metrics->begins[i] = cells;
        cells += label_count(metrics, &kinds[i].labels[0]) * label_count(metrics, &kinds[i].labels[1]) *
                 series_cells((enum metric)i);
    }
    metrics->block_bytes = cells * sizeof *metrics->cells;
    metrics->cells =
        mmap(NULL, metrics->block_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (metrics->cells == MAP_FAILED)
        abort();
    return metrics;
}

void metrics_free(struct metrics *metrics)
{
    if (metrics == NULL)
        return;
    munmap(metrics->cells, metrics->block_bytes);
    free(metrics);
}

/* Returns the first cell of a series, or NULL for label values that are not in the table. */
static _Atomic uint64_t *series_at(const struct metrics *metrics, enum metric metric, unsigned a, unsigned b)
{
    unsigned wide = label_count(metrics, &kinds[metric].labels[1]);
    if (a >= label_count(metrics, &kinds[metric].labels[0]) || b >= wide)
        return NULL;
    return metrics->cells + metrics->begins[metric] + (a * wide + b) * series_cells(metric);
}

void metrics_add(struct metrics *metrics, enum metric metric, unsigned a, unsigned b, uint64_t amount)
{
    _Atomic uint64_t *cell = metrics == NULL ? NULL : series_at(metrics, metric, a, b);
    if (cell != NULL)
        atomic_fetch_add_explicit(cell, amount, memory_order_relaxed);
}

void metrics_set(struct metrics *metrics, enum metric metric, unsigned a, uint64_t value)
{
    _Atomic uint64_t *cell = metrics == NULL ? NULL : series_at(metrics, metric, a, 0);
    if (cell != NULL)
        atomic_store_explicit(cell, value, memory_order_relaxed);
}

void metrics_observe(struct metrics *metrics, enum metric metric, unsigned a, int64_t ms)
{
    unsigned bucket = 0;
    _Atomic uint64_t *cells = metrics == NULL ? NULL : series_at(metrics, metric, a, 0);
    if (cells == NULL)
        return;
    while (bucket < bucket_count && ms > buckets_of(metric)[bucket])
        bucket++;
    atomic_fetch_add_explicit(&cells[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&cells[bucket_count + 1], ms > 0 ? (uint64_t)ms : 0, memory_order_relaxed);
}

const char *metrics_name(enum metric metric)
{
    return kinds[metric].name;
}

enum metric_scope metrics_scope(enum metric metric)
{
    return kinds[metric].scope;
}

void metrics_print_head(enum metric metric, struct text *text)
{
    static const char *const types[] = {[METRIC_COUNTER] = "counter",
                                        [METRIC_COUNTER_MS] = "counter",
                                        [METRIC_GAUGE] = "gauge",
                                        [METRIC_HISTOGRAM] = "histogram",
                                        [METRIC_HISTOGRAM_LONG] = "histogram"};
    text_printf(text, "# HELP %s %s\n# TYPE %s %s\n", kinds[metric].name, kinds[metric].help,
                kinds[metric].name, types[kinds[metric].type]);
}

/* Writes the labels of a series: a="x",b="y". */
static void labels_write(const struct metrics *metrics, enum metric metric, const char *label,
                         const unsigned at[2], char *line, size_t size)
{
    int length = snprintf(line, size, "%s", label);
    for (int i = 0; i < 2 && length >= 0 && (size_t)length < size; i++) {
        const struct metric_label *one = &kinds[metric].labels[i];
        if (one->kind != VALUES_NONE)
            length += snprintf(line + length, size - (size_t)length, "%s%s=\"%s\"", length > 0 ? "," : "",
                               one->name, label_value(metrics, one, at[i]));
    }
}

static void histogram_print(enum metric metric, const char *labels, _Atomic uint64_t *cells,
                            struct text *text)
{
    uint64_t count = 0;
    const char *name = kinds[metric].name, *comma = labels[0] != '\0' ? "," : "";
    for (unsigned i = 0; i < bucket_count; i++)
        text_printf(text, "%s_bucket{%s%sle=\"%g\"} %" PRIu64 "\n", name, labels, comma,
                    (double)buckets_of(metric)[i] / 1000, count += cells[i]);
    count += cells[bucket_count];
    text_printf(text, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, comma, count);
    text_printf(text, "%s_sum{%s} %.3f\n%s_count{%s} %" PRIu64 "\n", name, labels,
                (double)cells[bucket_count + 1] / 1000, name, labels, count);
}

void metrics_print(const struct metrics *metrics, enum metric metric, const char *label, struct text *text)
{
    char labels[512];
    for (unsigned a = 0; a < label_count(metrics, &kinds[metric].labels[0]); a++)
        for (unsigned b = 0; b < label_count(metrics, &kinds[metric].labels[1]); b++) {
            _Atomic uint64_t *cells = series_at(metrics, metric, a, b);
            labels_write(metrics, metric, label, (const unsigned[]){a, b}, labels, sizeof labels);
            if (kinds[metric].type >= METRIC_HISTOGRAM)
                histogram_print(metric, labels, cells, text);
            else if (kinds[metric].type == METRIC_COUNTER_MS)
                text_printf(text, "%s{%s} %.3f\n", kinds[metric].name, labels, (double)cells[0] / 1000);
            else if (cells[0] > 0 || kinds[metric].type != METRIC_GAUGE)
                text_printf(text, "%s%s%s%s %" PRIu64 "\n", kinds[metric].name, labels[0] != '\0' ? "{" : "",
                            labels, labels[0] != '\0' ? "}" : "", (uint64_t)cells[0]);
        }
}
