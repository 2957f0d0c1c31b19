#include "domain/orders/order_confirm.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/message.h"
#include "db/upload_checks.h"
#include "db/jobs.h"
#include "db/transaction.h"
#include "domain/orders/intake.h"
#include "domain/orders/order_query.h"
#include "model/filekey.h"
#include "service/files/presign.h"
#include "service/files/storage.h"
#include "service/redis/queue.h"

/* Adds a detail for each file without upload.  ORDER_FILE_NOT_UPLOADED if there is one. */
static enum iw_error uploads_check(struct domain *domain, const struct order_view *view)
{
    unsigned missing = 0;
    struct arena *arena = domain->context->arena;
    bool is_extraction = view->order.type == ORDER_WATERMARK_EXTRACT;
    for (unsigned i = 0; i < view->order.file_rows; i++) {
        const struct order_file *file = &view->files[i];
        if (!order_file_is_missing(file))
            continue;
        missing++;
        const char *field = is_extraction && file->is_original ? "file.originalFile.fileName"
                            : is_extraction                    ? "file.fileName"
                                            : arena_printf(arena, "files[%u].fileName", file->position - 1);
        context_detail(domain->context, field, message_not_uploaded, order_file_label(arena, view, i));
    }
    if (missing == 0)
        return IW_OK;
    return context_fail(
        domain->context, IW_ORDER_FILE_NOT_UPLOADED,
        "%u of %u files have not been uploaded; upload the files named in details, then confirm again.",
        missing, view->order.file_rows);
}

enum iw_error order_start(const struct domain *domain, const struct order *order, enum order_status *status)
{
    enum order_status next;
    if (!order_next(order->type, order->status, ORDER_EVENT_START, &next))
        return context_fail(domain->context, IW_ORDER_NOT_PENDING, NULL);
    enum iw_error error = orders_start(&domain->db, order->id, order->status, next, clock_now_ms());
    if (error == IW_OK)
        error = jobs_insert_for_order(&domain->db, order->id);
    *status = next;
    return error;
}

/* ORDER_NOT_PENDING with the status and the remedy. */
static enum iw_error not_pending(struct context *context, enum order_status status)
{
    if (status == ORDER_FAILED)
        return context_fail(context, IW_ORDER_NOT_PENDING,
                            "The order is failed and not pending; its errors say why. Make a new order.");
    if (status == ORDER_EXPIRED)
        return context_fail(context, IW_ORDER_NOT_PENDING,
                            "The order is expired and not pending; make a new order.");
    return context_fail(context, IW_ORDER_NOT_PENDING,
                        "The order is %s and not pending; it takes no more files.",
                        order_status_name(status));
}

/* Starts a pending order with the uploads that were taken out of an object store; *is_started. */
static enum iw_error confirm_write(struct domain *domain, int64_t account_id, int64_t id,
                                   const struct intake *intake, enum order_status *status, bool *is_started)
{
    struct order_view view;
    bool is_found = false;
    *is_started = false;
    enum iw_error error = orders_lock(&domain->db, account_id, id, &view.order, &view.files, &is_found);
    if (error != IW_OK)
        return error;
    if (!is_found)
        return context_fail(domain->context, IW_ORDER_NOT_FOUND, NULL);
    context_trace_join(domain->context, view.order.trace_id);
    *status = view.order.status;
    if (view.order.status == ORDER_FAILED || view.order.status == ORDER_EXPIRED)
        return not_pending(domain->context, view.order.status);
    if (view.order.status != ORDER_PENDING)
        return IW_OK;
    error = intake_write(domain, account_id, intake, &view);
    if (error == IW_OK)
        error = uploads_check(domain, &view);
    if (error == IW_OK && intake->is_missing)
        return context_fail(domain->context, IW_SERVICE_UNAVAILABLE,
                            "An upload arrived at this moment; confirm the order again.");
    if (error == IW_OK)
        error = order_start(domain, &view.order, status);
    *is_started = error == IW_OK;
    return error;
}

enum iw_error order_confirm(struct domain *domain, int64_t account_id, int64_t id, enum order_status *status)
{
    struct order_view view;
    struct intake intake = {.count = 0};
    bool is_started = false;
    enum iw_error error = IW_OK;
    domain->context->order_id = id;
    if (domain_is_direct(domain))
        error = order_find(domain, account_id, id, &view);
    /* An order that is not pending has no uploads to take out of the object store. */
    if (error == IW_OK && domain_is_direct(domain) && view.order.status == ORDER_PENDING)
        error = intake_collect(domain, &view, &intake);
    if (error != IW_OK)
        return error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = confirm_write(domain, account_id, id, &intake, status, &is_started);
    }
    if (error == IW_OK)
        intake_settle(domain, &intake, is_started);
    if (error == IW_OK && is_started)
        queue_notify(domain->redis, domain->config, domain->context, id);
    return error;
}

