/*
 * Drives every task from step to step: prepare, begin, finish, record, release.
 * The kinds do the work (kind.h), and record.h records the outcome.
 */
#ifndef WORKER_WORK_H
#define WORKER_WORK_H

#include "model/job.h"
#include "worker/loop.h"
#include "worker/record.h"

struct kind;
struct lease_state;
struct shared;
struct task_pool;

/* A kind of jobs, and the struct that its functions take. */
struct work_kind {
    const struct kind *table;
    void *jobs;
};

struct work {
    struct shared *shared;
    struct task_pool *pools;          /* by class */
    unsigned places[JOB_CLASS_COUNT]; /* tasks of a class that may run at the same time */
    struct work_kind kinds[JOB_KIND_COUNT];
    struct lease_state *lease;
    struct record record;
    unsigned class_last; /* the class whose task got the last step */
};

/*
 * Prepares leased jobs and starts those that have a place.
 * The loop calls it between any two slow steps, so that no image process waits for such a step.
 */
void work_begin(struct work *work);

extern const struct loop_timer work_timer; /* one slow step of one task */

/* Ends the work of every task without a record.  The leases end by themselves. */
void work_close(struct work *work);

#endif
