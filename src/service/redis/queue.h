/*
 * The wake-up: a Redis list that wakes idle workers.
 *
 * Jobs are database rows; a wake-up only saves the wait for the next sweep. A process that commits jobs sends
 * a wake-up. An idle worker has a BLPOP pending and polls for its reply. A worker that is woken empties the
 * list, leases as many jobs as it can, and sends another wake-up if jobs are left, so a long list costs
 * nothing. Without Redis there are no wake-ups, and the sweep finds the jobs.
 */
#ifndef SERVICE_REDIS_QUEUE_H
#define SERVICE_REDIS_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/context.h"
#include "service/redis/redis.h"

/*
 * Sends one wake-up for all new jobs of an order; call it after the commit. The id only helps people who read
 * the list. Has no effect while Redis is unavailable.
 */
void queue_notify(struct redis *redis, const struct config *config, struct context *context,
                  int64_t order_id);

/* Returns the number of wake-ups that no worker has read; -1 while Redis is unavailable. */
int64_t queue_length(struct redis *redis, const struct config *config, struct context *context);

/* One listener, which needs a separate connection. */
struct queue {
    struct redis *redis; /* borrowed */
    char key[128];
    bool is_listening;
    int64_t sent_ms; /* monotonic; valid if is_listening */
};

void queue_init(struct queue *queue, struct redis *redis, const struct config *config);

/* Starts listening unless it already listens. Has no effect while Redis is unavailable. */
void queue_listen(struct queue *queue, struct context *context);

/* Returns the descriptor to poll for reading; -1 if not listening. */
int queue_descriptor(const struct queue *queue);

/*
 * Returns true if a wake-up has arrived since queue_listen; then the list is empty. Never blocks. Closes a
 * connection that was silent for too long.
 */
bool queue_heard(struct queue *queue, struct context *context);

#endif
