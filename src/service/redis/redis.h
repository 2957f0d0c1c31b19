/*
 * The Redis connection, for wake-ups, rate limits and locks. Redis never has the only copy of anything. This
 * is the only module that includes hiredis.
 *
 * Redis may fail at any time. The connection is opened on first use. After a failure, or an error that every
 * command would get (READONLY, NOREPLICAS), the connection is closed, and for redis.retry_ms every call
 * returns REDIS_AWAY immediately. A command can be sent early and its reply read after other work. Only one
 * command may be pending.
 *
 * With redis.sentinels each new connection asks the Sentinels for the address of redis.master, and ROLE must
 * confirm it. After a failover the clients' connections to the old master are closed, or the old master
 * answers READONLY.
 */
#ifndef SERVICE_REDIS_REDIS_H
#define SERVICE_REDIS_REDIS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/context.h"

struct redis;

enum redis_kind { REDIS_AWAY, REDIS_NULL, REDIS_INTEGER, REDIS_TEXT, REDIS_LIST, REDIS_ERROR };

/* A reply, copied into the context's arena. */
struct redis_reply {
    enum redis_kind kind;
    int64_t integer;
    const char *text; /* of REDIS_TEXT and REDIS_ERROR; zero-terminated */
    size_t length;    /* bytes of the text, or number of items */
    const struct redis_reply *items;
};

/* Creates the state without connecting. Borrows config; copies password, which may be "". */
struct redis *redis_new(const struct config *config, const char *password);

/* Returns why Redis was last unavailable; "" if it never was. Valid until the next call. */
const char *redis_cause(const struct redis *redis);

/*
 * Returns the master's address according to one of the Sentinels, counted from 0; NULL if the Sentinel does
 * not answer.
 */
unsigned redis_sentinel_count(const struct redis *redis);
const char *redis_sentinel_master(struct redis *redis, struct context *context, unsigned number);
void redis_free(struct redis *redis);

/*
 * Sends a command of count arguments (lengths may be NULL for zero-terminated texts). Returns false, without
 * a pending reply, if Redis is unavailable. Failures are logged once per back-off, as event redis_away.
 */
bool redis_send(struct redis *redis, struct context *context, unsigned count, const char *const *arguments,
                const size_t *lengths);

/* Waits up to redis.timeout_ms for the reply to the last command; REDIS_AWAY on failure. */
struct redis_reply redis_receive(struct redis *redis, struct context *context);

/* Sends a command and waits for its reply. */
struct redis_reply redis_call(struct redis *redis, struct context *context, unsigned count,
                              const char *const *arguments, const size_t *lengths);

/*
 * For an event loop: returns the descriptor to poll for reading while a reply is pending, otherwise -1.
 * redis_receive_ready never blocks; it returns false while the reply is incomplete.
 */
int redis_descriptor(const struct redis *redis);
bool redis_receive_ready(struct redis *redis, struct context *context, struct redis_reply *reply);

/* Closes the connection, after a fork or to discard a pending reply. The next call reconnects. */
void redis_close(struct redis *redis);

#endif
