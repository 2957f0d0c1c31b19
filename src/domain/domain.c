#include "domain/domain.h"

#include "service/storage.h"

enum iw_error domain_storage_open(struct domain *domain)
{
    struct context *context = domain->context;
    if (domain->storage != NULL ||
        storage_open(context, domain->config->store_path, &domain->storage) == IW_OK)
        return IW_OK;
    const char *cause = context->sentence;
    context_clear(context);
    enum iw_error error =
        context_fail(context, IW_SERVICE_UNAVAILABLE, "The file store cannot be used now; try again later.");
    context->reason = "store_failed";
    context_cause(context, "%s", cause);
    return error;
}
