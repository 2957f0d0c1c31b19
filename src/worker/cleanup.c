#include "worker/cleanup.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "worker/worker.h"

enum { wait_longest_ms = 250 };

/* The next look for inputs that outlived their order finds the orders. */
static void cleanup_fail(struct worker *worker)
{
    log_failure(&worker->context, "order_not_cleared");
    context_clear(&worker->context);
    worker->flags.is_reclaim_wanted = true;
}

void cleanup_add(struct worker *worker, int64_t order_id)
{
    struct cleanup *cleanup = &worker->cleanup;
    if (cleanup->waiting_count == cleanup_waiting_max) {
        worker->flags.is_reclaim_wanted = true;
        return;
    }
    if (cleanup->waiting_count == 0)
        cleanup->begin_at_ms = clock_monotonic_ms() + wait_longest_ms;
    cleanup->waiting[cleanup->waiting_count++] = order_id;
}

/* Takes the orders that waited longest, and of these the ones that are still ended. */
static void orders_begin(struct worker *worker)
{
    struct cleanup *cleanup = &worker->cleanup;
    unsigned count =
        cleanup->waiting_count < retention_orders_max ? cleanup->waiting_count : retention_orders_max;
    memcpy(cleanup->batch, cleanup->waiting, count * sizeof *cleanup->batch);
    cleanup->waiting_count -= count;
    memmove(cleanup->waiting, cleanup->waiting + count, cleanup->waiting_count * sizeof *cleanup->waiting);
    cleanup->batch_count = count;
    cleanup->next = cleanup->deleted_count = 0;
    if (retention_ended(&worker->domain, cleanup->batch, &cleanup->batch_count) == IW_OK)
        return;
    cleanup_fail(worker);
    cleanup->batch_count = 0;
}

/* A failure of the store concerns one order; after one of the database the other orders are left. */
static void inputs_delete(struct worker *worker)
{
    struct cleanup *cleanup = &worker->cleanup;
    int64_t order_id = cleanup->batch[cleanup->next++];
    if (retention_inputs_delete(&worker->domain, worker->storage, order_id) == IW_OK) {
        cleanup->batch[cleanup->deleted_count++] = order_id;
        return;
    }
    const char *reason = worker->context.reason;
    if (reason == NULL || strcmp(reason, "store_failed") != 0)
        cleanup->next = cleanup->batch_count;
    cleanup_fail(worker);
}

/* Answers of image processes come first, until the oldest order has waited long enough. */
int64_t cleanup_next_ms(const struct worker *worker)
{
    const struct cleanup *cleanup = &worker->cleanup;
    if (cleanup->batch_count > 0 || cleanup->waiting_count >= retention_orders_max)
        return 0;
    if (cleanup->waiting_count == 0)
        return INT64_MAX;
    return task_count(&worker->pools[JOB_CLASS_IMAGE], TASK_ANSWERED) > 0 ? cleanup->begin_at_ms : 0;
}

void cleanup_step(struct worker *worker, int64_t now_ms)
{
    struct cleanup *cleanup = &worker->cleanup;
    (void)now_ms;
    if (cleanup->batch_count == 0 && cleanup->waiting_count > 0) {
        orders_begin(worker);
    } else if (cleanup->next < cleanup->batch_count) {
        inputs_delete(worker);
    } else {
        cleanup->batch_count = 0;
        if (cleanup->deleted_count > 0 &&
            retention_inputs_forget(&worker->domain, cleanup->batch, cleanup->deleted_count) != IW_OK)
            cleanup_fail(worker);
    }
}
