#include "domain/orders/order_download.h"

#include "base/clock.h"
#include "db/results.h"
#include "domain/orders/order_query.h"
#include "model/filekey.h"
#include "service/files/name.h"
#include "service/files/presign.h"
#include "service/files/storage.h"

/* Bytes in the store, and their name for the client. */
struct order_stored {
    const char *store_key;
    const char *name;
    enum format format;
};

/* The URL of stored bytes; name NULL if the client shows them and saves no file. */
static const char *download_url(const struct domain *domain, struct arena *arena, struct filekey key,
                                const struct order_stored *stored)
{
    struct storage_link link = {.type = format_media_type(stored->format),
                                .expires_s = presign_expiry_s(domain->presign, PRESIGN_GET)};
    if (domain_is_direct(domain) && stored->store_key != NULL &&
        storage_key_read(stored->store_key, &link.key)) {
        link.disposition = stored->name != NULL ? name_disposition(arena, stored->name) : NULL;
        return storage_url(domain->storage, arena, &link);
    }
    return presign_download_url(domain->presign, arena, &key, presign_expiry_s(domain->presign, PRESIGN_GET));
}

const char *order_result_url(const struct domain *domain, struct arena *arena, int64_t order_id,
                             const struct order_result *result)
{
    return download_url(domain, arena, (struct filekey){FILEKEY_RESULT, order_id, result->id},
                        &(struct order_stored){result->store_key, result->name, result->format});
}

/* name is the name of the archive for the client. */
static const char *archive_url(const struct domain *domain, struct arena *arena, const struct order *order,
                               const char *name)
{
    return download_url(domain, arena, (struct filekey){FILEKEY_ZIP, order->id, 0},
                        &(struct order_stored){order->zip_store_key, name, FORMAT_ZIP});
}

const char *order_thumbnail_url(const struct domain *domain, struct arena *arena, const struct order *order,
                                const struct order_file *file)
{
    const char *store_key = file != NULL ? file->thumbnail_store_key : order->thumbnail_store_key;
    int64_t position = file != NULL ? file->position : 0;
    if (store_key == NULL || order->status == ORDER_EXPIRED)
        return NULL;
    return download_url(domain, arena, (struct filekey){FILEKEY_THUMBNAIL, order->id, position},
                        &(struct order_stored){store_key, NULL, FORMAT_WEBP});
}

const char *order_archive_name(struct arena *arena, const struct order *order)
{
    const char *at = clock_iso_text(arena, order_id_time_ms(order->id));
    const char *suffix = order->channel == ORDER_CHANNEL_WEB
                             ? arena_printf(arena, " %.13s%.2s%.2sZ", at, at + 14, at + 17)
                             : NULL;
    const struct name_request name = {
        .name = arena_printf(arena, "%s.zip", order->name), .suffix = suffix, .format = FORMAT_ZIP};
    return name_one(arena, &name);
}

enum iw_error order_download_make(struct domain *domain, const struct order *order,
                                  struct order_download *download)
{
    struct arena *arena = domain->context->arena;
    *download = (struct order_download){.order = *order};
    enum iw_error error =
        results_list_names(&domain->db, order->id, &download->results, &download->result_count);
    if (error != IW_OK)
        return error;
    if (download->result_count == 1) {
        download->url = order_result_url(domain, arena, order->id, &download->results[0]);
        download->name = download->results[0].name;
        download->format = download->results[0].format;
    } else if (download->result_count > 1 && order->zip_store_key != NULL) {
        download->name = order_archive_name(arena, order);
        download->url = archive_url(domain, arena, order, download->name);
        download->format = FORMAT_ZIP;
    }
    return IW_OK;
}

/* The contract's order of checks: type, expiry, completion. */
static enum iw_error download_check(struct domain *domain, const struct order *order)
{
    bool has_files = order->type != ORDER_WATERMARK_EXTRACT && !order->is_zero_copy;
    bool is_over = order->expires_ms != 0 && order->expires_ms <= clock_now_ms();
    if (!has_files)
        return context_fail(
            domain->context, IW_ORDER_TYPE_CANT_DOWNLOAD,
            order->is_zero_copy
                ? "A zero-copy order has no file to download; its results are at its outputTargets."
                : "An extraction order has no file to download; its result is watermarkText of "
                  "GET /api/v2/orders/{orderId}.");
    if (order->status == ORDER_EXPIRED || (order->status == ORDER_COMPLETE && is_over))
        return context_fail(domain->context, IW_ORDER_EXPIRED, NULL);
    if (order->status != ORDER_COMPLETE)
        return context_fail(domain->context, IW_ORDER_NOT_COMPLETED, "The order is %s and not complete; %s.",
                            order_status_name(order->status),
                            order->status == ORDER_FAILED    ? "its errors say why"
                            : order->status == ORDER_PENDING ? "upload its files and confirm it first"
                                                             : "ask again when its status is complete");
    return IW_OK;
}

enum iw_error order_download(struct domain *domain, int64_t account_id, int64_t id,
                             struct order_download *download)
{
    struct order_view view;
    enum iw_error error = order_find(domain, account_id, id, &view);
    if (error == IW_OK)
        error = download_check(domain, &view.order);
    if (error == IW_OK)
        error = order_download_make(domain, &view.order, download);
    if (error == IW_OK && download->url == NULL)
        return context_fail(domain->context, IW_PROCESSED_FILE_NOT_FOUND, NULL);
    return error;
}
