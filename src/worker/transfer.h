/*
 * Jobs on the network: sources fetched into the store, results pushed to their
 * targets.  All of them share one sender; none holds an image process.
 */
#ifndef WORKER_TRANSFER_H
#define WORKER_TRANSFER_H

#include <poll.h>
#include <stdint.h>

#include "base/context.h"
#include "service/files/upload_sink.h"
#include "service/net/fetch.h"
#include "worker/kind.h"

/* The part of a task. */
struct transfer_part {
    struct upload_sink *sink;       /* of a fetch; NULL: none */
    struct storage_key key;         /* of the fetched bytes; valid with sink */
    int source_file;                /* of a push; -1: none */
    char server[fetch_server_size]; /* valid when TASK_RUNNING */
    struct fetch_result result;     /* valid when TASK_ANSWERED */
};

extern const struct kind transfer_fetch_kind;
extern const struct kind transfer_push_kind;

/* The event source: the sockets of all transfers, and the time of the next step without an event. */
unsigned transfer_poll(struct worker *worker, struct pollfd *polls, unsigned room);
void transfer_take(struct worker *worker, const struct pollfd *polls, unsigned count);
int64_t transfer_next_ms(const struct worker *worker);

#endif
