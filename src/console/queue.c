/* Queue, workers, failed jobs and health, for users of the operator. */
#include <inttypes.h>
#include <string.h>

#include "api/page.h"
#include "base/message.h"
#include "console/gate.h"
#include "console/tables.h"
#include "console/view.h"
#include "base/clock.h"
#include "domain/health.h"
#include "domain/orders/job_retry.h"
#include "domain/people/mail.h"
#include "http/response.h"

enum { oldest_warning_s = 300 };

static void workers_render(struct render *render, struct arena *arena, const struct health_numbers *numbers)
{
    int64_t now_ms = clock_now_ms();
    render_array_begin(render, "workers");
    for (unsigned i = 0; numbers->workers != NULL && i < numbers->worker_count; i++) {
        const struct worker_row *worker = &numbers->workers[i];
        render_object_begin(render, NULL);
        render_string(render, "name", arena_printf(arena, "%s:%lld", worker->host, (long long)worker->pid));
        render_string(render, "host", worker->host);
        render_time(render, "startedAt", worker->started_ms);
        render_time(render, "seenAt", now_ms - worker->silent_s * 1000);
        render_integer(render, "processes", worker->places);
        render_integer(render, "busy", worker->busy);
        render_object_end(render);
    }
    render_array_end(render);
}

static enum iw_error queue_show(struct request *request)
{
    struct health_numbers numbers;
    struct job_retry_rows dead;
    if (!health_numbers(request->domain, &numbers))
        return context_fail(request->context, IW_SERVICE_UNAVAILABLE, NULL);
    enum iw_error error = job_retry_list(request->domain, 1, 0, &dead);
    if (error != IW_OK)
        return error;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_integer(render, "queued", health_number(&numbers, CENSUS_JOBS, "queued"));
    render_integer(render, "running", health_number(&numbers, CENSUS_JOBS, "leased"));
    render_integer(render, "dead", dead.total);
    render_integer(render, "refused", health_number(&numbers, CENSUS_JOBS, "refused"));
    render_integer(render, "oldestQueuedSeconds", health_oldest_s(&numbers, CENSUS_JOBS, "queued"));
    render_integer(render, "deliveriesPending", health_number(&numbers, CENSUS_DELIVERIES, "pending"));
    render_boolean(render, "isPaused", numbers.paused == 1);
    workers_render(render, request->arena, &numbers);
    render_object_end(render);
    return IW_OK;
}

static enum iw_error jobs_show(struct request *request)
{
    struct page page;
    struct job_retry_rows rows;
    page_read(request, &page);
    const char *status = request_query(request, "status");
    if (status != NULL && strcmp(status, "dead") != 0)
        context_detail(request->context, "status", "must be dead");
    enum iw_error error = context_validated(request->context);
    if (error == IW_OK)
        error =
            job_retry_list(request->domain, page.limit < 0 ? 1000 : page.limit, page_offset(&page), &rows);
    if (error != IW_OK)
        return error;
    struct render *render = page_begin(request, "jobs");
    for (size_t i = 0; i < rows.count; i++) {
        render_object_begin(render, NULL);
        render_id(render, "id", rows.items[i].id);
        render_string(render, "kind", rows.items[i].kind);
        render_id(render, "orderId", rows.items[i].order_id);
        render_id(render, "accountId", rows.items[i].account_id);
        render_integer(render, "attempts", rows.items[i].attempts);
        render_string(render, "error", rows.items[i].reason);
        render_boolean(render, "canRetry", rows.items[i].is_retryable);
        render_time(render, "updatedAt", rows.items[i].updated_ms);
        render_object_end(render);
    }
    page_end(render, &page, rows.total);
    return IW_OK;
}

static enum iw_error job_retry(struct request *request)
{
    int64_t id;
    const struct audit_client client = gate_client(request);
    const struct audit_actor actor = audit_actor_of(&request->session->user, &client);
    enum iw_error error = view_id(request, "jobId", &id);
    if (error == IW_OK)
        error = job_retry_request(request->domain, id, &actor);
    return error == IW_OK ? view_nothing(request) : error;
}

/* ---- health ---- */

enum verdict { VERDICT_OK, VERDICT_WARNING, VERDICT_FAILED };

static void check_render(struct render *render, const char *name, enum verdict verdict, const char *message)
{
    static const char *const words[] = {"ok", "warning", "failed"};
    render_object_begin(render, NULL);
    render_string(render, "name", name);
    render_string(render, "status", words[verdict]);
    render_string(render, "message", message);
    message_render(render, message);
    render_object_end(render);
}

