#include "domain/domain.h"

#include "service/files/storage.h"

enum { full_retry_s = 60 };

enum iw_error domain_storage_open(struct domain *domain)
{
    struct context *context = domain->context;
    if (domain->storage != NULL || storage_open(context, domain->config, &domain->storage) == IW_OK)
        return IW_OK;
    const char *cause = context->sentence;
    context_clear(context);
    enum iw_error error =
        context_fail(context, IW_SERVICE_UNAVAILABLE, "The file store cannot be used now; try again later.");
    context->reason = "store_failed";
    context_cause(context, "%s", cause);
    return error;
}

bool domain_is_direct(const struct domain *domain)
{
    return domain->storage != NULL && storage_is_direct(domain->storage);
}

/* SERVICE_UNAVAILABLE if the file system of a folder has too few free bytes. */
static enum iw_error folder_check(const struct domain *domain, const char *folder, const char *reason,
                                  const char *sentence)
{
    int64_t free_bytes, size_bytes, least_bytes = domain->config->store_free_min_bytes;
    struct context *context = domain->context;
    if (folder == NULL || !storage_room(folder, &free_bytes, &size_bytes) || free_bytes >= least_bytes)
        return IW_OK;
    enum iw_error error = context_fail(context, IW_SERVICE_UNAVAILABLE, "%s", sentence);
    context->reason = reason;
    context->retry_after_s = full_retry_s;
    context_cause(context, "%lld bytes are free at %s; store.free_min_bytes is %lld", (long long)free_bytes,
                  folder, (long long)least_bytes);
    return error;
}

/* The free space of an object store is unknown; the store itself refuses a write. */
enum iw_error domain_room_check(const struct domain *domain)
{
    if (domain_is_direct(domain))
        return IW_OK;
    return folder_check(domain, domain->config->store_path, "store_full",
                        "The service has no space left to store files; try again later.");
}

enum iw_error domain_database_check(const struct domain *domain)
{
    if (domain->config->store_free_min_bytes == 0)
        return IW_OK;
    return folder_check(domain, db_folder(&domain->db), "database_full",
                        "The service has no space left to record orders; try again later.");
}
