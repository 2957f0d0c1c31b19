/*
 * The bell: a Redis list that says "look now".
 *
 * Jobs are rows of the database; the bell only spares the workers the wait
 * until their next sweep.  Whoever commits job rows rings; an idle worker
 * listens by a BLPOP that is sent ahead and polled for.  A worker that hears
 * the bell empties the list, leases what it has room for, and rings on when it
 * left something for others, so a long list costs nothing.  With Redis away
 * nothing rings and the sweep finds the jobs.
 */
#ifndef SERVICE_QUEUE_H
#define SERVICE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/context.h>

#include "base/config.h"
#include "service/redis.h"

/*
 * Rings once for all fresh jobs of an order, after their commit; the id is for
 * whoever looks at the list.  With Redis away it does nothing.
 */
void queue_ring(struct redis *redis, const struct config *config, struct context *context, int64_t order_id);

/* How many rings nobody has heard yet; -1 when Redis is away. */
int64_t queue_length(struct redis *redis, const struct config *config, struct context *context);

/* One listener.  Its connection is used for nothing else while it listens. */
struct queue {
    struct redis *redis; /* borrowed */
    char key[128];
    bool is_listening;
    int64_t sent_ms; /* monotonic; valid when is_listening */
};

void queue_init(struct queue *queue, struct redis *redis, const struct config *config);

/* Begins to listen unless it does already; nothing happens while Redis is away. */
void queue_listen(struct queue *queue, struct context *context);

/* What to poll for reading; -1 when not listening. */
int queue_descriptor(const struct queue *queue);

/*
 * True when the bell has rung since queue_listen; the list is empty then.  Never
 * waits for the bell.  Gives up a connection that is silent for too long.
 */
bool queue_heard(struct queue *queue, struct context *context);

#endif
