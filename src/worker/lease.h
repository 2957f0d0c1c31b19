/*
 * The jobs that this worker leases, and when; wake-ups from and to other workers.
 *
 * As many pictures run as there are image processes.  For each process another picture is prefetched:
 * it starts as soon as the process is free, while the previous result is stored and recorded.
 * Another worker might start a prefetched picture sooner.  So a picture is prefetched only behind a
 * quick picture, and released if it did not start within a second.
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
    int64_t lease_at_ms;              /* monotonic: no lease before, after a failure */
    int64_t notify_order_id;          /* other workers must be notified of this order; 0 if there is none */
    int64_t notify_at_ms;             /* monotonic: no notification before */
};

/* Borrows redis until lease_close. */
void lease_open(struct lease_state *lease, struct redis *redis);
void lease_close(struct lease_state *lease);

/* Releases a job that did not start, and notifies other workers.  False if the database is away. */
bool lease_release(struct lease_state *lease, struct task *task);

extern const struct loop_source lease_source; /* the wake-ups */
extern const struct loop_timer lease_timer;   /* leases jobs of one class, or notifies other workers */

#endif
