/*
 * imgward-worker: one loop that leases jobs, feeds image processes, records outcomes,
 * delivers webhooks and does the periodic work on orders.
 *
 * The database has the state: the worker may be killed at any line, and its leased jobs
 * are done again by another one.
 */
#ifndef WORKER_SUPERVISOR_H
#define WORKER_SUPERVISOR_H

#include "base/context.h"

/* Runs until TERM; returns an exit status.  After a failed start the context has the reason. */
int supervisor_run(struct context *context, const char *config_file);

/* Checks the configuration file and the files that it names. */
enum iw_error supervisor_check(struct context *context, const char *config_file) IW_MUST_USE;

#endif
