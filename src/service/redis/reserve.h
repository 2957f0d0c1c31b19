/*
 * The reserve of an account: a part of its quotas in Redis.
 *
 * A creation of a busy account also claims in the database for the account's next creations, and keeps these
 * amounts as the reserve. The admission of a creation takes from the reserve (admission_lock). The row of
 * account_usage includes the reserve, so a limit holds even if Redis loses data. A lost reserve is unusable
 * until the row is reconciled.
 *
 * The alternative, a claim in each creation, was measured in pairs on two cores with 64 clients. One account
 * then creates a quarter fewer orders a second, and each order costs a quarter more CPU. With 64 accounts the
 * difference is an eighth.
 */
#ifndef SERVICE_REDIS_RESERVE_H
#define SERVICE_REDIS_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "model/quota.h"
#include "service/redis/redis.h"

/* Returns the key in Redis without the prefix, in the arena. */
const char *reserve_key(struct arena *arena, const char *prefix, int64_t account_id);

/* Adds to the reserve. If Redis is unavailable, the amounts are lost. */
void reserve_put(struct redis *redis, struct context *context, const char *prefix, int64_t account_id,
                 const struct quota_reserve *reserve);

/* Reads the reserve; zeros if there is none, or if Redis is unavailable or NULL. */
void reserve_read(struct redis *redis, struct context *context, const char *prefix, int64_t account_id,
                  struct quota_reserve *reserve);

/*
 * Removes a reserve of an earlier term. Returns false if there is none; otherwise the caller must deduct it.
 */
bool reserve_remove_old(struct redis *redis, struct context *context, const char *prefix, int64_t account_id,
                        int64_t term, struct quota_reserve *reserve);

/*
 * For scripts: the text in Redis has the numbers term, orders, files and uploads. A text is faster than a
 * hash. The lifetime exceeds the reconciliation interval, and the reconciliation releases the unused rest.
 */
enum { reserve_numbers = 4 };
#define RESERVE_PATTERN "'(%d+) (%d+) (%d+) (%d+)'"
#define RESERVE_FORMAT  "'%d %d %d %d'"
#define RESERVE_KEPT_MS "600000"

/* Converts these numbers, as integers of a script's reply. */
struct quota_reserve reserve_of(const struct redis_reply *items);

#endif
