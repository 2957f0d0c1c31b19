/*
 * The kinds of jobs, as tables of functions.  "jobs" is the struct of the kind, with what it needs.
 *
 * A function that ends the attempt returns its outcome, and work.c records it;
 * NULL means that the attempt continues.  No kind records, leases or frees.
 */
#ifndef WORKER_KIND_H
#define WORKER_KIND_H

#include "domain/orders/outcome.h"

struct task;

struct kind {
    /* Opens the inputs of a leased job; NULL: there is nothing to do. */
    struct outcome *(*prepare)(void *jobs, struct task *task);

    /* Starts a prepared job: it is TASK_RUNNING then, or stays TASK_PREFETCHED where no place is free. */
    struct outcome *(*begin)(void *jobs, struct task *task);

    /* Makes the outcome of an answer.  NULL: one slow step is done, another one follows. */
    struct outcome *(*finish)(void *jobs, struct task *task);

    /* Ends the work at its deadline, without waiting for it; NULL: the kind has no deadline. */
    void (*kill)(struct task *task);

    /* Closes the files and processes that the task still holds. */
    void (*close)(struct task *task);
};

#endif
