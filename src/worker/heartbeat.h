/*
 * The heartbeat: renews the leases, writes the worker's row with its metrics,
 * and reads whether an operator paused the queue.
 */
#ifndef WORKER_HEARTBEAT_H
#define WORKER_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

struct worker;

struct heartbeat {
    int64_t at_ms;      /* monotonic */
    bool is_row_failed; /* the row could not be written, as with an older schema: logged once */
};

/* The timer. */
int64_t heartbeat_next_ms(const struct worker *worker);
void heartbeat_step(struct worker *worker, int64_t now_ms);

#endif
