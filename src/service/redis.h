/*
 * Redis, the bell and the limiter: never the truth.  The only file pair that
 * includes hiredis.
 *
 * Redis may vanish at any line.  A connection is made when first needed; after
 * a failure it is closed and Redis is left alone for redis.retry_ms, during
 * which every call answers "away" at once.  A command can be sent before other
 * work and its reply read after it.  One command at a time is under way.
 */
#ifndef SERVICE_REDIS_H
#define SERVICE_REDIS_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/context.h>

#include "base/config.h"

struct redis;

enum redis_kind { REDIS_AWAY, REDIS_NULL, REDIS_INTEGER, REDIS_TEXT, REDIS_LIST, REDIS_ERROR };

/* A reply, copied into the arena of the context. */
struct redis_reply {
    enum redis_kind kind;
    int64_t integer;
    const char *text; /* REDIS_TEXT and REDIS_ERROR; closed by a zero */
    size_t length;    /* bytes of the text, or the count of items */
    const struct redis_reply *items;
};

/* Does not connect yet.  Borrows config.  password may be "" and is copied. */
struct redis *redis_new(const struct config *config, const char *password);
void redis_free(struct redis *redis);

/*
 * Sends a command of count arguments (lengths may be NULL for texts).  False
 * when Redis is away; then no reply is owed.  A failure is logged once each
 * back-off, as event redis_away.
 */
bool redis_send(struct redis *redis, struct context *context, unsigned count, const char *const *arguments,
                const size_t *lengths);

/* Waits (redis.timeout_ms at most) for the reply of what was sent; REDIS_AWAY when it failed. */
struct redis_reply redis_receive(struct redis *redis, struct context *context);

/* Both in one. */
struct redis_reply redis_call(struct redis *redis, struct context *context, unsigned count,
                              const char *const *arguments, const size_t *lengths);

/*
 * For an event loop: the descriptor to poll for reading while a reply is owed, -1
 * when there is none.  redis_receive_ready answers false while the reply is not
 * whole yet, and never waits.
 */
int redis_descriptor(const struct redis *redis);
bool redis_receive_ready(struct redis *redis, struct context *context, struct redis_reply *reply);

/* Closes the connection; the next call opens a new one (after a fork, and to give up an owed reply). */
void redis_close(struct redis *redis);

#endif