/* Reports the first worker with a failure, or the first worker if there is no failure. */
static void images_check(struct render *render, struct arena *arena, const struct health_numbers *numbers)
{
    bool is_well = true;
    const char *text = NULL;
    for (unsigned i = 0; numbers->workers != NULL && i < numbers->worker_count && is_well; i++)
        if (health_worker_is_up(&numbers->workers[i]))
            text =
                arena_printf(arena, "%s:%" PRId64 ": %s", numbers->workers[i].host, numbers->workers[i].pid,
                             health_worker_text(arena, &numbers->workers[i], &is_well));
    if (text != NULL)
        check_render(render, "imageProcesses", is_well ? VERDICT_OK : VERDICT_FAILED, text);
}

static void mail_check(struct render *render, struct arena *arena, const struct health_numbers *numbers)
{
    const struct worker_row *failed = health_mail_failed(numbers->workers, numbers->worker_count);
    check_render(render, "mail", failed == NULL ? VERDICT_OK : VERDICT_WARNING,
                 failed == NULL
                     ? message_mail_well
                     : arena_printf(arena, message_mail_failed, clock_iso_text(arena, failed->mail_failed_ms),
                                    failed->mail_reason));
}

static void numbers_check(struct render *render, struct arena *arena, const struct config *config,
                          const struct health_numbers *numbers)
{
    unsigned up = 0;
    for (unsigned i = 0; numbers->workers != NULL && i < numbers->worker_count; i++)
        up += health_worker_is_up(&numbers->workers[i]);
    int64_t near_limit = health_number(numbers, CENSUS_ACCOUNTS, "near_limit");
    int64_t oldest = health_oldest_s(numbers, CENSUS_JOBS, "queued");
    check_render(render, "workers", up > 0 ? VERDICT_OK : VERDICT_FAILED,
                 up > 0 ? arena_printf(arena, message_workers_well, up, numbers->worker_count)
                        : message_workers_silent);
    images_check(render, arena, numbers);
    if (mail_is_on(config))
        mail_check(render, arena, numbers);
    check_render(render, "queue",
                 numbers->paused == 1 || oldest > oldest_warning_s ? VERDICT_WARNING : VERDICT_OK,
                 numbers->paused == 1 ? message_queue_paused
                                      : arena_printf(arena, message_queue_oldest, (long long)oldest));
    check_render(render, "quotas", near_limit > 0 ? VERDICT_WARNING : VERDICT_OK,
                 arena_printf(arena, message_quotas_near, (long long)near_limit));
}

static enum iw_error health_show(struct request *request)
{
    struct health_numbers numbers;
    struct health health = health_check(request->domain);
    struct arena *arena = request->arena;
    /* The free space of an object store is unknown. */
    bool has_room =
        health.has_store && (!health.has_room || health.free_bytes >= request->config->store_free_min_bytes);
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_array_begin(render, "checks");
    check_render(render, "database", health.has_database ? VERDICT_OK : VERDICT_FAILED,
                 health.has_database ? message_database_well
                                     : arena_printf(arena, message_database_silent, health.database_cause));
    check_render(render, "redis", health.has_redis ? VERDICT_OK : VERDICT_WARNING,
                 health.has_redis ? message_redis_well
                                  : arena_printf(arena, message_redis_silent, health.redis_cause));
    check_render(render, "fileStore", has_room ? VERDICT_OK : VERDICT_FAILED,
                 !health.has_store  ? arena_printf(arena, message_store_silent, health.store_cause)
                 : !health.has_room ? message_store_well
                                    : arena_printf(arena, message_store_room, (double)health.free_bytes / 1e9,
                                                   (double)health.size_bytes / 1e9));
    if (health.has_database && health_numbers(request->domain, &numbers))
        numbers_check(render, arena, request->config, &numbers);
    render_array_end(render);
    render_object_end(render);
    return IW_OK;
}

const struct route console_queue[] = {
    {METHOD_GET, "/api/admin/queue", queue_show, ROUTE_OPERATOR},
    {METHOD_GET, "/api/admin/jobs", jobs_show, ROUTE_OPERATOR},
    {METHOD_POST, "/api/admin/jobs/{jobId}/retry", job_retry, ROUTE_OPERATOR},
    {METHOD_GET, "/api/admin/health", health_show, ROUTE_OPERATOR},
    {.pattern = NULL},
};
