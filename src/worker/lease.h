/*
 * The jobs that this worker leases, and when; wake-ups from and to other workers.
 *
 * As many pictures run as there are image processes.  One more for each is prefetched: it
 * starts when the one before it ends, while that one's result is stored and recorded.
 * Prefetching must not hold up others.  So a job is prefetched only behind a quick picture, and
 * released when it did not start within a second.
 */
#ifndef WORKER_LEASE_H
#define WORKER_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/job.h"
#include "service/redis/queue.h"
#include "worker/loop.h"

struct image_processes;
struct sender;
struct shared;
struct task;
struct task_pool;

struct lease_state {
    struct shared *shared;
    struct task_pool *pools; /* by class */
    const struct image_processes *processes;
    const struct sender *transfers;
    struct queue queue;               /* wake-ups */
    int64_t cursors[JOB_CLASS_COUNT]; /* of jobs_lease */
    int64_t lease_at_ms;              /* monotonic: not before, after a failure */
    int64_t notify_order_id;          /* other workers are to be notified of its jobs; 0: none */
    int64_t notify_at_ms;             /* monotonic: not before */
};

/* Borrows redis until lease_close. */
void lease_open(struct lease_state *lease, struct redis *redis);
void lease_close(struct lease_state *lease);

/* Releases a job that did not start; false when the database is away.  Notifies other workers. */
bool lease_release(struct lease_state *lease, struct task *task);

extern const struct loop_source lease_source; /* the wake-ups */
extern const struct loop_timer lease_timer;   /* leases jobs of one class, or notifies other workers */

#endif
