#include "service/redis/queue.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"

/* Timeout of the BLPOP in Redis, and the silence after which the connection is considered dead. */
enum { hold_s = 5, silence_ms = 8000 };

/* A longer list has no reader; only its newest entries are kept. */
enum { length_max = 1000, key_size = 128, number_size = 24 };

static void key_write(const struct config *config, char key[key_size])
{
    snprintf(key, key_size, "%sbell", config->redis_prefix);
}

void queue_notify(struct redis *redis, const struct config *config, struct context *context, int64_t order_id)
{
    char key[key_size], id[number_size];
    key_write(config, key);
    snprintf(id, sizeof id, "%" PRId64, order_id);
    struct redis_reply reply = redis_call(redis, context, 3, (const char *const[]){"RPUSH", key, id}, NULL);
    if (reply.kind != REDIS_INTEGER || reply.integer <= length_max)
        return;
    char from[number_size];
    snprintf(from, sizeof from, "-%d", length_max / 10);
    redis_call(redis, context, 4, (const char *const[]){"LTRIM", key, from, "-1"}, NULL);
}

int64_t queue_length(struct redis *redis, const struct config *config, struct context *context)
{
    char key[key_size];
    key_write(config, key);
    struct redis_reply reply = redis_call(redis, context, 2, (const char *const[]){"LLEN", key}, NULL);
    return reply.kind == REDIS_INTEGER ? reply.integer : -1;
}

void queue_init(struct queue *queue, struct redis *redis, const struct config *config)
{
    *queue = (struct queue){.redis = redis};
    key_write(config, queue->key);
}

void queue_listen(struct queue *queue, struct context *context)
{
    char hold[number_size];
    if (queue->is_listening)
        return;
    snprintf(hold, sizeof hold, "%d", hold_s);
    queue->is_listening =
        redis_send(queue->redis, context, 3, (const char *const[]){"BLPOP", queue->key, hold}, NULL);
    queue->sent_ms = clock_monotonic_ms();
}

int queue_descriptor(const struct queue *queue)
{
    return queue->is_listening ? redis_descriptor(queue->redis) : -1;
}

bool queue_heard(struct queue *queue, struct context *context)
{
    struct redis_reply reply;
    if (!queue->is_listening)
        return false;
    if (!redis_receive_ready(queue->redis, context, &reply)) {
        if (clock_monotonic_ms() - queue->sent_ms > silence_ms) {
            redis_close(queue->redis);
            queue->is_listening = false;
        }
        return false;
    }
    queue->is_listening = false;
    if (reply.kind != REDIS_LIST)
        return false;
    redis_call(queue->redis, context, 2, (const char *const[]){"DEL", queue->key}, NULL);
    return true;
}
