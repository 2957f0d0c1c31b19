#include "domain/files/batch.h"

#include <string.h>

void batch_begin(struct batch *batch, const struct domain *caller)
{
    *batch = (struct batch){.caller = caller, .domain = *caller};
    context_init(&batch->context, caller->context->arena, caller->context->request_id);
    domain_context_set(&batch->domain, &batch->context);
}

enum iw_error batch_next(struct batch *batch, enum iw_error error, int64_t order_id)
{
    const char *reason = batch->context.reason;
    struct context *caller = batch->caller->context;
    if (error == IW_OK)
        return IW_OK;
    batch->context.order_id = order_id;
    if (caller->error == IW_OK)
        *caller = batch->context;
    bool is_of_store =
        error == IW_SERVICE_UNAVAILABLE && reason != NULL && strcmp(reason, "store_failed") == 0;
    context_init(&batch->context, caller->arena, caller->request_id);
    batch->stuck += is_of_store;
    return is_of_store ? IW_OK : error;
}

enum iw_error batch_end(const struct batch *batch, enum iw_error error)
{
    return error != IW_OK ? error : batch->caller->context->error;
}
