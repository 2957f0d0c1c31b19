/*
 * The line that systemctl status shows of a pool: whether database, Redis, file store and keys can be used.
 *
 * Without them the pool is ready, but answers 503. The supervisor forks a process that checks them every ten
 * seconds, because connecting to an unavailable server may take until the timeout.
 */
#ifndef HTTP_PROBE_H
#define HTTP_PROBE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/config.h"

struct probe {
    char *line;    /* memory that is shared with the forked process; valid when it has ended */
    pid_t pid;     /* 0 if no process runs */
    int64_t at_ms; /* monotonic; time of the next start, or when to kill a process that hangs */
};

void probe_init(struct probe *probe);

/* Starts the process if it is due, under systemd only.  Call it every second. */
void probe_step(struct probe *probe, const struct config *config);

/* Call it for every process that was reaped; notifies systemd if it was the process of the probe. */
void probe_reaped(struct probe *probe, pid_t pid);

void probe_fini(struct probe *probe);

#endif
