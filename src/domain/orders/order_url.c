#include "domain/orders/order_url.h"

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

static struct filekey upload_filekey(int64_t order_id, const struct order_file *file)
{
    return (struct filekey){.kind = file->is_original ? FILEKEY_ORIGINAL : FILEKEY_UPLOAD,
                            .order_id = order_id,
                            .number = file->position};
}

const char *order_upload_key(struct arena *arena, int64_t order_id, const struct order_file *file)
{
    struct filekey key = upload_filekey(order_id, file);
    return filekey_text(arena, &key);
}

const char *order_upload_url(const struct domain *domain, struct arena *arena, int64_t order_id,
                             const struct order_file *file, int64_t *expires_ms)
{
    struct filekey key = upload_filekey(order_id, file);
    int64_t expires_s = presign_expiry_s(domain->presign, PRESIGN_PUT);
    *expires_ms = expires_s * 1000;
    if (domain_is_direct(domain))
        return storage_url(
            domain->storage, arena,
            &(struct storage_link){.is_upload = true,
                                   .key = {.kind = key.kind, .order_id = order_id, .number = file->position},
                                   .expires_s = expires_s});
    return presign_upload_url(domain->presign, arena, &key, expires_s,
                              presign_upload_max_bytes(domain->presign));
}

/* The URL of stored bytes; name NULL: the client shows them and saves no file. */
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

const char *order_archive_url(const struct domain *domain, struct arena *arena, const struct order *order,
                              const char *name)
{
    return download_url(domain, arena, (struct filekey){FILEKEY_ZIP, order->id, 0},
                        &(struct order_stored){order->zip_store_key, name, FORMAT_ZIP});
}

const char *order_thumbnail_url(const struct domain *domain, struct arena *arena, const struct order *order)
{
    if (!order->has_thumbnail || order->status == ORDER_EXPIRED)
        return NULL;
    return download_url(domain, arena, (struct filekey){FILEKEY_THUMBNAIL, order->id, 0},
                        &(struct order_stored){order->thumbnail_store_key, NULL, FORMAT_WEBP});
}
