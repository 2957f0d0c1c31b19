/*
 * GET /healthz, /readyz, /metrics: for the machine that the pool runs on, and
 * nobody else.  nginx keeps others out; this file does so again, for a site
 * whose nginx is set up otherwise.
 */
#include <inttypes.h>
#include <string.h>

#include "api/tables.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "domain/health.h"
#include "http/response.h"

enum { store_read_ms = 5 * 60 * 1000 };

/* Strangers learn nothing, not even that there is something here. */
static enum iw_error local_check(struct request *request)
{
    const char *address = request_parameter(request, "REMOTE_ADDR");
    if (address != NULL && (strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0))
        return IW_OK;
    return context_fail(request->context, IW_RESOURCE_NOT_FOUND, NULL);
}

static struct text *plain_begin(struct request *request)
{
    response_header(request, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    return &request->response.body;
}

/* A process of the pool took the request: that is all there is to say. */
static enum iw_error healthz(struct request *request)
{
    enum iw_error error = local_check(request);
    if (error == IW_OK)
        text_add_string(plain_begin(request), "ok\n");
    return error;
}

/* Without Redis the service goes on; without database or store it does not. */
static enum iw_error readyz(struct request *request)
{
    enum iw_error error = local_check(request);
    if (error != IW_OK)
        return error;
    struct health health = health_check(request->domain);
    text_printf(plain_begin(request), "database %s\nstore %s\nredis %s\n",
                health.has_database ? "ok" : "away", health.has_store ? "ok" : "away",
                health.has_redis ? "ok" : "away, going on without limits");
    response_status(request, health.has_database && health.has_store ? 200 : 503);
    return IW_OK;
}

/* ---- metrics ---- */

static void gauge_head(struct text *text, const char *name, const char *help)
{
    text_printf(text, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static void gauge_one(struct text *text, const char *name, const char *help, int64_t value)
{
    gauge_head(text, name, help);
    text_printf(text, "%s %" PRId64 "\n", name, value);
}

static void gauges_print(struct text *text, const char *name, const char *help,
                         const struct query_count *gauges, unsigned count)
{
    gauge_head(text, name, help);
    for (unsigned i = 0; i < count; i++)
        text_printf(text, "%s{state=\"%s\"} %" PRId64 "\n", name, gauges[i].state, gauges[i].count);
}

static void jobs_print(struct text *text, const struct jobs_count *counts, unsigned count)
{
    gauge_head(text, "imgward_queue_jobs", "Jobs by kind and state; those that ended, of the last day.");
    for (unsigned i = 0; i < count; i++)
        text_printf(text, "imgward_queue_jobs{kind=\"%s\",state=\"%s\"} %" PRId64 "\n",
                    job_kind_name(counts[i].kind), job_state_name(counts[i].state), counts[i].count);
    gauge_head(text, "imgward_queue_oldest_seconds", "How long the oldest job that waits has waited.");
    for (unsigned i = 0; i < count; i++)
        if (counts[i].state == JOB_QUEUED)
            text_printf(text, "imgward_queue_oldest_seconds{kind=\"%s\"} %" PRId64 "\n",
                        job_kind_name(counts[i].kind), counts[i].oldest_s);
}

/* Of a worker's samples those of one metric. */
static void samples_pick(struct text *text, const char *samples, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = samples; line != NULL && *line != '\0';) {
        size_t size = strcspn(line, "\n");
        if (strncmp(line, name, length) == 0 && strchr("{_ ", line[length]) != NULL) {
            text_add(text, line, size);
            text_add_string(text, "\n");
        }
        line += size + (line[size] == '\n');
    }
}

static void workers_print(struct text *text, const struct worker_row *workers, unsigned count)
{
    gauge_head(text, "imgward_worker_up", "1 while a worker gives signs of life.");
    for (unsigned i = 0; i < count; i++)
        text_printf(text, "imgward_worker_up{worker=\"%s:%" PRId64 "\",version=\"%s\"} %d\n", workers[i].host,
                    workers[i].pid, workers[i].version, health_worker_is_up(&workers[i]));
    gauge_head(text, "imgward_worker_busy", "Jobs that a worker has under way.");
    for (unsigned i = 0; i < count; i++)
        text_printf(text, "imgward_worker_busy{worker=\"%s:%" PRId64 "\"} %" PRId64 "\n", workers[i].host,
                    workers[i].pid, workers[i].busy);
    for (unsigned metric = 0; metric < METRIC_COUNT; metric++) {
        if (metrics_scope((enum metric)metric) != METRIC_SCOPE_WORKER)
            continue;
        metrics_print_head((enum metric)metric, text);
        for (unsigned i = 0; i < count; i++)
            samples_pick(text, workers[i].metrics, metrics_name((enum metric)metric));
    }
}

/* Dear for big tables, so one process reads it now and then, for all. */
static void store_refresh(struct request *request)
{
    struct query_count *gauges;
    unsigned count;
    if (!metrics_is_due(request->metrics, METRIC_STORE_BYTES, clock_monotonic_ms(), store_read_ms) ||
        !health_store_bytes(request->domain, &gauges, &count))
        return;
    for (unsigned i = 0; i < count; i++)
        metrics_set(request->metrics, METRIC_STORE_BYTES, i, (uint64_t)gauges[i].count);
}

/* What is read from the database; what could not be read is left out. */
static void numbers_print(struct text *text, const struct health_numbers *numbers)
{
    jobs_print(text, numbers->jobs, numbers->job_count);
    if (numbers->orders != NULL)
        gauges_print(text, "imgward_orders", "Orders that wait for files or are under way.", numbers->orders,
                     numbers->order_count);
    if (numbers->deliveries != NULL)
        gauges_print(text, "imgward_deliveries", "Webhook deliveries that are remembered.",
                     numbers->deliveries, numbers->delivery_count);
    if (numbers->delivery_oldest_s >= 0)
        gauge_one(text, "imgward_delivery_oldest_seconds",
                  "How long the oldest delivery that is due has waited.", numbers->delivery_oldest_s);
    if (numbers->paused >= 0)
        gauge_one(text, "imgward_queue_paused", "1 while an operator keeps the workers from new jobs.",
                  numbers->paused);
    if (numbers->workers != NULL)
        workers_print(text, numbers->workers, numbers->worker_count);
}

static void pool_print(const struct request *request, struct text *text)
{
    for (unsigned metric = 0; metric < METRIC_COUNT; metric++)
        if (metrics_scope((enum metric)metric) == METRIC_SCOPE_POOL) {
            metrics_print_head((enum metric)metric, text);
            metrics_print(request->metrics, (enum metric)metric, "", text);
        }
}

static enum iw_error metrics(struct request *request)
{
    struct health_numbers numbers;
    enum iw_error error = local_check(request);
    if (error != IW_OK)
        return error;
    struct text *text = plain_begin(request);
    store_refresh(request);
    pool_print(request, text);
    struct health health = health_check(request->domain);
    if (health.has_database && health_numbers(request->domain, &numbers))
        numbers_print(text, &numbers);
    gauge_one(text, "imgward_database_up", "1 while the database answers.", health.has_database);
    gauge_one(text, "imgward_redis_up", "1 while Redis answers.", health.has_redis);
    if (health.has_store) {
        gauge_one(text, "imgward_store_free_bytes", "Free bytes of the store's file system.",
                  health.free_bytes);
        gauge_one(text, "imgward_store_size_bytes", "Size of the store's file system in bytes.",
                  health.size_bytes);
    }
    return IW_OK;
}

const struct route api_watch[] = {
    {METHOD_GET, "/healthz", healthz, ROUTE_OPEN},
    {METHOD_GET, "/readyz", readyz, ROUTE_OPEN},
    {METHOD_GET, "/metrics", metrics, ROUTE_OPEN},
    {.pattern = NULL},
};
