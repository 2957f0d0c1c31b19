/*
 * Retry of failed files on an operator's command, while their order is in
 * progress.
 *
 * A finished order cannot be reopened: its inputs are deleted and its webhooks
 * are notified.  Must not know the command line.
 */
#ifndef DOMAIN_ORDERS_REOPEN_H
#define DOMAIN_ORDERS_REOPEN_H

#include <stdint.h>

#include "domain/domain.h"
#include "model/order.h"

/* The result. */
struct reopening {
    enum order_status status; /* of the order; the next three are 0 unless it is in progress */
    int64_t hurried;          /* jobs whose backoff was cut short */
    int64_t reopened;         /* failed jobs that are queued again */
    int64_t lost; /* files whose push failed: their results are deleted, so that no retry is possible */
};

/* One transaction for jobs, files and the order's counts.  ORDER_NOT_FOUND. */
enum iw_error reopen_order(const struct domain *domain, int64_t order_id,
                           struct reopening *reopening) IW_MUST_USE;

#endif
