#include "http/serve.h"

#include <imgward/fault.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/auth.h"
#include "http/failure.h"
#include "http/limit.h"
#include "http/request_metrics.h"
#include "http/response.h"

/* Reads do their SQL while Redis thinks; writes must know first that they may. */
static enum iw_error step_limit(struct request *request)
{
    if ((request->route->flags & (ROUTE_OPEN | ROUTE_ADMITS)) != 0)
        return IW_OK;
    limit_send(request);
    return request->method == METHOD_GET ? IW_OK : limit_receive(request);
}

static enum iw_error step_auth(struct request *request)
{
    return (request->route->flags & ROUTE_OPEN) != 0 ? IW_OK : auth_check(request);
}

static enum iw_error step_handle(struct request *request)
{
    fault_point(FAULT_REQUEST_ADMITTED);
    return request->route->handle(request);
}

static enum iw_error (*const steps[])(struct request *request) = {step_auth, step_limit, step_handle};

/* Makes sure that an authenticated answer knows the limit, also one that failed early. */
static enum iw_error limit_settle(struct request *request, enum iw_error error)
{
    if (request->account == NULL)
        return error;
    limit_send(request);
    enum iw_error refused = limit_receive(request);
    return refused != IW_OK ? refused : error;
}

static void answer(struct request *request, enum iw_error error)
{
    if (error != IW_OK && request->response.is_stream_begun) {
        request->response.is_broken = true;
        return;
    }
    if (error != IW_OK)
        failure_render(request);
    response_send(request);
}

static void line_log(const struct request *request, enum iw_error error, int64_t ms)
{
    const struct context *context = request->context;
    if (error == IW_SERVER_INTERNAL_ERROR || error == IW_SERVICE_UNAVAILABLE || context->cause != NULL)
        log_failure(context, "request_failed");
    log_event(LOG_INFO, context, "request", LOG_TEXT("method", request->method_name),
              LOG_TEXT("path", request->path), LOG_NUMBER("status", request->response.status),
              LOG_TEXT("code", iw_error_code(error)), LOG_NUMBER("bytes", request->response.sent_bytes),
              LOG_NUMBER("ms", ms));
}

void serve(struct request *request, const struct route *const *tables)
{
    response_init(request);
    enum iw_error error = route_find(request, tables);
    for (size_t i = 0; error == IW_OK && i < sizeof steps / sizeof steps[0]; i++)
        error = steps[i](request);
    error = limit_settle(request, error);
    fault_point(FAULT_REQUEST_WORKED);
    answer(request, error);
    int64_t ms = clock_monotonic_ms() - request->started_ms;
    line_log(request, error, ms);
    request_metrics_count(request, tables, error, ms);
}
