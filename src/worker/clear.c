/*
 * What an ended order no longer needs is deleted: a little later, and for several
 * orders at once, so that image processes do not wait for it.  Orders that were
 * still to be cleared when the worker died are found by the next one.
 */
#include "base/clock.h"
#include "base/log.h"
#include "domain/upkeep.h"
#include "worker/worker.h"

enum { wait_longest_ms = 250 };

static enum iw_error orders_clear(struct worker *worker, int64_t *order_ids, unsigned *count)
{
    enum iw_error error = upkeep_ended(&worker->domain, order_ids, count);
    for (unsigned i = 0; error == IW_OK && i < *count; i++) {
        helper_turn(worker);
        error = upkeep_inputs_delete(&worker->domain, worker->storage, order_ids[i]);
    }
    helper_turn(worker);
    return error == IW_OK ? upkeep_inputs_forget(&worker->domain, order_ids, *count) : error;
}

void clear_run(struct worker *worker)
{
    if (worker->clear_count == 0)
        return;
    enum iw_error error = orders_clear(worker, worker->clear_ids, &worker->clear_count);
    worker->clear_count = 0;
    if (error == IW_OK)
        return;
    log_failure(&worker->context, "order_not_cleared");
    context_clear(&worker->context);
    worker->reclaim_at_ms = 0;
}

void clear_note(struct worker *worker, int64_t order_id)
{
    if (worker->clear_count == 0)
        worker->clear_at_ms = clock_monotonic_ms() + wait_longest_ms;
    worker->clear_ids[worker->clear_count++] = order_id;
    if (worker->clear_count == upkeep_orders_max)
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
