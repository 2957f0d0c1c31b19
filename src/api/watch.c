/*
 * GET /healthz, /readyz, /metrics: only for clients on the pool's machine.  nginx
 * refuses other clients; this file refuses them again, in case of another nginx
 * configuration.
 */
#include <inttypes.h>
#include <string.h>

#include "api/tables.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/process.h"
#include "domain/health.h"
#include "http/response.h"

/* 404 for other clients: they do not learn that the path exists. */
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

/* Healthy means only that a process of the pool serves requests. */
static enum iw_error show_health(struct request *request)
{
    enum iw_error error = local_check(request);
    if (error == IW_OK)
        text_add_string(plain_begin(request), "ok\n");
    return error;
}

static void dependency_print(struct text *text, const char *name, const char *cause, const char *effect)
{
    text_printf(text, "%s %s%s%s\n", name, cause == NULL ? "ok" : "away: ", cause == NULL ? "" : cause,
                cause == NULL ? "" : effect);
}

/* Database and store are required.  The service works without Redis. */
static enum iw_error show_readiness(struct request *request)
{
    enum iw_error error = local_check(request);
    if (error != IW_OK)
        return error;
    struct health health = health_check(request->domain);
    struct text *text = plain_begin(request);
    dependency_print(text, "database", health.database_cause, "");
    dependency_print(text, "store", health.store_cause, "");
    dependency_print(text, "redis", health.redis_cause, "; requests are not limited");
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

/* The numbers of a source by state. */
static void states_print(struct text *text, const char *name, const char *help,
                         const struct census_rows *rows, enum census_source source)
{
    gauge_head(text, name, help);
    for (const struct census_row *row = rows->items; row < rows->items + rows->count; row++)
        if (row->source == source)
            text_printf(text, "%s{state=\"%s\"} %" PRId64 "\n", name, row->state, row->number);
}

static void jobs_print(struct text *text, const struct census_rows *rows)
{
    gauge_head(text, "imgward_queue_jobs", "Jobs by kind and state; ended jobs only of the last day.");
    for (const struct census_row *row = rows->items; row < rows->items + rows->count; row++)
        if (row->source == CENSUS_JOBS)
            text_printf(text, "imgward_queue_jobs{kind=\"%s\",state=\"%s\"} %" PRId64 "\n", row->kind,
                        row->state, row->number);
    gauge_head(text, "imgward_queue_oldest_seconds", "How long the oldest waiting job has waited.");
    for (const struct census_row *row = rows->items; row < rows->items + rows->count; row++)
        if (row->source == CENSUS_JOBS && strcmp(row->state, "queued") == 0)
            text_printf(text, "imgward_queue_oldest_seconds{kind=\"%s\"} %" PRId64 "\n", row->kind,
                        health_age_s(row));
}

/* Prints the lines of one metric among a worker's samples. */
static void samples_print(struct text *text, const char *samples, const char *name)
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

static int64_t worker_busy(const struct worker_row *worker)
{
    return worker->busy;
}

static int64_t worker_image_ready(const struct worker_row *worker)
{
    return worker->image_ready;
}

static int64_t worker_image_failing_s(const struct worker_row *worker)
{
    return worker->image_failing_ms == 0 ? 0 : 1 + (clock_now_ms() - worker->image_failing_ms) / 1000;
}

static int64_t worker_store_up(const struct worker_row *worker)
{
    return health_has_store(worker->store_failed_ms);
}

/* The state of each worker that is up; a dead worker reports nothing. */
static const struct {
    const char *name, *help;
    int64_t (*value)(const struct worker_row *worker);
} worker_gauges[] = {
    {"imgward_worker_busy", "Jobs in progress in a worker.", worker_busy},
    {"imgward_worker_image_ready", "Image processes that are sealed and can work.", worker_image_ready},
    {"imgward_worker_image_failing_seconds",
     "How long image processes have failed to start; 0 if none fails.", worker_image_failing_s},
    {"imgward_worker_store_up", "0 while the worker cannot access the file store.", worker_store_up},
};

static void workers_print(struct text *text, const struct worker_row *workers, unsigned count)
{
    gauge_head(text, "imgward_worker_up", "1 while a worker sends heartbeats.");
    for (unsigned i = 0; i < count; i++)
        text_printf(text, "imgward_worker_up{worker=\"%s:%" PRId64 "\",version=\"%s\"} %d\n", workers[i].host,
                    workers[i].pid, workers[i].version, health_worker_is_up(&workers[i]));
    for (size_t gauge = 0; gauge < sizeof worker_gauges / sizeof worker_gauges[0]; gauge++) {
        gauge_head(text, worker_gauges[gauge].name, worker_gauges[gauge].help);
        for (unsigned i = 0; i < count; i++)
            if (health_worker_is_up(&workers[i]))
                text_printf(text, "%s{worker=\"%s:%" PRId64 "\"} %" PRId64 "\n", worker_gauges[gauge].name,
                            workers[i].host, workers[i].pid, worker_gauges[gauge].value(&workers[i]));
    }
    gauge_one(text, "imgward_mail_failing", "1 if the last mail could not be sent.",
              health_mail_failed(workers, count) != NULL);
    for (unsigned metric = 0; metric < METRIC_COUNT; metric++) {
        if (metrics_scope((enum metric)metric) != METRIC_SCOPE_WORKER)
            continue;
        metrics_print_head((enum metric)metric, text);
        for (unsigned i = 0; i < count; i++)
            samples_print(text, workers[i].metrics, metrics_name((enum metric)metric));
    }
}

static void store_set(struct metrics *metrics, const struct health_numbers *numbers)
{
    static const char *const names[] = {[METRIC_STORE_INPUTS] = "inputs",
                                        [METRIC_STORE_RESULTS] = "results",
                                        [METRIC_STORE_ARCHIVES] = "archives"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        metrics_set(metrics, METRIC_STORE_BYTES, i,
                    (uint64_t)health_number(numbers, CENSUS_INPUTS + i, names[i]));
}

/* Prints the numbers of the database, without those that could not be read. */
static void numbers_print(struct text *text, const struct health_numbers *numbers)
{
    jobs_print(text, &numbers->rows);
    states_print(text, "imgward_orders", "Orders that are pending or in progress.", &numbers->rows,
                 CENSUS_ORDERS);
    states_print(text, "imgward_deliveries", "Webhook deliveries that are kept in the database.",
                 &numbers->rows, CENSUS_DELIVERIES);
    gauge_one(text, "imgward_delivery_oldest_seconds", "How long the oldest due delivery has waited.",
              health_oldest_s(numbers, CENSUS_DELIVERIES, "pending"));
    if (numbers->paused >= 0)
        gauge_one(text, "imgward_queue_paused", "1 while the queue is paused, so that workers start no jobs.",
                  numbers->paused);
    gauge_one(text, "imgward_accounts_near_limit", "Accounts that use 80 % or more of a limit.",
              health_number(numbers, CENSUS_ACCOUNTS, "near_limit"));
    if (numbers->cluster_size >= 0)
        gauge_one(text, "imgward_database_cluster_size", "Nodes of the database cluster; 0 without Galera.",
                  numbers->cluster_size);
    if (numbers->workers != NULL)
        workers_print(text, numbers->workers, numbers->worker_count);
}

static enum iw_error show_metrics(struct request *request)
{
    struct health_numbers numbers;
    enum iw_error error = local_check(request);
    if (error != IW_OK)
        return error;
    struct text *text = plain_begin(request);
    struct health health = health_check(request->domain);
    bool has_numbers = health.has_database && health_numbers(request->domain, &numbers);
    if (has_numbers)
        store_set(request->metrics, &numbers);
    for (unsigned metric = 0; metric < METRIC_COUNT; metric++)
        if (metrics_scope((enum metric)metric) == METRIC_SCOPE_POOL) {
            metrics_print_head((enum metric)metric, text);
            metrics_print(request->metrics, (enum metric)metric, "", text);
        }
    if (has_numbers)
        numbers_print(text, &numbers);
    gauge_one(text, "imgward_database_up", "1 while the database answers.", health.has_database);
    gauge_one(text, "imgward_redis_up", "1 while Redis answers.", health.has_redis);
    gauge_one(text, "imgward_store_up", "1 while the file store answers.", health.has_store);
    if (request->config->console_enabled)
        gauge_one(text, "imgward_console_up", "1 while the console's pool on this host accepts connections.",
                  process_listens(request->config->console_socket));
    if (health.has_room) {
        gauge_one(text, "imgward_store_free_bytes", "Free bytes of the store's file system.",
                  health.free_bytes);
        gauge_one(text, "imgward_store_size_bytes", "Size of the store's file system in bytes.",
                  health.size_bytes);
    }
    return IW_OK;
}

const struct route api_watch[] = {
    {METHOD_GET, "/healthz", show_health, ROUTE_OPEN},
    {METHOD_GET, "/readyz", show_readiness, ROUTE_OPEN},
    {METHOD_GET, "/metrics", show_metrics, ROUTE_OPEN},
    {.pattern = NULL},
};
