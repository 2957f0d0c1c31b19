#include "domain/files/download.h"

#include "base/clock.h"
#include "db/results.h"
#include "domain/orders/order_download.h"
#include "service/files/name.h"
#include "service/files/storage.h"
#include "service/files/store_local.h"

enum { redirect_s = 60 };

static enum iw_error not_found(struct context *context, const char *reason)
{
    context_clear(context);
    enum iw_error error = context_fail(context, IW_PROCESSED_FILE_NOT_FOUND, NULL);
    context->reason = reason;
    return error;
}

static enum iw_error row_find(struct domain *domain, const struct filekey *key, struct download_row *row,
                              bool *is_found)
{
    *is_found = false;
    switch (key->kind) {
    case FILEKEY_RESULT:
        return results_find(&domain->db, key->order_id, key->number, row, is_found);
    case FILEKEY_ZIP:
        return results_find_archive(&domain->db, key->order_id, row, is_found);
    case FILEKEY_THUMBNAIL:
        return results_find_thumbnail(&domain->db, key->order_id, key->number, row, is_found);
    case FILEKEY_UPLOAD:
    case FILEKEY_ORIGINAL:
    case FILEKEY_KIND_COUNT:
        break;
    }
    return IW_OK;
}

/*
 * The reason why a row has no file, or NULL. After the expiry of the order the file counts as deleted, even
 * before retention deletes it.
 */
static const char *row_fault(const struct download_row *row)
{
    bool is_over = row->expires_ms != 0 && row->expires_ms <= clock_now_ms();
    if (row->store_key == NULL)
        return "no_bytes";
    if (row->is_deleted || row->order_status == ORDER_EXPIRED)
        return "order_expired";
    return row->order_status == ORDER_COMPLETE && is_over ? "order_expired" : NULL;
}

enum iw_error download_find(struct domain *domain, const struct filekey *key, struct download *download)
{
    struct download_row row;
    struct storage_facts facts;
    struct storage_key stored;
    struct context *context = domain->context;
    bool is_found = false;
    context->order_id = key->order_id;
    enum iw_error error = row_find(domain, key, &row, &is_found);
    if (error != IW_OK)
        return error;
    if (!is_found)
        return not_found(context, "no_row");
    context->account_id = row.account_id;
    context_trace_join(context, row.trace_id);
    if (row.is_suspended)
        return context_fail(context, IW_AUTH_FORBIDDEN, NULL);
    const char *fault = row_fault(&row);
    if (fault != NULL || !storage_key_read(row.store_key, &stored))
        return not_found(context, fault != NULL ? fault : "key_unreadable");
    error = domain_storage_open(domain);
    if (error == IW_OK)
        error = storage_stat(domain->storage, context, &stored, &facts);
    if (error == IW_NOT_FOUND)
        return not_found(context, "bytes_missing");
    if (error != IW_OK)
        return error;
    const struct order order = {.id = key->order_id, .name = row.name, .channel = row.order_channel};
    const char *name = key->kind == FILEKEY_ZIP ? order_archive_name(context->arena, &order) : row.name;
    download->format = row.format;
    download->disposition = key->kind == FILEKEY_THUMBNAIL ? NULL : name_disposition(context->arena, name);
    /*
     * Redirects URLs that were signed before the files moved to an object store; the new URL is valid for a
     * short time.
     */
    const struct storage_link link = {.key = stored,
                                      .expires_s = clock_now_ms() / 1000 + redirect_s,
                                      .disposition = download->disposition,
                                      .type = format_media_type(download->format)};
    download->url = domain_is_direct(domain) ? storage_url(domain->storage, context->arena, &link) : NULL;
    download->path = store_local_handover(context->arena, &stored);
    return IW_OK;
}
