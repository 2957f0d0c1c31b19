/* The one place that records the outcome of an attempt. */
#ifndef WORKER_RECORD_H
#define WORKER_RECORD_H

#include <stdbool.h>

struct task;
struct worker;

/*
 * Records task->outcome and applies its effects: deletes files, announces jobs, wakes the deliveries.
 * True when the task is done with its job: recorded, or refused because the lease was lost.
 * False when the database is away: task->record_at_ms is the time of the next attempt.
 */
bool record_outcome(struct worker *worker, struct task *task);

#endif
