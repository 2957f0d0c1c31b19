/*
 * Deletes the inputs of ended orders.  Orders wait for up to 250 ms, so that one commit clears several,
 * and the work is divided into steps.  If a worker dies, periodic.h finds the orders that were waiting.
 */
#ifndef WORKER_CLEANUP_H
#define WORKER_CLEANUP_H

#include <stdint.h>

#include "domain/files/retention.h"
#include "worker/loop.h"

struct shared;
struct task_pool;

enum { cleanup_waiting_max = 2 * retention_orders_max };

struct cleanup {
    struct shared *shared;
    const struct task_pool *pictures;
    int64_t waiting[cleanup_waiting_max]; /* order ids */
    unsigned waiting_count;
    int64_t begin_at_ms; /* monotonic: the latest start; valid if orders wait */

    int64_t batch[retention_orders_max]; /* in progress; orders whose inputs are deleted come first */
    unsigned batch_count;                /* 0 if no order is in progress */
    unsigned next;                       /* index of the order to delete next */
    unsigned deleted_count;
};

/* An order has ended. */
void cleanup_add(struct cleanup *cleanup, int64_t order_id);

extern const struct loop_timer cleanup_timer; /* a step, such as the files of one order */

#endif
