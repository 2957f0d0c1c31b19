#include "worker/cleanup.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "worker/shared.h"
#include "worker/task.h"

enum { wait_longest_ms = 250 };

/* The orders are not lost: the next search for inputs that outlived their order finds them. */
static void cleanup_fail(struct cleanup *cleanup)
{
    struct shared *shared = cleanup->shared;
    log_failure(shared->domain.context, "order_not_cleared");
    context_clear(shared->domain.context);
    shared->is_reclaim_wanted = true;
}

void cleanup_add(struct cleanup *cleanup, int64_t order_id)
{
    if (cleanup->waiting_count == cleanup_waiting_max) {
        cleanup->shared->is_reclaim_wanted = true;
        return;
    }
    if (cleanup->waiting_count == 0)
        cleanup->begin_at_ms = clock_monotonic_ms() + wait_longest_ms;
    cleanup->waiting[cleanup->waiting_count++] = order_id;
}

/* Takes the orders that waited longest, except those that were reopened. */
static void orders_begin(struct cleanup *cleanup)
{
    unsigned count =
        cleanup->waiting_count < retention_orders_max ? cleanup->waiting_count : retention_orders_max;
    memcpy(cleanup->batch, cleanup->waiting, count * sizeof *cleanup->batch);
    cleanup->waiting_count -= count;
    memmove(cleanup->waiting, cleanup->waiting + count, cleanup->waiting_count * sizeof *cleanup->waiting);
    cleanup->batch_count = count;
    cleanup->next = cleanup->deleted_count = 0;
    if (retention_ended(&cleanup->shared->domain, cleanup->batch, &cleanup->batch_count) == IW_OK)
        return;
    cleanup_fail(cleanup);
    cleanup->batch_count = 0;
}

/* If the file store failed, the other orders continue.  If the database failed, they would fail, too. */
static void inputs_delete(struct cleanup *cleanup)
{
    struct shared *shared = cleanup->shared;
    int64_t order_id = cleanup->batch[cleanup->next++];
    if (retention_inputs_delete(&shared->domain, shared->domain.storage, order_id) == IW_OK) {
        cleanup->batch[cleanup->deleted_count++] = order_id;
        return;
    }
    if (db_has_failed(shared->domain.db.connection))
        cleanup->next = cleanup->batch_count;
    cleanup_fail(cleanup);
}

/* Answers of image processes come first until the oldest order has waited 250 ms. */
static int64_t cleanup_next_ms(const void *part)
{
    const struct cleanup *cleanup = part;
    if (cleanup->batch_count > 0 || cleanup->waiting_count >= retention_orders_max)
        return 0;
    if (cleanup->waiting_count == 0)
        return INT64_MAX;
    return task_count(cleanup->pictures, TASK_ANSWERED) > 0 ? cleanup->begin_at_ms : 0;
}

static void cleanup_step(void *part, int64_t now_ms)
{
    struct cleanup *cleanup = part;
    (void)now_ms;
    if (cleanup->batch_count == 0 && cleanup->waiting_count > 0) {
        orders_begin(cleanup);
    } else if (cleanup->next < cleanup->batch_count) {
        inputs_delete(cleanup);
    } else {
        cleanup->batch_count = 0;
        if (cleanup->deleted_count > 0 && retention_inputs_forget(&cleanup->shared->domain, cleanup->batch,
                                                                  cleanup->deleted_count) != IW_OK)
            cleanup_fail(cleanup);
    }
}

const struct loop_timer cleanup_timer = {cleanup_next_ms, cleanup_step};
