/*
 * The limiter: requests a minute of an account, counted in Redis, and with it
 * the lock of an idempotency key, in one script and one round trip.
 *
 * A window opens with the first request and lasts a minute; a refused request
 * neither counts nor moves it.  With Redis away nobody is refused and no lock is
 * taken (the database still knows the truth).
 */
#ifndef SERVICE_RATELIMIT_H
#define SERVICE_RATELIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/context.h>

#include "service/redis.h"

enum { ratelimit_window_ms = 60000 };

/* A lock that is asked for along with the limit (idempotency.h makes it). */
struct ratelimit_lock {
    const char *name;  /* Redis key without the prefix */
    const char *token; /* ours, random: only its owner opens the lock */
    int64_t life_ms;
    bool is_ours; /* after the answer: taken by us */
    bool is_held; /* after the answer: somebody else has it */
};

struct ratelimit_answer {
    bool is_known; /* false: Redis is away, everybody may pass */
    bool is_refused;
    unsigned remaining;
    unsigned reset_s; /* at least 1 */
};

/* Asks.  False when Redis is away: no answer is owed.  lock may be NULL. */
bool ratelimit_send(struct redis *redis, struct context *context, const char *prefix, int64_t account_id,
                    unsigned limit, const struct ratelimit_lock *lock);

/* Reads the answer to the last ratelimit_send; the same arguments. */
struct ratelimit_answer ratelimit_receive(struct redis *redis, struct context *context, const char *prefix,
                                          int64_t account_id, unsigned limit, struct ratelimit_lock *lock);

#endif
