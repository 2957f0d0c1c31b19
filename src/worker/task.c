/* A job from its lease to the record of its outcome. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <imgward/fault.h>

#include "base/clock.h"
#include "base/log.h"
#include "worker/worker.h"

enum {
    record_retry_first_ms = 500,
    record_retry_longest_ms = 5000,
    /*
     * A lease that ends without a word time and again means that the job takes
     * the whole supervisor with it.  Tries that were given up in order do not count:
     * a disk may be full for a day.
     */
    attempts_max = 100
};

static struct domain task_domain(struct worker *worker, struct task *task)
{
    struct domain domain = worker->domain;
    domain_context_set(&domain, &task->context);
    return domain;
}

void task_free(struct worker *worker, struct task *task)
{
    image_task_close(task);
    task->state = TASK_FREE;
    task->result_key.order_id = task->thumbnail_key.order_id = 0;
    worker->pools[task->class].is_look_asked = true;
}

void task_discard(struct worker *worker, struct task *task)
{
    struct storage_key *const keys[] = {&task->result_key, &task->thumbnail_key};
    for (int i = 0; i < 2; i++) {
        if (keys[i]->order_id == 0)
            continue;
        /* What cannot be deleted now goes with the order. */
        if (storage_delete(worker->storage, &worker->context, keys[i]) != IW_OK)
            context_clear(&worker->context);
        keys[i]->order_id = 0;
    }
}

/* What the record changed beside the job. */
static void effect_apply(struct worker *worker, struct task *task, const struct outcome_effect *effect)
{
    if (effect->is_order_gone)
        task_discard(worker, task);
    if (!effect->is_thumbnail_used && task->thumbnail_key.order_id != 0) {
        task->result_key.order_id = 0;
        task_discard(worker, task);
    }
    bool is_pushed = task->job.kind == JOB_PUSH && effect->verdict.event != JOB_EVENT_RETRY;
    if (is_pushed && storage_key_read(task->job.result_key, &task->result_key))
        task_discard(worker, task);
    if (effect->is_job_queued) {
        lease_look_ask(worker);
        queue_ring(worker->domain.redis, &worker->start, &task->context, task->job.order_id);
    }
    if (!effect->is_order_ended)
        return;
    fault_point(FAULT_ORDER_ENDED);
    log_event(LOG_INFO, &task->context, "order_ended", LOG_TEXT("status", order_status_name(effect->status)));
    deliver_wake(worker->deliver);
    clear_note(worker, task->job.order_id);
}

static void job_count(const struct worker *worker, const struct task *task, enum job_event event)
{
    static const enum metric_job_result results[JOB_EVENT_COUNT] = {[JOB_EVENT_FINISH] = METRIC_JOB_DONE,
                                                                    [JOB_EVENT_RETRY] = METRIC_JOB_RETRIED,
                                                                    [JOB_EVENT_FAIL] = METRIC_JOB_FAILED,
                                                                    [JOB_EVENT_CANCEL] =
                                                                        METRIC_JOB_CANCELLED};
    metrics_add(worker->metrics, METRIC_JOBS, task->job.kind, results[event], 1);
    metrics_observe(worker->metrics, METRIC_JOB_SECONDS, task->job.kind,
                    clock_monotonic_ms() - task->begun_ms);
}

static void outcome_log(const struct worker *worker, const struct task *task,
                        const struct outcome_effect *effect)
{
    static const char *const words[JOB_EVENT_COUNT] = {[JOB_EVENT_FINISH] = "job_done",
                                                       [JOB_EVENT_RETRY] = "job_requeued",
                                                       [JOB_EVENT_FAIL] = "job_failed",
                                                       [JOB_EVENT_CANCEL] = "job_cancelled"};
    const struct outcome *outcome = &task->outcome;
    job_count(worker, task, effect->verdict.event);
    log_event(outcome->kind == OUTCOME_TROUBLE ? LOG_WARN : LOG_INFO, &task->context,
              words[effect->verdict.event], LOG_TEXT("kind", job_kind_name(task->job.kind)),
              LOG_NUMBER("file_id", task->job.file_id), LOG_NUMBER("attempt", task->job.attempt),
              LOG_TEXT("code", outcome->kind == OUTCOME_TROUBLE ? iw_error_code(outcome->error) : "OK"),
              LOG_TEXT("reason", outcome->reason), LOG_NUMBER("failures", effect->verdict.failures),
              LOG_NUMBER("deaths", effect->verdict.deaths), LOG_NUMBER("wait_ms", effect->verdict.wait_ms),
              LOG_NUMBER("ms", clock_monotonic_ms() - task->begun_ms));
}

