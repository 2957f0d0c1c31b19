/*
 * Which jobs this worker leases, and when.
 *
 * As many pictures are worked on as there are image processes.  Beside these one
 * for each of them is leased ahead, where the pictures are quick ones: it is begun
 * the moment the one before it is done, while that one's result is stored and
 * recorded.  Whoever waits loses little by it: a job is leased ahead behind a
 * quick picture alone, and is given back when it is not begun within a second,
 * for another worker may be free, or another account's turn may have come.
 */
#include <string.h>

#include <imgward/fault.h>

#include "base/clock.h"
#include "base/log.h"
#include "worker/worker.h"

enum { database_retry_ms = 1000, give_back_retry_ms = 500, tell_ms = 100 };

void lease_look_ask(struct worker *worker)
{
    for (int class = 0; class < JOB_CLASS_COUNT; class ++)
        worker->pools[class].is_look_asked = true;
}

void lease_tell_tick(struct worker *worker, int64_t now_ms)
{
    if (worker->tell_order_id == 0 || now_ms < worker->tell_at_ms)
        return;
    queue_ring(worker->domain.redis, &worker->start, &worker->context, worker->tell_order_id);
    worker->tell_order_id = 0;
    worker->tell_at_ms = now_ms + tell_ms;
}

/* Coalesce wake-ups: one notification per interval is enough. */
static void lease_tell(struct worker *worker, int64_t order_id)
{
    worker->tell_order_id = order_id;
    lease_tell_tick(worker, clock_monotonic_ms());
}

static unsigned tasks_count(const struct pool *pool, enum task_state state)
{
    unsigned count = 0;
    for (unsigned i = 0; i < pool->count; i++)
        count += pool->tasks[i].state == state;
    return count;
}

/* Image processes that could begin a picture at once, and those that a job may wait behind. */
static unsigned pictures_wanted(const struct worker *worker)
{
    int64_t now_ms = clock_monotonic_ms();
    unsigned idle = 0, quick = 0, busy = image_process_busy_count(worker);
    for (unsigned i = 0; i < worker->process_count; i++) {
        const struct image_process *process = &worker->processes[i];
        bool is_ready = process->state == IMAGE_PROCESS_READY;
        idle += is_ready && process->task == NULL;
        quick += is_ready && process->task != NULL && process->is_quick &&
                 now_ms - process->task->begun_ms < image_process_quick_ms;
    }
    /* An archive's child has the place of an image process. */
    unsigned left = worker->process_count > busy ? worker->process_count - busy : 0;
    return (idle < left ? idle : left) + quick;
}

unsigned lease_room(const struct worker *worker, enum job_class class)
{
    const struct pool *pool = &worker->pools[class];
    unsigned room = tasks_count(pool, TASK_FREE);
    if (class == JOB_CLASS_TRANSFER)
        return worker->is_fetch_stale ? 0 : room;
    unsigned wanted = pictures_wanted(worker), waiting = tasks_count(pool, TASK_AHEAD);
    unsigned more = wanted > waiting ? wanted - waiting : 0;
    return more < room ? more : room;
}

static void job_hand_out(struct worker *worker, struct pool *pool, const struct job *job)
{
    for (unsigned i = 0; i < pool->count; i++)
        if (pool->tasks[i].state == TASK_FREE) {
            task_lease(worker, &pool->tasks[i], job);
            return;
        }
}

/* Leases as many jobs as there is room for; what is left is for whoever hears the bell next. */
void lease_look(struct worker *worker, enum job_class class)
{
    struct job jobs[jobs_lease_max];
    struct pool *pool = &worker->pools[class];
    unsigned room = lease_room(worker, class), count = 0;
    int64_t now_ms = clock_monotonic_ms();
    const struct jobs_place place = {.owner = worker->owner,
                                     .class = class,
                                     .lease_s = worker->config.worker_lease_s,
                                     .account_most = pool->account_most,
                                     .cursor = &pool->cursor};
    if (!pool->is_look_asked || room == 0 || now_ms < worker->look_at_ms || worker->stop_at_ms != 0 ||
        worker->is_paused)
        return;
    pool->is_look_asked = false;
    image_process_turn(worker);
    enum iw_error error = jobs_lease(&worker->domain.store, &place, room, jobs, &count);
    if (!worker_database_said(worker, error, "lease_failed")) {
        pool->is_look_asked = true;
        worker->look_at_ms = now_ms + database_retry_ms;
        return;
    }
    if (count > 0)
        fault_point(FAULT_WORKER_LEASED);
    for (unsigned i = 0; i < count; i++)
        job_hand_out(worker, pool, &jobs[i]);
    image_process_turn(worker);
    if (count == room || count == jobs_lease_max) {
        pool->is_look_asked = true;
        lease_tell(worker, jobs[count - 1].order_id);
    }
}

/* NOT_FOUND: the lease was lost, or the word of the giving back was. */
bool lease_give_back(struct worker *worker, struct task *task)
{
    struct domain domain = worker->domain;
    domain_context_set(&domain, &task->context);
    enum iw_error error = outcome_give_back(&domain, &task->job);
    context_clear(&task->context);
    if (error != IW_OK && error != IW_NOT_FOUND) {
        task->give_back_ms = clock_monotonic_ms() + give_back_retry_ms;
        return false;
    }
    log_event(LOG_INFO, &task->context, "job_given_back", LOG_TEXT("kind", job_kind_name(task->job.kind)),
              LOG_NUMBER("file_id", task->job.file_id), LOG_NUMBER("attempt", task->job.attempt),
              LOG_NUMBER("ms", clock_monotonic_ms() - task->begun_ms));
    lease_tell(worker, task->job.order_id);
    task_free(worker, task);
    return true;
}

void lease_give_all_back(struct worker *worker)
{
    struct task *task;
    while ((task = image_process_task_next(worker)) != NULL && lease_give_back(worker, task))
        continue;
}
