/*
 * The line that systemctl status shows of a pool: whether database, Redis, file store and keys can be used.
 *
 * The pool is ready without them, and answers 503.  A process that the supervisor forks looks every ten
 * seconds, because a server that is away may take its whole timeout to say so.
 */
#ifndef HTTP_PROBE_H
#define HTTP_PROBE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/config.h"

struct probe {
    char *line;    /* memory that is shared with the forked process; valid when it has ended */
    pid_t pid;     /* 0: none runs */
    int64_t at_ms; /* monotonic: of the next start, or when to kill a process that hangs */
};

void probe_init(struct probe *probe);

/* Starts the process when it is due, under systemd only.  Call it every second. */
void probe_step(struct probe *probe, const struct config *config);

/* For every process that was reaped; notifies systemd when it was the probe's. */
void probe_reaped(struct probe *probe, pid_t pid);

void probe_fini(struct probe *probe);

#endif
