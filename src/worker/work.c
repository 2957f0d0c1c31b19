#include "worker/work.h"

#include "base/clock.h"
#include "worker/worker.h"

/*
 * A lease that is lost again and again means that the job kills the whole worker.
 * Attempts that ended with a record do not count here: a disk may be full for a day.
 */
enum { attempts_max = 100 };

static const struct kind *const kinds[JOB_KIND_COUNT] = {
    [JOB_PROTECT] = &picture_kind, [JOB_EMBED] = &picture_kind,        [JOB_EXTRACT] = &picture_kind,
    [JOB_ARCHIVE] = &archive_kind, [JOB_FETCH] = &transfer_fetch_kind, [JOB_PUSH] = &transfer_push_kind,
};

/* NULL: the attempt continues. */
static void step_end(struct task *task, const struct outcome *outcome)
{
    if (outcome == NULL)
        return;
    task->state = TASK_RECORDING;
    task->record_failures = 0;
    task->record_at_ms = 0;
}

static void work_free(struct worker *worker, struct task *task)
{
    kinds[task->job.kind]->close(task);
    task->state = TASK_FREE;
    worker->flags.is_lease_wanted[task->class] = true;
}

/* ---- quick steps ---- */

static void step_prepare(struct worker *worker, struct task *task)
{
    const struct kind *kind = kinds[task->job.kind];
    task->state = TASK_PREFETCHED;
    if (task->job.attempt > attempts_max && task->job.was_lost && kind != &archive_kind)
        step_end(task, task_trouble(task, JOB_TROUBLE_FINAL, IW_PROCESSING_CRASHED, NULL, "attempts"));
    else if (kind->prepare != NULL)
        step_end(task, kind->prepare(worker, task));
}

void work_begin(struct worker *worker)
{
    struct task *task;
    if (flags_is_draining(&worker->flags))
        return;
    for (struct task_pool *pool = worker->pools; pool < worker->pools + JOB_CLASS_COUNT; pool++) {
        /* The child of an archive takes the place of an image process. */
        bool is_image = pool == &worker->pools[JOB_CLASS_IMAGE];
        unsigned places = is_image ? worker->processes.count : pool->count;
        while ((task = task_first(pool, TASK_LEASED)) != NULL)
            step_prepare(worker, task);
        while (task_count(pool, TASK_RUNNING) < places &&
               (task = task_first(pool, TASK_PREFETCHED)) != NULL) {
            step_end(task, kinds[task->job.kind]->begin(worker, task));
            if (task->state == TASK_PREFETCHED)
                break;
        }
    }
}

/* ---- slow steps ---- */

static void step_release(struct worker *worker, struct task *task)
{
    if (lease_release(worker, task) || worker->flags.stop_at_ms != 0)
        work_free(worker, task);
}

static void step_kill(struct worker *worker, struct task *task)
{
    (void)worker;
    task->is_overdue = true;
    task->deadline_ms = INT64_MAX;
    kinds[task->job.kind]->kill(task);
}

static void step_finish(struct worker *worker, struct task *task)
{
    step_end(task, kinds[task->job.kind]->finish(worker, task));
}

static void step_record(struct worker *worker, struct task *task)
{
    if (record_outcome(worker, task))
        work_free(worker, task);
}

/* The slow step of a task in a state; NULL: it has none. */
static void (*const steps[])(struct worker *worker, struct task *task) = {
    [TASK_FREE] = NULL,         [TASK_LEASED] = step_release,  [TASK_PREFETCHED] = step_release,
    [TASK_RUNNING] = step_kill, [TASK_ANSWERED] = step_finish, [TASK_RECORDING] = step_record,
};

/* When the step of a task is due (monotonic). */
static int64_t due_ms(const struct worker *worker, const struct task *task)
{
    bool is_draining = flags_is_draining(&worker->flags);
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

int64_t work_next_ms(const struct worker *worker)
{
    int64_t next_ms = INT64_MAX;
    for (const struct task_pool *pool = worker->pools; pool < worker->pools + JOB_CLASS_COUNT; pool++)
        for (unsigned i = 0; i < pool->count; i++) {
            int64_t at_ms = due_ms(worker, &pool->tasks[i]);
            next_ms = at_ms < next_ms ? at_ms : next_ms;
        }
    return next_ms;
}

/* The due task with the lowest turn; NULL: none. */
static struct task *step_due(const struct worker *worker, const struct task_pool *pool, int64_t now_ms)
{
    struct task *due = NULL;
    for (struct task *task = pool->tasks; task < pool->tasks + pool->count; task++)
        if (due_ms(worker, task) <= now_ms && (due == NULL || task->turn < due->turn))
            due = task;
    return due;
}

/* Each class gets a step in turn: many transfers do not delay the pictures. */
void work_step(struct worker *worker, int64_t now_ms)
{
    struct task *task = NULL;
    for (int i = 0; i < JOB_CLASS_COUNT && task == NULL; i++) {
        worker->class_last = (worker->class_last + 1) % JOB_CLASS_COUNT;
        task = step_due(worker, &worker->pools[worker->class_last], now_ms);
    }
    if (task != NULL)
        steps[task->state](worker, task);
}

void work_close(struct worker *worker)
{
    for (struct task_pool *pool = worker->pools; pool < worker->pools + JOB_CLASS_COUNT; pool++) {
        for (unsigned i = 0; i < pool->count; i++)
            if (pool->tasks[i].state != TASK_FREE)
                kinds[pool->tasks[i].job.kind]->close(&pool->tasks[i]);
        task_pool_free(pool);
    }
}
