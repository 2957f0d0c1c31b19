/*
 * What an ended order no longer needs is deleted: a little later, and for several
 * orders at once, so that image processes do not wait for it.  Orders that were
 * still to be cleared when the worker died are found by the next one.
 */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "domain/retention.h"
#include "worker/worker.h"

enum { wait_longest_ms = 250 };

/* What is left over is found by the next look for inputs that outlived their order. */
static void clear_failed(struct worker *worker)
{
    log_failure(&worker->context, "order_not_cleared");
    context_clear(&worker->context);
    worker->reclaim_at_ms = 0;
}

/* What the store refuses of one order keeps no other; a database that is away would keep us for each of them.
 */
static unsigned inputs_delete(struct worker *worker, int64_t *order_ids, unsigned count)
{
    unsigned deleted = 0;
    for (unsigned i = 0; i < count; i++) {
        image_process_turn(worker);
        if (retention_inputs_delete(&worker->domain, worker->storage, order_ids[i]) == IW_OK) {
            order_ids[deleted++] = order_ids[i];
            continue;
        }
        const char *reason = worker->context.reason;
        bool is_of_store = reason != NULL && strcmp(reason, "store_failed") == 0;
        clear_failed(worker);
        if (!is_of_store)
            break;
    }
    image_process_turn(worker);
    return deleted;
}

void clear_run(struct worker *worker)
{
    unsigned count = worker->clear_count;
    worker->clear_count = 0;
    if (count == 0)
        return;
    if (retention_ended(&worker->domain, worker->clear_ids, &count) != IW_OK) {
        clear_failed(worker);
        return;
    }
    count = inputs_delete(worker, worker->clear_ids, count);
    if (count > 0 && retention_inputs_forget(&worker->domain, worker->clear_ids, count) != IW_OK)
        clear_failed(worker);
}

void clear_note(struct worker *worker, int64_t order_id)
{
    if (worker->clear_count == 0)
        worker->clear_at_ms = clock_monotonic_ms() + wait_longest_ms;
    worker->clear_ids[worker->clear_count++] = order_id;
    if (worker->clear_count == retention_orders_max)
        clear_run(worker);
}

static bool is_any_heard(const struct worker *worker)
{
    const struct pool *pool = &worker->pools[JOB_CLASS_IMAGE];
    for (unsigned i = 0; i < pool->count; i++)
        if (pool->tasks[i].state == TASK_HEARD)
            return true;
    return false;
}

void clear_tick(struct worker *worker, int64_t now_ms)
{
    if (now_ms >= worker->clear_at_ms || !is_any_heard(worker))
        clear_run(worker);
}
