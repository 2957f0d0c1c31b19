#include "worker/task.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

void task_pool_make(struct task_pool *pool, enum job_class class, unsigned count, unsigned account_most)
{
    *pool = (struct task_pool){
        .tasks = calloc(count, sizeof *pool->tasks), .count = count, .account_most = account_most};
    if (pool->tasks == NULL)
        abort();
    for (unsigned i = 0; i < count; i++)
        pool->tasks[i] = (struct task){.class = class,
                                       .arena = arena_new(0),
                                       .picture = {.input_file = -1,
                                                   .original_file = -1,
                                                   .candidates_file = -1,
                                                   .result_file = -1,
                                                   .thumbnail_file = -1},
                                       .archive = {.child_pipe = -1},
                                       .transfer = {.source_file = -1}};
}

void task_pool_free(struct task_pool *pool)
{
    for (unsigned i = 0; i < pool->count; i++)
        arena_free(pool->tasks[i].arena);
    free(pool->tasks);
    *pool = (struct task_pool){.tasks = NULL};
}

unsigned task_count(const struct task_pool *pool, enum task_state state)
{
    unsigned count = 0;
    for (unsigned i = 0; i < pool->count; i++)
        count += pool->tasks[i].state == state;
    return count;
}

unsigned task_busy_count(const struct task_pool *pool)
{
    return pool->count - task_count(pool, TASK_FREE);
}

struct task *task_first(const struct task_pool *pool, enum task_state state)
{
    struct task *first = NULL;
    for (struct task *task = pool->tasks; task < pool->tasks + pool->count; task++)
        if (task->state == state && (first == NULL || task->turn < first->turn))
            first = task;
    return first;
}

void task_assign(struct task_pool *pool, const struct job *job)
{
    struct task *task = task_first(pool, TASK_FREE);
    if (task == NULL)
        return;
    arena_reset(task->arena);
    task->job = *job;
    const char **const texts[] = {
        &task->job.request_id,     &task->job.trace_id,   &task->job.file_name,     &task->job.store_key,
        &task->job.original_key,   &task->job.source_url, &task->job.target_url,    &task->job.result_key,
        &task->job.target_headers, &task->job.etag,       &task->job.original_etag, &task->job.error_code,
        &task->job.error_sentence};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = arena_text(task->arena, *texts[i]);
    context_init(&task->context, task->arena, task->job.request_id);
    context_trace_join(&task->context, task->job.trace_id);
    task->context.account_id = job->account_id;
    task->context.order_id = job->order_id;
    task->context.job_id = job->id;
    task->state = TASK_LEASED;
    task->turn = pool->turn++;
    task->is_overdue = false;
    task->begun_ms = clock_monotonic_ms();
    task->queued_ms = job->queued_ms;
    task->deadline_ms = INT64_MAX;
    task->release_at_ms = task->begun_ms + task_quick_ms;
    task->release_retry_ms = 0;
    task->result_key.order_id = task->thumbnail_key.order_id = 0;
}

void task_start(struct task *task)
{
    task->state = TASK_RUNNING;
    int64_t now_ms = clock_monotonic_ms();
    task->queued_ms += now_ms - task->begun_ms;
    task->begun_ms = now_ms;
    log_event(LOG_DEBUG, &task->context, "job_begun", LOG_TEXT("kind", job_kind_name(task->job.kind)),
              LOG_NUMBER("attempt", task->job.attempt));
}

struct outcome *task_outcome(struct task *task, enum outcome_kind kind)
{
    task->outcome = (struct outcome){.job = &task->job, .kind = kind};
    return &task->outcome;
}

struct outcome *task_trouble(struct task *task, enum job_trouble trouble, enum iw_error error,
                             const char *sentence, const char *reason)
{
    struct outcome *outcome = task_outcome(task, OUTCOME_TROUBLE);
    outcome->trouble = trouble;
    outcome->error = error;
    outcome->sentence = sentence != NULL ? sentence : iw_error_sentence(error);
    outcome->reason = reason;
    return outcome;
}

struct outcome *task_failure(struct task *task, const char *event, const char *reason)
{
    bool is_ours = task->context.error == IW_SERVICE_UNAVAILABLE;
    log_failure(&task->context, event);
    return task_trouble(task, is_ours ? JOB_TROUBLE_OURS : JOB_TROUBLE_TRANSIENT, IW_PROCESSING_CRASHED, NULL,
                        task->context.reason != NULL ? task->context.reason : reason);
}

void task_discard(struct task *task, struct storage *storage)
{
    struct storage_key *const keys[] = {&task->result_key, &task->thumbnail_key};
    struct context context;
    for (int i = 0; i < 2; i++) {
        context_init(&context, task->arena, NULL);
        if (keys[i]->order_id != 0 && storage_delete(storage, &context, keys[i]) != IW_OK)
            context_clear(&context);
        keys[i]->order_id = 0;
    }
}
