/*
 * The heartbeat: renews the leases, writes the worker's row with its metrics,
 * and reads whether an operator paused the queue.
 */
#ifndef WORKER_HEARTBEAT_H
#define WORKER_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/loop.h"

struct image_processes;
struct shared;
struct task_pool;

struct heartbeat {
    struct shared *shared;
    const struct task_pool *pools; /* by class */
    const struct image_processes *processes;
    int64_t at_ms;      /* monotonic */
    bool is_row_failed; /* the row could not be written, as with an older schema: logged once */
};

extern const struct loop_timer heartbeat_timer;

#endif
