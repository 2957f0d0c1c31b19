/*
 * Admission of a request: the rate limit of its account and, for a creation, the
 * lock of its idempotency key and its claim on the account's reserve (reserve.h).
 * All are one script in Redis and one round trip.
 *
 * The limit's window opens with the first request and lasts a minute.  A refused
 * request is not counted, does not extend the window and takes no lock.  When
 * Redis is away, every request is admitted, with the numbers of a fresh window,
 * and no lock is taken.
 *
 * The lock only saves work: it makes the second of two concurrent creations with
 * one key wait.  The unique key in the database decides.  A successful creation
 * keeps its lock until it expires, because later requests find the order first.
 * A failed one releases its lock, so that a refused request burns no key.
 */
#ifndef SERVICE_REDIS_ADMISSION_H
#define SERVICE_REDIS_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "model/quota.h"
#include "service/redis/redis.h"

enum {
    admission_window_ms = 60000,
    admission_lock_ms = 5000 /* lifetime of a lock, and the longest that a concurrent creation waits */
};

enum admission_state {
    ADMISSION_NONE,    /* no account: an open route, or authentication failed */
    ADMISSION_NEW,     /* not sent yet */
    ADMISSION_SENT,    /* a reply is pending */
    ADMISSION_DECIDED, /* the numbers below are valid */
};

/* The admission of one request.  Zero-initialized it is ADMISSION_NONE, and every call does nothing. */
struct admission {
    struct redis *redis;     /* borrowed */
    struct context *context; /* borrowed; its arena holds the texts */
    const char *prefix;      /* of every key in Redis */
    int64_t account_id;
    unsigned limit_per_minute;

    enum admission_state state;
    bool is_redis_away;
    unsigned remaining; /* requests in this window */
    unsigned used;      /* in this window, this one included; 0: unknown */
    unsigned reset_s;   /* until the window ends; at least 1 */

    const char *lock_name;       /* Redis key without the prefix; NULL: no lock requested */
    const char *lock_token;      /* random; only its owner can release the lock */
    bool is_lock_ours;           /* valid when ADMISSION_DECIDED, as the next */
    bool is_lock_held_elsewhere; /* by a concurrent creation */

    struct quota_amounts amounts; /* of the creation */
    bool is_covered;              /* they are taken from the reserve */
    struct quota_reserve reserve; /* not covered: all of the reserve, taken from it */
};

/* A creation that asks for its lock. */
struct admission_creation {
    const char *scope; /* of the key: the order type */
    const char *key;   /* idempotency key */
    size_t key_length;
    struct quota_amounts amounts;
    int64_t now_ms;
};

/* Prepares the admission of a request of an account (ADMISSION_NEW). */
void admission_init(struct admission *admission, struct redis *redis, struct context *context,
                    const char *prefix, int64_t account_id, unsigned limit_per_minute);

/* Sends the script without a lock and does not wait.  No effect after the first time. */
void admission_send(struct admission *admission);

/*
 * Waits for the reply to admission_send.  RATE_LIMIT_EXCEEDED, with retry_after_s in the
 * context, replaces any earlier error of the context.  IW_OK when no reply is pending.
 */
enum iw_error admission_receive(struct admission *admission) IW_MUST_USE;

/*
 * Admits a creation: the rate limit, the lock of its idempotency key and, with the lock, the account's
 * reserve.  A request that was admitted before only takes the lock.  Waits for the reply.  Errors as
 * admission_receive; a lock that is held elsewhere is not an error.
 */
enum iw_error admission_lock(struct admission *admission,
                             const struct admission_creation *creation) IW_MUST_USE;

/* One round trip: true while any process holds the lock; false when Redis is away. */
bool admission_lock_is_held(const struct admission *admission);

/* Releases the lock if it is ours; no round trip otherwise. */
void admission_lock_release(struct admission *admission);

#endif
