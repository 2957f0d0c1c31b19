#include "http/failure.h"

#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/message.h"
#include "http/edge.h"
#include "http/response.h"

enum { retry_default_s = 2 };

/* Contract, section 8. Errors that are not listed are internal errors and answer 500. */
static const struct failure_status statuses[] = {
    {IW_VALIDATION_FAILED, 400},
    {IW_ORDER_NOT_PENDING, 400},
    {IW_ORDER_EXPIRED, 400},
    {IW_ORDER_NOT_COMPLETED, 400},
    {IW_ORDER_FILE_NOT_UPLOADED, 400},
    {IW_ORDER_TYPE_CANT_DOWNLOAD, 400},
    {IW_AUTH_NOT_AUTHENTICATED, 401},
    {IW_AUTH_TOKEN_INVALID_FORMAT, 401},
    {IW_AUTH_TOKEN_INVALID, 401},
    {IW_AUTH_TOKEN_EXPIRED, 401},
    {IW_AUTH_FORBIDDEN, 403},
    {IW_AUTH_SCOPE_MISSING, 403},
    {IW_URL_EXPIRED, 403},
    {IW_URL_SIGNATURE_INVALID, 403},
    {IW_ORDER_NOT_FOUND, 404},
    {IW_WEBHOOK_NOT_FOUND, 404},
    {IW_WEBHOOK_EVENT_NOT_FOUND, 404},
    {IW_RESOURCE_NOT_FOUND, 404},
    {IW_PROCESSED_FILE_NOT_FOUND, 404},
    {IW_METHOD_NOT_ALLOWED, 405},
    {IW_IDEMPOTENCY_KEY_REUSED, 409},
    {IW_ORDER_ALREADY_STARTED, 409},
    {IW_PAYLOAD_TOO_LARGE, 413},
    {IW_UNSUPPORTED_MEDIA_TYPE, 415},
    {IW_RATE_LIMIT_EXCEEDED, 429},
    {IW_USAGE_LIMIT_EXCEEDED, 429},
    {IW_SERVER_INTERNAL_ERROR, 500},
    {IW_SERVICE_UNAVAILABLE, 503},
};

/* Returns 0 for an internal error, whose code and sentence clients do not see. edge may be NULL. */
static unsigned status_of(const struct edge *edge, enum iw_error error)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (statuses[i].error == error)
            return statuses[i].status;
    for (const struct failure_status *own = edge != NULL ? edge->statuses : NULL;
         own != NULL && own->error != IW_OK; own++)
        if (own->error == error)
            return own->status;
    return 0;
}

unsigned failure_status(enum iw_error error)
{
    unsigned status = status_of(NULL, error);
    return status != 0 ? status : 500;
}

static void headers_add(struct request *request, enum iw_error error, unsigned status)
{
    unsigned retry_s = request->context->retry_after_s;
    if (retry_s == 0 && error == IW_SERVICE_UNAVAILABLE)
        retry_s = retry_default_s;
    if (retry_s > 0)
        response_header_printf(request, "Retry-After", "%u", retry_s);
    if (status == 401)
        response_header(request, "WWW-Authenticate",
                        request->edge != NULL ? request->edge->scheme : "Bearer");
}

static void details_render(struct render *render, const struct context_detail *detail)
{
    if (detail == NULL)
        return;
    render_array_begin(render, "details");
    for (; detail != NULL; detail = detail->next) {
        render_object_begin(render, NULL);
        render_string(render, "field", detail->field);
        render_string(render, "message", detail->message);
        message_render(render, detail->message);
        render_object_end(render);
    }
    render_array_end(render);
}

static void problem_render(struct request *request, enum iw_error error, unsigned status,
                           const char *sentence)
{
    struct render *render = &request->response.render;
    response_header(request, "Content-Type", "application/problem+json");
    render_string(render, "type", arena_printf(request->arena, "urn:imgward:error:%s", iw_error_code(error)));
    render_string(render, "title", iw_error_sentence(error));
    render_integer(render, "status", status);
    render_string(render, "detail", sentence);
    render_string(render, "instance",
                  arena_printf(request->arena, "urn:imgward:request:%s", request->context->request_id));
}

static void body_render(struct request *request, enum iw_error error, unsigned status, const char *sentence)
{
    const struct context *context = request->context;
    const char *accept = request_header(request, "Accept");
    struct render *render = response_data(request);
    if (accept != NULL && strcasestr(accept, "application/problem+json") != NULL)
        problem_render(request, error, status, sentence);
    render_string(render, "code", iw_error_code(error));
    render_string(render, "message", sentence);
    message_render(render, sentence);
    details_render(render, context->details);
    render_string(render, "requestId", context->request_id);
    if (error == IW_URL_EXPIRED && context->expired_at != NULL) {
        render_string(render, "expiredAt", context->expired_at);
        render_time(render, "serverTime", clock_now_ms());
    }
}

void failure_render(struct request *request)
{
    const struct context *context = request->context;
    unsigned status = status_of(request->edge, context->error);
    enum iw_error error = status != 0 ? context->error : IW_SERVER_INTERNAL_ERROR;
    const char *sentence = error == context->error ? context->sentence : iw_error_sentence(error);
    const char *allow = context->error == IW_METHOD_NOT_ALLOWED
                            ? arena_text(request->arena, request->response.headers.data)
                            : NULL;
    if (status == 0)
        status = failure_status(error);
    response_clear(request);
    response_status(request, status);
    if (allow != NULL)
        text_add_string(&request->response.headers, allow);
    headers_add(request, error, status);
    body_render(request, error, status, sentence);
}
