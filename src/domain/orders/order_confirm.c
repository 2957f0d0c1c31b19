#include "domain/orders/order_confirm.h"

#include "base/clock.h"
#include "db/jobs.h"
#include "db/transaction.h"
#include "domain/orders/intake.h"
#include "domain/orders/order_query.h"
#include "service/redis/queue.h"

/* Adds a detail for each file without upload.  ORDER_FILE_NOT_UPLOADED when there is one. */
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
        context_detail(domain->context, field, "%s has not been uploaded; PUT it to its uploadUrl",
                       order_file_label(arena, view, i));
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
    *is_started = false;
    enum iw_error error = orders_lock(&domain->db, account_id, id, &view.order, &view.files);
    if (error == IW_NOT_FOUND)
        return context_fail(domain->context, IW_ORDER_NOT_FOUND, NULL);
    if (error != IW_OK)
        return error;
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
