#include "worker/lease.h"

#include "base/clock.h"
#include "base/log.h"
#include "worker/image_process.h"
#include "worker/sender.h"
#include "worker/shared.h"
#include "worker/task.h"

enum { database_retry_ms = 1000, release_retry_ms = 500, notify_pause_ms = 100 };

void lease_open(struct lease_state *lease, struct redis *redis)
{
    queue_init(&lease->queue, redis, lease->shared->start);
    shared_lease_want(lease->shared);
}

void lease_close(struct lease_state *lease)
{
    redis_free(lease->queue.redis);
}

/* Returns how many image processes could start a picture now, or soon because they have a quick picture. */
static unsigned pictures_wanted(const struct lease_state *lease)
{
    int64_t now_ms = clock_monotonic_ms();
    unsigned idle = 0, quick = 0, running = task_count(&lease->pools[JOB_CLASS_IMAGE], TASK_RUNNING);
    for (unsigned i = 0; i < lease->processes->count; i++) {
        const struct image_slot *process = &lease->processes->list[i];
        bool is_ready = process->state == IMAGE_PROCESS_READY;
        idle += is_ready && process->task == NULL;
        quick += is_ready && process->task != NULL && process->is_quick &&
                 now_ms - process->task->begun_ms < task_quick_ms;
    }
    /* The child of an archive has the place of an image process. */
    unsigned places = lease->processes->count > running ? lease->processes->count - running : 0;
    return (idle < places ? idle : places) + quick;
}

/* Returns how many more jobs of a class have room. */
static unsigned lease_room(const struct lease_state *lease, enum job_class class)
{
    const struct task_pool *pool = &lease->pools[class];
    if (class == JOB_CLASS_TRANSFER)
        return sender_room(lease->transfers, task_busy_count(pool), pool->count);
    unsigned free = task_count(pool, TASK_FREE), wanted = pictures_wanted(lease);
    unsigned waiting = task_count(pool, TASK_PREFETCHED) + task_count(pool, TASK_LEASED);
    unsigned more = wanted > waiting ? wanted - waiting : 0;
    return more < free ? more : free;
}

static bool is_wanted(const struct lease_state *lease, enum job_class class)
{
    return lease->shared->is_lease_wanted[class] && !shared_is_draining(lease->shared) &&
           lease_room(lease, class) > 0;
}

static void jobs_take(struct lease_state *lease, enum job_class class, int64_t now_ms)
{
    struct shared *shared = lease->shared;
    struct job jobs[jobs_lease_max];
    struct task_pool *pool = &lease->pools[class];
    unsigned room = lease_room(lease, class), count = 0, account_most = pool->account_most;
    if (class == JOB_CLASS_TRANSFER) {
        /* Slow transfers of some accounts must leave room for other accounts: see room_for in deliver.c. */
        account_most = room < account_most ? room : account_most;
        room = (room + 1) / 2;
    }
    const struct jobs_wish wish = {.owner = shared->owner,
                                   .class = class,
                                   .lease_s = shared->domain.config->worker_lease_s,
                                   .account_most = account_most,
                                   .cursor = &lease->cursors[class]};
    shared->is_lease_wanted[class] = false;
    enum iw_error error = jobs_lease(&shared->domain.db, &wish, room, jobs, &count);
    if (!shared_database_report(shared, error, "lease_failed")) {
        shared->is_lease_wanted[class] = true;
        lease->lease_at_ms = now_ms + database_retry_ms;
        return;
    }
    for (unsigned i = 0; i < count; i++)
        task_assign(pool, &jobs[i]);
    if (count == room || count == jobs_lease_max) {
        shared->is_lease_wanted[class] = true;
        lease->notify_order_id = jobs[count - 1].order_id;
    }
}

/* Has no effect if the lease was lost, or if an earlier release was committed but the reply was lost. */
bool lease_release(struct lease_state *lease, struct task *task)
{
    struct domain domain = lease->shared->domain;
    domain_context_set(&domain, &task->context);
    enum iw_error error = outcome_release(&domain, &task->job);
    context_clear(&task->context);
    if (error != IW_OK) {
        task->release_retry_ms = clock_monotonic_ms() + release_retry_ms;
        return false;
    }
    log_event(LOG_INFO, &task->context, "job_released", LOG_TEXT("kind", job_kind_name(task->job.kind)),
              LOG_NUMBER("file_id", task->job.file_id), LOG_NUMBER("attempt", task->job.attempt),
              LOG_NUMBER("ms", clock_monotonic_ms() - task->begun_ms));
    lease->notify_order_id = task->job.order_id;
    return true;
}

/* ---- for the loop ---- */

static unsigned lease_poll(void *part, struct pollfd *polls, unsigned room)
{
    struct lease_state *lease = part;
    struct shared *shared = lease->shared;
    struct queue *queue = &lease->queue;
    bool has_room = lease_room(lease, JOB_CLASS_IMAGE) + lease_room(lease, JOB_CLASS_TRANSFER) > 0;
    if (has_room && shared->stop_at_ms == 0)
        queue_listen(queue, shared->domain.context);
    if (room > 0)
        polls[0] = (struct pollfd){.fd = queue_descriptor(queue), .events = POLLIN};
    return room > 0;
}

/* Runs without an event, too, because a silent connection must be closed. */
static void lease_take(void *part, const struct pollfd *polls, unsigned count)
{
    struct lease_state *lease = part;
    struct shared *shared = lease->shared;
    (void)polls;
    (void)count;
    if (!queue_heard(&lease->queue, shared->domain.context))
        return;
    shared_lease_want(shared);
    shared->is_delivery_wanted = true;
}

static int64_t lease_next_ms(const void *part)
{
    const struct lease_state *lease = part;
    int64_t notify_ms = lease->notify_order_id != 0 ? lease->notify_at_ms : INT64_MAX;
    bool is_lease_wanted = is_wanted(lease, JOB_CLASS_IMAGE) || is_wanted(lease, JOB_CLASS_TRANSFER);
    return is_lease_wanted && lease->lease_at_ms < notify_ms ? lease->lease_at_ms : notify_ms;
}

static void lease_step(void *part, int64_t now_ms)
{
    struct lease_state *lease = part;
    struct shared *shared = lease->shared;
    /* One notification per pause is enough: a notified worker leases all jobs that it has room for. */
    if (lease->notify_order_id != 0 && now_ms >= lease->notify_at_ms) {
        queue_notify(shared->domain.redis, shared->start, shared->domain.context, lease->notify_order_id);
        lease->notify_order_id = 0;
        lease->notify_at_ms = clock_monotonic_ms() + notify_pause_ms;
    } else if (is_wanted(lease, JOB_CLASS_IMAGE)) {
        jobs_take(lease, JOB_CLASS_IMAGE, now_ms);
    } else if (is_wanted(lease, JOB_CLASS_TRANSFER)) {
        jobs_take(lease, JOB_CLASS_TRANSFER, now_ms);
    }
}

const struct loop_source lease_source = {.poll = lease_poll, .take = lease_take};
const struct loop_timer lease_timer = {lease_next_ms, lease_step};
