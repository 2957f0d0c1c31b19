/*
 * Jobs on the network: sources fetched into the store, results pushed to their
 * targets.  They share one sender, and occupy no image process.
 */
#ifndef WORKER_TRANSFER_H
#define WORKER_TRANSFER_H

#include "worker/kind.h"
#include "worker/loop.h"
#include "worker/sender.h"

struct shared;
struct task_pool;

struct transfer_jobs {
    struct shared *shared;
    const struct task_pool *pool;
    struct sender sender;
};

extern const struct kind transfer_fetch_kind;
extern const struct kind transfer_push_kind;

extern const struct loop_source transfer_source; /* the sockets of all transfers */

#endif
