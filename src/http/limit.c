#include "http/limit.h"

#include <imgward/fault.h>

#include "base/metrics.h"
#include "model/account.h"
#include "domain/domain.h"

void limit_send(struct request *request)
{
    if (request->account == NULL || request->limit_state != LIMIT_NOT_ASKED)
        return;
    request->limit_per_minute = request->account->requests_per_minute;
    bool is_sent = ratelimit_send(request->domain->redis, request->context, request->config->redis_prefix,
                                  request->account->id, request->limit_per_minute, request->limit_lock);
    request->limit_state = is_sent ? LIMIT_ASKED : LIMIT_ANSWERED;
    if (!is_sent)
        metrics_add(request->metrics, METRIC_REDIS_AWAY, 0, 0, 1);
    /* Redis is away: nobody is refused, and the numbers are those of a fresh window. */
    request->limit_remaining = request->limit_per_minute;
    request->limit_reset_s = ratelimit_window_ms / 1000;
}

enum iw_error limit_receive(struct request *request)
{
    if (request->limit_state != LIMIT_ASKED)
        return IW_OK;
    fault_point(FAULT_LIMIT_ASKED);
    struct ratelimit_answer answer =
        ratelimit_receive(request->domain->redis, request->context, request->config->redis_prefix,
                          request->account->id, request->limit_per_minute, request->limit_lock);
    request->limit_state = LIMIT_ANSWERED;
    if (!answer.is_known) {
        metrics_add(request->metrics, METRIC_REDIS_AWAY, 0, 0, 1);
        return IW_OK;
    }
    request->limit_remaining = answer.remaining;
    request->limit_reset_s = answer.reset_s;
    if (!answer.is_refused)
        return IW_OK;
    context_clear(request->context);
    request->context->retry_after_s = answer.reset_s;
    return context_fail(request->context, IW_RATE_LIMIT_EXCEEDED,
                        "Your plan allows %u requests a minute; try again in %u s.",
                        request->limit_per_minute, answer.reset_s);
}

enum iw_error limit_admit(struct request *request, struct ratelimit_lock *lock)
{
    request->limit_lock = lock;
    limit_send(request);
    return limit_receive(request);
}