static void record_later(struct task *task)
{
    int64_t wait_ms = record_retry_first_ms << (task->record_failures < 4 ? task->record_failures : 4);
    if (task->record_failures++ == 0)
        log_failure(&task->context, "outcome_not_recorded");
    task->record_at_ms =
        clock_monotonic_ms() + (wait_ms < record_retry_longest_ms ? wait_ms : record_retry_longest_ms);
}

/*
 * The record was refused: another attempt holds the job, or it was ours that
 * went through, and only the word of its commit was lost with the connection.
 * So what the rows name stays, and so does everything when they cannot be read:
 * what nobody names goes with the order.
 */
static void refused_discard(struct worker *worker, struct task *task)
{
    struct storage_key *const own[] = {&task->result_key, &task->thumbnail_key};
    struct query_texts named;
    context_clear(&task->context);
    bool is_known = orders_store_keys(&(struct store){&task->context, worker->domain.store.db},
                                      task->job.order_id, &named) == IW_OK;
    for (int i = 0; i < 2; i++) {
        const char *text = storage_key_text(task->arena, own[i]);
        bool is_named = !is_known;
        for (unsigned at = 0; !is_named && at < named.count; at++)
            is_named = strcmp(named.items[at], text) == 0;
        if (is_named)
            own[i]->order_id = 0;
    }
    task_discard(worker, task);
    worker->reclaim_at_ms = 0;
}

/* Records, or waits for the database; whoever lost the lease meanwhile throws the result away. */
static void task_record(struct worker *worker, struct task *task)
{
    struct outcome_effect effect;
    struct domain domain = task_domain(worker, task);
    context_clear(&task->context);
    image_process_turn(worker);
    fault_point(FAULT_OUTCOME_KNOWN);
    enum iw_error error = outcome_record(&domain, &task->outcome, &effect);
    fault_point(FAULT_OUTCOME_RECORDED);
    image_process_turn(worker);
    if (error == IW_NOT_FOUND || error == IW_ORDER_NOT_FOUND) {
        log_failure(&task->context, "outcome_refused");
        refused_discard(worker, task);
        task_free(worker, task);
    } else if (error != IW_OK) {
        record_later(task);
    } else {
        outcome_log(worker, task, &effect);
        effect_apply(worker, task, &effect);
        task_free(worker, task);
    }
}

void task_end(struct worker *worker, struct task *task)
{
    task->state = TASK_RECORDING;
    task->record_failures = 0;
    task->record_at_ms = 0;
    task_record(worker, task);
}

void task_trouble(struct worker *worker, struct task *task, enum job_trouble trouble, enum iw_error error,
                  const char *sentence, const char *reason)
{
    task->outcome = (struct outcome){.job = &task->job,
                                     .kind = OUTCOME_TROUBLE,
                                     .trouble = trouble,
                                     .error = error,
                                     .sentence = sentence != NULL ? sentence : iw_error_sentence(error),
                                     .reason = reason};
    task_end(worker, task);
}

enum job_trouble task_trouble_of(const struct task *task)
{
    return task->context.error == IW_SERVICE_UNAVAILABLE ? JOB_TROUBLE_OURS : JOB_TROUBLE_TRANSIENT;
}

