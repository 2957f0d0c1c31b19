/*
 * The archive of an order, written by a child process: copying gigabytes takes
 * longer than the worker's loop may wait.
 */
#ifndef WORKER_ARCHIVE_H
#define WORKER_ARCHIVE_H

#include "worker/kind.h"
#include "worker/loop.h"

struct shared;
struct task_pool;

struct archive_jobs {
    const struct shared *shared;
    struct task_pool *pool; /* the tasks that may be archives */
};

extern const struct kind archive_kind;
extern const struct loop_source archive_source; /* the pipes of the children */

#endif
