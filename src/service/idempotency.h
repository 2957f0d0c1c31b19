/*
 * The lock that keeps two creations with one idempotency key from racing.
 *
 * It only saves work: the unique key in the database decides.  A creation that
 * succeeds leaves the lock to end by itself (who comes later finds the order
 * first); one that fails opens it at once, so that a refused request burns no key.
 */
#ifndef SERVICE_IDEMPOTENCY_H
#define SERVICE_IDEMPOTENCY_H

#include "service/ratelimit.h"

/* How long a lock lives, and with it the longest that a loser waits. */
enum { idempotency_lock_ms = 5000 };

/* The lock for a key within its scope (account and order type); in the arena. */
struct ratelimit_lock idempotency_lock_make(struct arena *arena, int64_t account_id, const char *scope,
                                            const char *key, size_t key_length);

/* True while somebody holds the lock; false as well when Redis is away. */
bool idempotency_lock_is_held(struct redis *redis, struct context *context, const char *prefix,
                              const struct ratelimit_lock *lock);

/* Opens the lock if it is ours. */
void idempotency_lock_release(struct redis *redis, struct context *context, const char *prefix,
                              struct ratelimit_lock *lock);

#endif
