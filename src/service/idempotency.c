#include "service/idempotency.h"

#include <inttypes.h>

#include "base/crypto.h"

static const char release_script[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end\n"
    "return 0\n";

struct ratelimit_lock idempotency_lock_make(struct arena *arena, int64_t account_id, const char *scope,
                                            const char *key, size_t key_length)
{
    uint8_t digest[sha256_bytes], token[12];
    crypto_sha256(key, key_length, digest);
    crypto_random(token, sizeof token);
    return (struct ratelimit_lock){
        .name = arena_printf(arena, "idempotency:%" PRId64 ":%s:%s", account_id, scope,
                             crypto_base64url(arena, digest, sizeof digest)),
        .token = crypto_base64url(arena, token, sizeof token),
        .life_ms = idempotency_lock_ms,
    };
}

bool idempotency_lock_is_held(struct redis *redis, struct context *context, const char *prefix,
                              const struct ratelimit_lock *lock)
{
    const char *command[] = {"EXISTS", arena_printf(context->arena, "%s%s", prefix, lock->name)};
    struct redis_reply reply = redis_call(redis, context, 2, command, NULL);
    return reply.kind == REDIS_INTEGER && reply.integer == 1;
}

void idempotency_lock_release(struct redis *redis, struct context *context, const char *prefix,
                              struct ratelimit_lock *lock)
{
    if (!lock->is_ours)
        return;
    const char *command[] = {"EVAL", release_script, "1",
                             arena_printf(context->arena, "%s%s", prefix, lock->name), lock->token};
    redis_call(redis, context, 5, command, NULL);
    lock->is_ours = false;
}
