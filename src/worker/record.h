/* The one place that records the outcome of an attempt. */
#ifndef WORKER_RECORD_H
#define WORKER_RECORD_H

#include <stdbool.h>

struct cleanup;
struct shared;
struct task;

/* What a record needs. */
struct record {
    struct shared *shared;
    struct cleanup *cleanup;
};

/*
 * Records task->outcome and applies its effects: deletes files, announces jobs, wakes the deliveries.
 * True when the task is done with its job: recorded, or refused because the lease was lost.
 * False when the database is away: task->record_at_ms is the time of the next attempt.
 */
bool record_outcome(const struct record *record, struct task *task);

#endif
