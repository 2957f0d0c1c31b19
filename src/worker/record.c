#include "worker/record.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "db/orders.h"
#include "service/redis/queue.h"
#include "worker/cleanup.h"
#include "worker/shared.h"
#include "worker/task.h"

enum { record_retry_first_ms = 500, record_retry_longest_ms = 5000 };

static void outcome_log(const struct shared *shared, const struct task *task,
                        const struct outcome_effect *effect)
{
    static const struct {
        enum metric_job_result result;
        const char *name;
    } events[JOB_EVENT_COUNT] = {[JOB_EVENT_FINISH] = {METRIC_JOB_DONE, "job_done"},
                                 [JOB_EVENT_RETRY] = {METRIC_JOB_RETRIED, "job_requeued"},
                                 [JOB_EVENT_FAIL] = {METRIC_JOB_FAILED, "job_failed"},
                                 [JOB_EVENT_REFUSE] = {METRIC_JOB_REFUSED, "job_refused"},
                                 [JOB_EVENT_CANCEL] = {METRIC_JOB_CANCELLED, "job_cancelled"}};
    const struct outcome *outcome = &task->outcome;
    enum job_event event = effect->verdict.event;
    int64_t spent_ms = clock_monotonic_ms() - task->begun_ms;
    metrics_add(shared->metrics, METRIC_JOBS, task->job.kind, events[event].result, 1);
    metrics_observe(shared->metrics, METRIC_JOB_SECONDS, task->job.kind, spent_ms);
    metrics_observe(shared->metrics, METRIC_JOB_QUEUED, task->job.kind, task->queued_ms);
    log_event(outcome->kind == OUTCOME_TROUBLE ? LOG_WARN : LOG_INFO, &task->context, events[event].name,
              LOG_TEXT("kind", job_kind_name(task->job.kind)), LOG_NUMBER("file_id", task->job.file_id),
              LOG_NUMBER("attempt", task->job.attempt),
              LOG_TEXT("code", outcome->kind == OUTCOME_TROUBLE ? iw_error_code(outcome->error) : "OK"),
              LOG_TEXT("reason", outcome->reason), LOG_NUMBER("failures", effect->verdict.failures),
              LOG_NUMBER("deaths", effect->verdict.deaths), LOG_NUMBER("wait_ms", effect->verdict.wait_ms),
              LOG_NUMBER("queued_ms", task->queued_ms), LOG_NUMBER("ms", spent_ms));
}

/* Applies the effects of a record. */
static void effect_apply(const struct record *record, struct task *task, const struct outcome_effect *effect)
{
    struct shared *shared = record->shared;
    if (effect->is_order_gone)
        task_discard(task, shared->domain.storage);
    if (!effect->is_thumbnail_used && task->thumbnail_key.order_id != 0) {
        task->result_key.order_id = 0;
        task_discard(task, shared->domain.storage);
    }
    bool is_pushed = task->job.kind == JOB_PUSH && effect->verdict.event != JOB_EVENT_RETRY;
    if (is_pushed && storage_key_read(task->job.result_key, &task->result_key))
        task_discard(task, shared->domain.storage);
    if (effect->is_job_queued) {
        shared_lease_want(shared);
        queue_notify(shared->domain.redis, shared->start, &task->context, task->job.order_id);
    }
    if (!effect->is_order_ended)
        return;
    metrics_observe(shared->metrics, METRIC_ORDER_SECONDS, task->job.order_type, effect->order_ms);
    log_event(LOG_INFO, &task->context, "order_ended", LOG_TEXT("status", order_status_name(effect->status)),
              LOG_NUMBER("ms", effect->order_ms));
    shared->is_delivery_wanted = true;
    cleanup_add(record->cleanup, task->job.order_id);
}

/*
 * The record was refused.  Another attempt holds the job, or this record was committed but the reply was
 * lost.  So keeps files that rows name, and all files if the rows cannot be read: the rest is deleted with
 * the order.
 */
static void refused_discard(struct shared *shared, struct task *task)
{
    struct storage_key *const own[] = {&task->result_key, &task->thumbnail_key};
    struct query_texts named;
    context_clear(&task->context);
    bool is_known = orders_store_keys(&(struct db){&task->context, shared->domain.db.connection},
                                      task->job.order_id, &named) == IW_OK;
    for (int i = 0; i < 2; i++) {
        const char *text = storage_key_text(task->arena, own[i]);
        bool is_named = !is_known;
        for (unsigned at = 0; !is_named && at < named.count; at++)
            is_named = strcmp(named.items[at], text) == 0;
        if (is_named)
            own[i]->order_id = 0;
    }
    task_discard(task, shared->domain.storage);
    shared->is_reclaim_wanted = true;
}

bool record_outcome(const struct record *record, struct task *task)
{
    struct outcome_effect effect;
    struct domain domain = record->shared->domain;
    domain_context_set(&domain, &task->context);
    context_clear(&task->context);
    enum iw_error error = outcome_record(&domain, &task->outcome, &effect);
    if (error == IW_OK && !effect.is_fenced) {
        outcome_log(record->shared, task, &effect);
        effect_apply(record, task, &effect);
        return true;
    }
    if (error == IW_OK || error == IW_ORDER_NOT_FOUND) {
        log_event(LOG_WARN, &task->context, "outcome_refused",
                  LOG_TEXT("reason", effect.is_fenced ? "fenced" : "order_not_found"));
        refused_discard(record->shared, task);
        return true;
    }
    int64_t wait_ms = record_retry_first_ms << (task->record_failures < 4 ? task->record_failures : 4);
    if (task->record_failures++ == 0)
        log_failure(&task->context, "outcome_not_recorded");
    task->record_at_ms =
        clock_monotonic_ms() + (wait_ms < record_retry_longest_ms ? wait_ms : record_retry_longest_ms);
    return false;
}
