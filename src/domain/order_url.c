#include "domain/order_url.h"

#include "model/filekey.h"
#include "service/presign.h"

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
    return presign_upload_url(domain->presign, arena, &key, expires_s,
                              presign_upload_max_bytes(domain->presign));
}

static const char *download_url(const struct domain *domain, struct arena *arena, struct filekey key)
{
    return presign_download_url(domain->presign, arena, &key, presign_expiry_s(domain->presign, PRESIGN_GET));
}

const char *order_result_url(const struct domain *domain, struct arena *arena, int64_t order_id,
                             int64_t result_id)
{
    return download_url(domain, arena, (struct filekey){FILEKEY_RESULT, order_id, result_id});
}

const char *order_archive_url(const struct domain *domain, struct arena *arena, int64_t order_id)
{
    return download_url(domain, arena, (struct filekey){FILEKEY_ZIP, order_id, 0});
}

const char *order_thumbnail_url(const struct domain *domain, struct arena *arena, const struct order *order)
{
    if (!order->has_thumbnail || order->status == ORDER_EXPIRED)
        return NULL;
    return download_url(domain, arena, (struct filekey){FILEKEY_THUMBNAIL, order->id, 0});
}
