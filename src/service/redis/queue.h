/*
 * The wake-up: a Redis list that wakes idle workers.
 *
 * Jobs are database rows; a wake-up only saves the wait for the next sweep. A process that
 * commits jobs sends a wake-up. An idle worker has a BLPOP pending and polls for its reply. A
 * worker that is woken empties the list, leases as many jobs as it can, and sends another
 * wake-up when jobs are left. So a long list costs nothing. Without Redis there are no
 * wake-ups, and the sweep finds the jobs.
 */
#ifndef SERVICE_REDIS_QUEUE_H
#define SERVICE_REDIS_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/context.h"
#include "service/redis/redis.h"

/*
 * Sends one wake-up for all new jobs of an order, after their commit. The id is only for
 * people who look at the list. No effect while Redis is unavailable.
 */
void queue_notify(struct redis *redis, const struct config *config, struct context *context,
                  int64_t order_id);

/* Number of wake-ups that no worker has read; -1 while Redis is unavailable. */
int64_t queue_length(struct redis *redis, const struct config *config, struct context *context);

/* One listener. It needs a connection for itself. */
struct queue {
    struct redis *redis; /* borrowed */
    char key[128];
    bool is_listening;
    int64_t sent_ms; /* monotonic; valid when is_listening */
};

void queue_init(struct queue *queue, struct redis *redis, const struct config *config);

/* Starts listening unless it listens already. No effect while Redis is unavailable. */
void queue_listen(struct queue *queue, struct context *context);

/* Descriptor to poll for reading; -1 when not listening. */
int queue_descriptor(const struct queue *queue);

/*
 * True when a wake-up has arrived since queue_listen; the list is empty then. Never blocks.
 * Closes a connection that was silent too long.
 */
bool queue_heard(struct queue *queue, struct context *context);

#endif
