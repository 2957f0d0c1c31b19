#include "http/serve.h"

#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "domain/accounts/request_log.h"
#include "domain/domain.h"
#include "http/auth.h"
#include "http/edge.h"
#include "http/failure.h"
#include "http/in_flight.h"
#include "http/request_metrics.h"
#include "http/response.h"
#include "http/scope.h"
#include "model/account.h"
#include "model/plan.h"

/* Authenticates the client. The request of a suspended account counts, too. */
static enum iw_error client_identify(struct request *request)
{
    const struct edge *edge = request->edge;
    const char *prefix = request->config->redis_prefix;
    enum iw_error error = edge != NULL ? edge->authenticate(request) : auth_check(request);
    if (edge != NULL && edge->counter[0] != '\0')
        prefix = arena_printf(request->arena, "%s%s", prefix, edge->counter);
    const struct account *account = request->account;
    if (account != NULL)
        admission_init(&request->admission, request->domain->redis, request->context, prefix, account->id,
                       (unsigned)plan_rate(request->config, account->plan, account->requests_per_minute));
    return error;
}

/* Takes one of the account's slots for requests in progress. RATE_LIMIT_EXCEEDED if all slots are in use. */
static enum iw_error place_take(struct request *request)
{
    const struct account *account = request->account;
    unsigned most = account->in_flight_max;
    if (most == 0)
        most = (unsigned)plan_of(request->config, account->plan)->in_flight_max;
    if (in_flight_enter(request->in_flight, request->in_flight_slot, account->id, most))
        return IW_OK;
    request->context->reason = "in_flight";
    request->context->retry_after_s = in_flight_retry_s;
    return context_fail(
        request->context, IW_RATE_LIMIT_EXCEEDED,
        "Your plan allows %u requests at the same time; repeat this request when another one has ended.",
        most);
}

/*
 * Limits a request without a route like any other request, by its API key. RATE_LIMIT_EXCEEDED, or the error
 * of route_find.
 */
static enum iw_error routeless_limit(struct request *request, const struct route *const *tables)
{
    if (strncmp(request->path, "/api/", 5) != 0 || request_header(request, "Authorization") == NULL)
        return request->context->error;
    response_clear(request);
    context_clear(request->context);
    enum iw_error error = client_identify(request);
    if (error == IW_RATE_LIMIT_EXCEEDED)
        return error;
    context_clear(request->context);
    return route_find(request, tables);
}

/*
 * Authenticates the client and starts the admission. A read runs its SQL meanwhile; a write waits for the
 * admission first.
 */
static enum iw_error request_admit(struct request *request)
{
    const struct edge *edge = request->edge;
    enum iw_error error = edge != NULL && edge->guard != NULL ? edge->guard(request) : IW_OK;
    if (error != IW_OK || (request->route->flags & ROUTE_OPEN) != 0)
        return error;
    error = client_identify(request);
    if (error == IW_OK)
        error = place_take(request);
    if (error != IW_OK)
        return error;
    if ((request->route->flags & ROUTE_ADMITS) != 0)
        return scope_check(request);
    admission_send(&request->admission);
    if (request->method != METHOD_GET)
        error = admission_receive(&request->admission);
    return error == IW_OK ? scope_check(request) : error;
}

static void request_print(const struct request *request, enum iw_error error, int64_t ms)
{
    const struct context *context = request->context;
    if (error == IW_SERVER_INTERNAL_ERROR || error == IW_SERVICE_UNAVAILABLE || context->cause != NULL)
        log_failure(context, "request_failed");
    log_event(LOG_INFO, context, "request", LOG_TEXT("method", request->method_name),
              LOG_TEXT("path", request->path), LOG_NUMBER("status", request->response.status),
              LOG_TEXT("code", iw_error_code(error)), LOG_NUMBER("bytes", request->response.sent_bytes),
              LOG_NUMBER("ms", ms));
}

/* Reads that succeed are the most requests, and say the least: their bodies are not kept. */
static bool keeps_bodies(const struct request *request, enum iw_error error)
{
    return request->config->console_keep_bodies && (request->method != METHOD_GET || error != IW_OK);
}

/* Records requests with an API key, for the developers of the account. */
static void request_note(const struct request *request, enum iw_error error, int64_t ms)
{
    const struct account *account = request->account;
    /* A request that the rate limiter refused adds no row, because a client could send thousands a second. */
    if (account == NULL || account->key_id == 0 || error == IW_RATE_LIMIT_EXCEEDED)
        return;
    const struct request_log_pair bodies = {.request = request->body != NULL ? request->body : "",
                                            .request_bytes = request->body_length,
                                            .response = request->response.body.data,
                                            .response_bytes = request->response.body.length};
    request_log_add(request->log,
                    &(struct request_log_row){.account_id = account->id,
                                              .key_id = account->key_id,
                                              .request_id = request->context->request_id,
                                              .method = request->method_name,
                                              .path = request->path,
                                              .status = request->response.status,
                                              .code = error != IW_OK ? iw_error_code(error) : "",
                                              .ms = ms,
                                              .at_ms = clock_now_ms()},
                    keeps_bodies(request, error) ? &bodies : NULL);
}

static int64_t body_limit(const struct request *request)
{
    int64_t most = request->config->api_body_max_bytes;
    int64_t open_most = request->edge != NULL ? request->edge->open_body_bytes_max : 0;
    bool is_open = request->route != NULL && (request->route->flags & ROUTE_OPEN) != 0;
    return is_open && open_most > 0 && open_most < most ? open_most : most;
}

void serve(struct request *request, const struct route *const *tables)
{
    response_init(request);
    enum iw_error error = route_find(request, tables);
    request->body_bytes_max = body_limit(request);
    error = error == IW_OK ? request_admit(request) : routeless_limit(request, tables);
    if (error == IW_OK) {
        fault_point(FAULT_REQUEST_ADMITTED, "");
        error = request->route->handle(request);
        if (error == IW_OK && request->edge != NULL && request->edge->changed != NULL)
            request->edge->changed(request);
    }
    /*
     * Every authenticated response has the numbers of the rate limit, even if the request failed before its
     * admission.
     */
    admission_send(&request->admission);
    enum iw_error refused = admission_receive(&request->admission);
    if (refused != IW_OK)
        error = refused;
    if (error != IW_OK && request->response.is_stream_begun) {
        request->response.is_broken = true;
    } else {
        if (error != IW_OK)
            failure_render(request);
        response_send(request);
    }
    in_flight_leave(request->in_flight, request->in_flight_slot);
    int64_t ms = clock_monotonic_ms() - request->started_ms;
    request_print(request, error, ms);
    request_note(request, error, ms);
    request_metrics_count(request, tables, error, ms);
}
