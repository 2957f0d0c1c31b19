#include "worker/work.h"

#include "base/clock.h"
#include "worker/kind.h"
#include "worker/lease.h"
#include "worker/shared.h"
#include "worker/task.h"

/*
 * A lease that is lost again and again means that the job kills the whole worker.
 * Attempts that ended with a record do not count here: a disk may be full for a day.
 */
enum { attempts_max = 100 };

static const struct work_kind *kind_of(const struct work *work, const struct task *task)
{
    return &work->kinds[task->job.kind];
}

/* If outcome is NULL, the attempt continues. */
static void step_end(struct task *task, const struct outcome *outcome)
{
    if (outcome == NULL)
        return;
    task->state = TASK_RECORDING;
    task->record_failures = 0;
    task->record_at_ms = 0;
}

static void work_free(struct work *work, struct task *task)
{
    kind_of(work, task)->table->close(task);
    task->state = TASK_FREE;
    work->shared->is_lease_wanted[task->class] = true;
}

/* ---- quick steps ---- */

static void step_prepare(struct work *work, struct task *task)
{
    const struct work_kind *kind = kind_of(work, task);
    task->state = TASK_PREFETCHED;
    if (task->job.attempt > attempts_max && task->job.was_lost && task->job.kind != JOB_ARCHIVE)
        step_end(task, task_trouble(task, JOB_TROUBLE_FINAL, IW_PROCESSING_CRASHED, NULL, "attempts"));
    else if (kind->table->prepare != NULL)
        step_end(task, kind->table->prepare(kind->jobs, task));
}

void work_begin(struct work *work)
{
    struct task *task;
    if (shared_is_draining(work->shared))
        return;
    for (struct task_pool *pool = work->pools; pool < work->pools + JOB_CLASS_COUNT; pool++) {
        unsigned places = work->places[pool - work->pools];
        while ((task = task_first(pool, TASK_LEASED)) != NULL)
            step_prepare(work, task);
        while (task_count(pool, TASK_RUNNING) < places &&
               (task = task_first(pool, TASK_PREFETCHED)) != NULL) {
            const struct work_kind *kind = kind_of(work, task);
            step_end(task, kind->table->begin(kind->jobs, task));
            if (task->state == TASK_PREFETCHED)
                break;
        }
    }
}

/* ---- slow steps ---- */

static void step_release(struct work *work, struct task *task)
{
    if (lease_release(work->lease, task) || work->shared->stop_at_ms != 0)
        work_free(work, task);
}

static void step_kill(struct work *work, struct task *task)
{
    task->is_overdue = true;
    task->deadline_ms = INT64_MAX;
    kind_of(work, task)->table->kill(task);
}

static void step_finish(struct work *work, struct task *task)
{
    const struct work_kind *kind = kind_of(work, task);
    step_end(task, kind->table->finish(kind->jobs, task));
}

static void step_record(struct work *work, struct task *task)
{
    if (record_outcome(&work->record, task))
        work_free(work, task);
}

/* The slow step of a task in a state; NULL if the state has none. */
static void (*const steps[])(struct work *work, struct task *task) = {
    [TASK_FREE] = NULL,         [TASK_LEASED] = step_release,  [TASK_PREFETCHED] = step_release,
    [TASK_RUNNING] = step_kill, [TASK_ANSWERED] = step_finish, [TASK_RECORDING] = step_record,
};

/* When the step of a task is due (monotonic). */
static int64_t due_ms(const struct work *work, const struct task *task)
{
    bool is_draining = shared_is_draining(work->shared);
    switch (task->state) {
    case TASK_FREE:
        break;
    case TASK_LEASED:
    case TASK_PREFETCHED:
        return is_draining || task->release_retry_ms > task->release_at_ms ? task->release_retry_ms
                                                                           : task->release_at_ms;
    case TASK_RUNNING:
        return task->deadline_ms;
    case TASK_ANSWERED:
        return 0;
    case TASK_RECORDING:
        return task->record_at_ms;
    }
    return INT64_MAX;
}

static int64_t work_next_ms(const void *part)
{
    const struct work *work = part;
    int64_t next_ms = INT64_MAX;
    for (const struct task_pool *pool = work->pools; pool < work->pools + JOB_CLASS_COUNT; pool++)
        for (unsigned i = 0; i < pool->count; i++) {
            int64_t at_ms = due_ms(work, &pool->tasks[i]);
            next_ms = at_ms < next_ms ? at_ms : next_ms;
        }
    return next_ms;
}

/* Returns the due task with the lowest turn; NULL if no task is due. */
static struct task *step_due(const struct work *work, const struct task_pool *pool, int64_t now_ms)
{
    struct task *due = NULL;
    for (struct task *task = pool->tasks; task < pool->tasks + pool->count; task++)
        if (due_ms(work, task) <= now_ms && (due == NULL || task->turn < due->turn))
            due = task;
    return due;
}

/* Each class gets a step in turn: many transfers do not delay the pictures. */
static void work_step(void *part, int64_t now_ms)
{
    struct work *work = part;
    struct task *task = NULL;
    for (int i = 0; i < JOB_CLASS_COUNT && task == NULL; i++) {
        work->class_last = (work->class_last + 1) % JOB_CLASS_COUNT;
        task = step_due(work, &work->pools[work->class_last], now_ms);
    }
    if (task != NULL)
        steps[task->state](work, task);
}

void work_close(struct work *work)
{
    for (struct task_pool *pool = work->pools; pool < work->pools + JOB_CLASS_COUNT; pool++) {
        for (unsigned i = 0; i < pool->count; i++)
            if (pool->tasks[i].state != TASK_FREE)
                kind_of(work, &pool->tasks[i])->table->close(&pool->tasks[i]);
        task_pool_free(pool);
    }
}

const struct loop_timer work_timer = {work_next_ms, work_step};
