/*
 * Drives every task from step to step: prepare, begin, finish, record, release.
 * The kinds do the work (kind.h); record.h records.
 */
#ifndef WORKER_WORK_H
#define WORKER_WORK_H

#include <stdint.h>

struct worker;

/*
 * Prepares leased jobs and starts those that have a place.
 * The loop calls it between any two slow steps, so that no image process waits for such a step.
 */
void work_begin(struct worker *worker);

/* The timer: one slow step of one task. */
int64_t work_next_ms(const struct worker *worker);
void work_step(struct worker *worker, int64_t now_ms);

/* Ends the work of every task without a record; leases are left to end. */
void work_close(struct worker *worker);

#endif
