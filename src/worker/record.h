/* Records the outcome of an attempt.  No other file does. */
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
 * True if the task is done with its job: recorded, or refused because the lease was lost.
 * False if the database is away; then task->record_at_ms is the time of the next attempt.
 */
bool record_outcome(const struct record *record, struct task *task);

#endif
