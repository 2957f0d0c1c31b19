#include "service/queue.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"

/* How long Redis holds a BLPOP, and after which silence the connection is taken for dead. */
enum { hold_s = 5, silence_ms = 8000 };

/* A list this long means that nobody listens; only its end is kept. */
enum { length_max = 1000, ids_per_command = 128, id_size = 24 };

static void key_write(const struct config *config, char key[128])
{
    snprintf(key, 128, "%sbell", config->redis_prefix);
}

/* Keeps a list that nobody hears from growing for ever. */
static void list_cut(struct redis *redis, struct context *context, const char *key)
{
    char from[id_size];
    snprintf(from, sizeof from, "-%d", length_max / 10);
    redis_call(redis, context, 4, (const char *const[]){"LTRIM", key, from, "-1"}, NULL);
}

static void ids_push(struct redis *redis, struct context *context, const char *key, const int64_t *ids,
                     unsigned count)
{
    char texts[ids_per_command][id_size];
    const char *arguments[ids_per_command + 2] = {"RPUSH", key};
    for (unsigned i = 0; i < count; i++) {
        snprintf(texts[i], id_size, "%" PRId64, ids[i]);
        arguments[i + 2] = texts[i];
    }
    struct redis_reply reply = redis_call(redis, context, count + 2, arguments, NULL);
    if (reply.kind == REDIS_INTEGER && reply.integer > length_max)
        list_cut(redis, context, key);
}

void queue_ring(struct redis *redis, const struct config *config, struct context *context, const int64_t *ids,
                unsigned count)
{
    char key[128];
    key_write(config, key);
    for (unsigned at = 0; at < count; at += ids_per_command)
        ids_push(redis, context, key, ids + at, count - at < ids_per_command ? count - at : ids_per_command);
}

int64_t queue_length(struct redis *redis, const struct config *config, struct context *context)
{
    char key[128];
    key_write(config, key);
    struct redis_reply reply =
        redis_call(redis, context, 2, (const char *const[]){"LLEN", key}, NULL);
    return reply.kind == REDIS_INTEGER ? reply.integer : -1;
}

void queue_init(struct queue *queue, struct redis *redis, const struct config *config)
{
    *queue = (struct queue){.redis = redis};
    key_write(config, queue->key);
}

void queue_listen(struct queue *queue, struct context *context)
{
    char hold[id_size];
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