/* The job's texts live as long as the task works on it. */
static void job_keep(struct task *task, const struct job *job)
{
    arena_reset(task->arena);
    task->job = *job;
    task->job.request_id = arena_text(task->arena, job->request_id);
    task->job.file_name = arena_text(task->arena, job->file_name);
    const char **const texts[] = {&task->job.store_key,  &task->job.original_key, &task->job.source_url,
                                  &task->job.target_url, &task->job.result_key,   &task->job.target_headers};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = arena_text(task->arena, *texts[i]);
    context_init(&task->context, task->arena, task->job.request_id);
    task->context.account_id = job->account_id;
    task->context.order_id = job->order_id;
    task->context.job_id = job->id;
}

void task_begin(struct task *task)
{
    task->state = TASK_RUNNING;
    task->begun_ms = clock_monotonic_ms();
    log_event(LOG_DEBUG, &task->context, "job_begun", LOG_TEXT("kind", job_kind_name(task->job.kind)),
              LOG_NUMBER("attempt", task->job.attempt));
}

void task_lease(struct worker *worker, struct task *task, const struct job *job)
{
    job_keep(task, job);
    task->state = TASK_AHEAD;
    task->turn = worker->turn++;
    task->is_overdue = false;
    task->begun_ms = clock_monotonic_ms();
    task->give_back_ms = task->begun_ms + image_process_quick_ms;
    task->deadline_ms = INT64_MAX;
    if (job->kind == JOB_ARCHIVE)
        return;
    if (job->attempt > attempts_max && job->was_lost)
        task_trouble(worker, task, JOB_TROUBLE_FINAL, IW_PROCESSING_CRASHED, NULL, "attempts");
    else if (task->class == JOB_CLASS_TRANSFER)
        transfer_begin(worker, task);
    else
        image_task_prepare(worker, task);
}

/* Killing is enough: the end of the socket or pipe tells the rest. */
static void task_overdue(struct task *task)
{
    task->is_overdue = true;
    task->deadline_ms = INT64_MAX;
    if (task->child > 0)
        kill(task->child, SIGKILL);
    else
        image_process_kill(task->process);
}

/* An archive takes the place of an image process. */
static bool is_archive_due(const struct task *task)
{
    const struct worker *worker = task->worker;
    return task->job.kind == JOB_ARCHIVE && !worker->is_paused && image_process_task_next(worker) == task &&
           image_process_busy_count(worker) < worker->process_count;
}

/* What did not come to its turn in time is put back. */
static void ahead_tick(struct worker *worker, struct task *task, int64_t now_ms)
{
    if (is_archive_due(task))
        archive_task_begin(worker, task);
    else if (now_ms >= task->give_back_ms)
        lease_give_back(worker, task);
}

void task_tick(struct worker *worker, struct task *task, int64_t now_ms)
{
    if (task->state == TASK_RUNNING && now_ms >= task->deadline_ms)
        task_overdue(task);
    if (task->state == TASK_HEARD)
        image_task_take(worker, task);
    if (task->state == TASK_RECORDING && now_ms >= task->record_at_ms)
        task_record(worker, task);
    if (task->state == TASK_AHEAD)
        ahead_tick(worker, task, now_ms);
}

int64_t task_next_ms(const struct task *task)
{
    switch (task->state) {
    case TASK_FREE:
        break;
    case TASK_AHEAD:
        return is_archive_due(task) ? 0 : task->give_back_ms;
    case TASK_RUNNING:
        return task->deadline_ms;
    case TASK_HEARD:
        return 0;
    case TASK_RECORDING:
        return task->record_at_ms;
    }
    return INT64_MAX;
}

void task_drop(struct task *task)
{
    int wait_status;
    if (task->child > 0) {
        kill(task->child, SIGKILL);
        while (waitpid(task->child, &wait_status, 0) < 0 && errno == EINTR)
            continue;
    }
    if (task->child_pipe >= 0)
        close(task->child_pipe);
    task->child = 0;
    task->child_pipe = -1;
    image_task_close(task);
    transfer_drop(task);
    arena_free(task->arena);
    task->arena = NULL;
    task->state = TASK_FREE;
}
