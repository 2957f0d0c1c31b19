#include "domain/reopen.h"

#include "base/clock.h"
#include "store/files.h"
#include "store/jobs.h"
#include "store/orders.h"

/* The argument of the transaction. */
struct reopen_work {
    int64_t order_id;
    struct reopening *reopening;
};

/* Files come before jobs: failed jobs identify the files. */
static enum iw_error order_files_reopen(const struct store *store, struct order_progress *order,
                                        struct reopening *reopening)
{
    int64_t now_ms = clock_now_ms(), files = 0;
    enum iw_error error = files_reopen(store, order->id, now_ms, &files);
    if (error == IW_OK)
        error = jobs_reopen(store, order->id, &reopening->reopened);
    if (error != IW_OK || reopening->reopened == 0)
        return error;
    order->failed_count -= files;
    return orders_progress_write(store, order, now_ms);
}

static enum iw_error order_work(const struct store *store, void *user)
{
    struct reopen_work *work = user;
    struct order_progress order;
    enum iw_error error = orders_progress_lock(store, work->order_id, &order);
    if (error != IW_OK)
        return error;
    *work->reopening = (struct reopening){.status = order.status};
    if (order.status != ORDER_IN_PROGRESS)
        return IW_OK;
    error = jobs_hurry(store, order.id, &work->reopening->hurried);
    if (error == IW_OK)
        error = order_files_reopen(store, &order, work->reopening);
    return error == IW_OK ? jobs_lost(store, order.id, &work->reopening->lost) : error;
}

enum iw_error reopen_order(const struct domain *domain, int64_t order_id, struct reopening *reopening)
{
    struct reopen_work work = {.order_id = order_id, .reopening = reopening};
    return db_transaction(&domain->store, order_work, &work);
}
