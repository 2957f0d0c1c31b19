/*
 * The archive of an order, written by a child process: copying gigabytes takes
 * longer than the worker's loop may wait.
 */
#ifndef WORKER_ARCHIVE_H
#define WORKER_ARCHIVE_H

#include <poll.h>
#include <sys/types.h>

#include "service/files/storage.h"
#include "worker/kind.h"

struct archive_report;

/* The part of a task. */
struct archive_part {
    pid_t child;    /* 0: none */
    int child_pipe; /* it writes its report there; -1: none */
    struct storage_key key;
    const struct archive_report *report; /* valid when TASK_ANSWERED */
};

extern const struct kind archive_kind;

/* The event source: the pipes of the children. */
unsigned archive_poll(struct worker *worker, struct pollfd *polls, unsigned room);
void archive_take(struct worker *worker, const struct pollfd *polls, unsigned count);

#endif