enum iw_error order_refresh(struct domain *domain, int64_t account_id, int64_t id, struct order_view *view)
{
    enum iw_error error = order_find(domain, account_id, id, view);
    if (error == IW_OK && view->order.status != ORDER_PENDING)
        return not_pending(domain->context, view->order.status);
    return error;
}

/* ---- upload URLs ---- */

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

/* ---- orders that start with their last upload ---- */

enum {
    take_ms = 30 * 1000, /* another worker may look again after this worker died */
    pause_least_ms = 1000,
    pause_most_ms = 600 * 1000,
    age_parts = 4,           /* the pause is a quarter of the order's age */
    unwritten_ms = 60 * 1000 /* the row is written before the order; a creation takes no longer */
};

/* Starts the order if all uploads are there. Sets *is_over if there is nothing left to look for. */
static enum iw_error order_look(struct domain *domain, const struct upload_check *check, bool *is_over)
{
    struct order_view view;
    enum order_status status;
    bool is_complete = false;
    int64_t age_ms = clock_now_ms() - order_id_time_ms(check->order_id);
    *is_over = false;
    enum iw_error error = order_find(domain, check->account_id, check->order_id, &view);
    if (error == IW_ORDER_NOT_FOUND) {
        context_clear(domain->context);
        *is_over = age_ms > unwritten_ms;
        return IW_OK;
    }
    if (error == IW_OK && view.order.status == ORDER_PENDING)
        error = intake_is_complete(domain, &view, &is_complete);
    if (error == IW_OK && is_complete)
        error = order_confirm(domain, check->account_id, check->order_id, &status);
    *is_over = error == IW_OK && (is_complete || view.order.status != ORDER_PENDING);
    /* An upload was replaced at this moment. */
    if (error == IW_ORDER_FILE_NOT_UPLOADED || error == IW_ORDER_NOT_PENDING) {
        context_clear(domain->context);
        return IW_OK;
    }
    return error;
}

/* A failure of the database ends the run. Any other failure is logged and delays the order. */
static enum iw_error upload_check_run(struct domain *domain, const struct upload_check *check)
{
    bool is_over = false;
    int64_t now_ms = clock_now_ms(), pause_ms = (now_ms - order_id_time_ms(check->order_id)) / age_parts;
    enum iw_error error = order_look(domain, check, &is_over);
    pause_ms = pause_ms < pause_least_ms  ? pause_least_ms
               : pause_ms > pause_most_ms ? pause_most_ms
                                          : pause_ms;
    domain->context->order_id = check->order_id;
    if (error != IW_OK && !db_has_failed(domain->db.connection)) {
        log_failure(domain->context, "upload_check_failed");
        context_clear(domain->context);
        error = IW_OK;
    }
    if (error == IW_OK)
        error = is_over ? upload_checks_delete(&domain->db, check->order_id)
                        : upload_checks_move(&domain->db, check->order_id, now_ms + pause_ms);
    context_order_end(domain->context);
    return error;
}

enum iw_error order_upload_checks_run(struct domain *domain, bool *is_more)
{
    struct upload_check checks[upload_checks_max];
    unsigned count = 0;
    int64_t now_ms = clock_now_ms();
    enum iw_error error = upload_checks_take(&domain->db, now_ms, now_ms + take_ms, checks, &count);
    for (unsigned i = 0; error == IW_OK && i < count; i++)
        error = upload_check_run(domain, &checks[i]);
    *is_more = count == upload_checks_max;
    return error;
}

enum iw_error order_upload_check_hasten(struct domain *domain, const char *object_name)
{
    struct storage_key key;
    const char *prefix = domain->config->store_s3_prefix;
    size_t length = strlen(prefix);
    bool is_ours = strncmp(object_name, prefix, length) == 0 && storage_key_read(object_name + length, &key);
    bool is_upload =
        is_ours && key.version == 0 && (key.kind == FILEKEY_UPLOAD || key.kind == FILEKEY_ORIGINAL);
    return is_upload ? upload_checks_move(&domain->db, key.order_id, clock_now_ms()) : IW_OK;
}
