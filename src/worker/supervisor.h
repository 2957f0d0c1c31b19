/*
 * imgward-worker: leases jobs, feeds image processes, records what becomes of
 * them, and does what time asks of orders.
 *
 * The database is the truth: the supervisor may be killed at any line, and what
 * it had leased is done again by itself or another.
 */
#ifndef WORKER_SUPERVISOR_H
#define WORKER_SUPERVISOR_H

#include <imgward/context.h>

/* Runs until TERM; an exit status.  On a failure to start the context holds why. */
int supervisor_run(struct context *context, const char *config_file);

/* Checks the configuration file and all that it names. */
enum iw_error supervisor_check(struct context *context, const char *config_file) IW_MUST_USE;

#endif
