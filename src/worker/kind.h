/*
 * The kinds of jobs, as tables of functions.  "jobs" is the struct with the needs of the kind.
 *
 * A function that ends the attempt returns the outcome, and work.c records it.
 * NULL means that the attempt continues.  No kind records, leases or frees.
 */
#ifndef WORKER_KIND_H
#define WORKER_KIND_H

#include "domain/orders/outcome.h"

struct task;

struct kind {
    /* Opens the inputs of a leased job; a kind without inputs has no such function. */
    struct outcome *(*prepare)(void *jobs, struct task *task);

    /* Starts a prepared job.  The task is TASK_RUNNING then, or stays TASK_PREFETCHED if no place is free. */
    struct outcome *(*begin)(void *jobs, struct task *task);

    /* Makes the outcome of an answer.  NULL means that another slow step follows. */
    struct outcome *(*finish)(void *jobs, struct task *task);

    /* Kills the work at the deadline without waiting; a kind without a deadline has no such function. */
    void (*kill)(struct task *task);

    /* Closes the files and processes that the task still holds. */
    void (*close)(struct task *task);
};

#endif
