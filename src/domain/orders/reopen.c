#include "domain/orders/reopen.h"

#include "base/clock.h"
#include "db/files.h"
#include "db/jobs.h"
#include "db/orders.h"
#include "db/transaction.h"

/* Files come before jobs: failed jobs identify the files. */
static enum iw_error order_files_reopen(const struct db *db, struct order_progress *order,
                                        struct reopening *reopening)
{
    int64_t now_ms = clock_now_ms(), files = 0;
    enum iw_error error = files_reopen(db, order->id, now_ms, &files);
    if (error == IW_OK)
        error = jobs_reopen(db, order->id, &reopening->reopened);
    if (error != IW_OK || reopening->reopened == 0)
        return error;
    order->failed_count -= files;
    return orders_progress_write(db, order, now_ms);
}

enum iw_error reopen_order(const struct domain *domain, int64_t order_id, struct reopening *reopening)
{
    enum iw_error error;
    const struct db *db = &domain->db;
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        struct order_progress order;
        error = orders_progress_lock(db, order_id, &order);
        if (error != IW_OK)
            continue;
        *reopening = (struct reopening){.status = order.status};
        if (order.status != ORDER_IN_PROGRESS)
            continue;
        error = jobs_hurry(db, order_id, &reopening->hurried);
        if (error == IW_OK)
            error = order_files_reopen(db, &order, reopening);
        if (error == IW_OK)
            error = jobs_lost(db, order_id, &reopening->lost);
    }
    return error;
}
