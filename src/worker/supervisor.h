/*
 * imgward-worker: one loop that leases jobs, feeds image processes, records outcomes,
 * delivers webhooks and does the periodic work on orders.
 *
 * The database holds the state.  If the worker is killed at any line, another worker does the leased
 * jobs again.
 */
#ifndef WORKER_SUPERVISOR_H
#define WORKER_SUPERVISOR_H

#include "base/context.h"

/* Runs until TERM; returns an exit status.  If the start fails, the context has the reason. */
int supervisor_run(struct context *context, const char *config_file);

/* Checks the configuration file and the files that it names. */
enum iw_error supervisor_check(struct context *context, const char *config_file) IW_MUST_USE;

#endif
