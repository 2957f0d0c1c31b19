/*
 * Admission of a request: the rate limit of the account and, for a creation, the lock of the idempotency key
 * and the claim on the account's reserve (reserve.h). One script in Redis does all of this in one round trip.
 *
 * The limit's window opens with the first request and lasts a minute. A refused request is not counted, does
 * not extend the window and takes no lock. If Redis is unavailable, every request is admitted with the
 * numbers of a fresh window, and no lock is taken.
 *
 * The lock only saves work: of two concurrent creations with the same key, it makes the second wait. The
 * unique key in the database decides. After a successful creation the lock stays until it expires, because
 * later requests find the order first. A failed creation releases its lock, so that the client can use the
 * key again.
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
    admission_lock_ms =
        5000 /* lifetime of a lock, and the longest time for which a concurrent creation waits */
};

enum admission_state {
    ADMISSION_NONE,    /* no account, because the route is open or authentication failed */
    ADMISSION_NEW,     /* not sent yet */
    ADMISSION_SENT,    /* a reply is pending */
    ADMISSION_DECIDED, /* the numbers below are valid */
};

/*
 * The admission of one request. If it is zero-initialized, it is ADMISSION_NONE, and all functions do
 * nothing.
 */
struct admission {
    struct redis *redis;     /* borrowed */
    struct context *context; /* borrowed; its arena holds the texts */
    const char *prefix;      /* of every key in Redis */
    int64_t account_id;
    unsigned limit_per_minute;

    enum admission_state state;
    bool is_redis_away;
    unsigned remaining; /* requests in this window */
    unsigned used;      /* in this window, this request included; 0 if unknown */
    unsigned reset_s;   /* until the window ends; at least 1 */

    const char *lock_name;       /* Redis key without the prefix; NULL if no lock was requested */
    const char *lock_token;      /* random; only its owner can release the lock */
    bool is_lock_ours;           /* this and the next are valid if ADMISSION_DECIDED */
    bool is_lock_held_elsewhere; /* by a concurrent creation */

    struct quota_amounts amounts; /* of the creation */
    bool is_covered;              /* the amounts were taken from the reserve */
    struct quota_reserve reserve; /* if not covered, the whole reserve, which was taken */
};

/* A creation that asks for its lock. */
struct admission_creation {
    const char *scope; /* scope of the key, the order type */
    const char *key;   /* idempotency key */
    size_t key_length;
    struct quota_amounts amounts;
    int64_t now_ms;
};

/* Prepares the admission of a request of an account (ADMISSION_NEW). */
void admission_init(struct admission *admission, struct redis *redis, struct context *context,
                    const char *prefix, int64_t account_id, unsigned limit_per_minute);

/* Sends the script without a lock and does not wait. Has no effect after the first call. */
void admission_send(struct admission *admission);

/*
 * Waits for the reply to admission_send.  RATE_LIMIT_EXCEEDED, with retry_after_s in the
 * context, replaces any earlier error of the context.  IW_OK if no reply is pending.
 */
enum iw_error admission_receive(struct admission *admission) IW_MUST_USE;

/*
 * Admits a creation: checks the rate limit, takes the lock of the idempotency key and, with the lock, the
 * account's reserve. A request that was admitted before only takes the lock. Waits for the reply. Fails as
 * admission_receive does; a lock that is held elsewhere is not an error.
 */
enum iw_error admission_lock(struct admission *admission,
                             const struct admission_creation *creation) IW_MUST_USE;

/* Returns true while any process holds the lock, false if Redis is unavailable. Takes one round trip. */
bool admission_lock_is_held(const struct admission *admission);

/* Releases the lock if it is ours; otherwise there is no round trip. */
void admission_lock_release(struct admission *admission);

#endif
