#include "domain/reopen.h"

#include "base/clock.h"
#include "store/closing.h"
#include "store/jobs.h"

/* What goes through the transaction. */
struct reopen_work {
    int64_t order_id;
    struct reopening *reopening;
};

/* The files first, for they are found by the jobs that are still failed. */
static enum iw_error files_reopen(struct context *context, struct db *db, struct closing_order *order,
                                  struct reopening *reopening)
{
    int64_t now_ms = clock_now_ms(), files = 0;
    enum iw_error error = closing_files_reopen(context, db, order->id, now_ms, &files);
    if (error == IW_OK)
        error = jobs_reopen(context, db, order->id, &reopening->reopened);
    if (error != IW_OK || reopening->reopened == 0)
        return error;
    order->failed_count -= files;
    return closing_order_count(context, db, order, now_ms);
}

static enum iw_error order_work(struct context *context, struct db *db, void *user)
{
    struct reopen_work *work = user;
    struct closing_order order;
    enum iw_error error = closing_order_lock(context, db, work->order_id, &order);
    if (error != IW_OK)
        return error;
    *work->reopening = (struct reopening){.status = order.status};
    if (order.status != ORDER_IN_PROGRESS)
        return IW_OK;
    error = jobs_hurry(context, db, order.id, &work->reopening->hurried);
    if (error == IW_OK)
        error = files_reopen(context, db, &order, work->reopening);
    return error == IW_OK ? jobs_lost(context, db, order.id, &work->reopening->lost) : error;
}

enum iw_error reopen_order(const struct domain *domain, int64_t order_id, struct reopening *reopening)
{
    struct reopen_work work = {.order_id = order_id, .reopening = reopening};
    return db_transaction(domain->context, domain->db, order_work, &work);
}
