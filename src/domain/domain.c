#include "domain/domain.h"

#include "service/storage.h"

enum { store_full_retry_s = 60 };

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

enum iw_error domain_room_check(const struct domain *domain)
{
    int64_t free_bytes, size_bytes, least_bytes = domain->config->store_free_min_bytes;
    struct context *context = domain->context;
    if (least_bytes == 0 || !storage_room(domain->config->store_path, &free_bytes, &size_bytes) ||
        free_bytes >= least_bytes)
        return IW_OK;
    enum iw_error error = context_fail(context, IW_SERVICE_UNAVAILABLE,
                                       "The service has no space left to store files; try again later.");
    context->reason = "store_full";
    context->retry_after_s = store_full_retry_s;
    context_cause(context, "%lld bytes are free; store.free_min_bytes is %lld", (long long)free_bytes,
                  (long long)least_bytes);
    return error;
}
