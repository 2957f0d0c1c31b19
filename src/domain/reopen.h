/*
 * Another try for what failed, at an operator's word: while an order is under
 * way, its failed files are worked on again.
 *
 * An order that has ended stays ended: its inputs were deleted with its end, and
 * its client was told of it.  Knows the state machines and no command line.
 */
#ifndef DOMAIN_REOPEN_H
#define DOMAIN_REOPEN_H

#include <stdint.h>

#include "domain/domain.h"
#include "model/order.h"

/* What became of it. */
struct reopening {
    enum order_status status; /* of the order; what follows is 0 unless it is in progress */
    int64_t hurried;          /* jobs that waited for their next try and begin at once */
    int64_t reopened;         /* jobs that had failed and begin anew */
    int64_t lost;             /* files whose push to their target failed: there is nothing left to push */
};

/* One transaction: jobs, files and the order's counts.  ORDER_NOT_FOUND. */
enum iw_error reopen_order(const struct domain *domain, int64_t order_id,
                           struct reopening *reopening) IW_MUST_USE;

#endif
