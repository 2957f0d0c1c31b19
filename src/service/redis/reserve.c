#include "service/redis/reserve.h"

#include <inttypes.h>

#include "base/log.h"

/* KEYS: the reserve.  ARGV: term, orders, files, uploads. */
static const char put_script[] =
    "local term, orders, files, uploads = string.match(redis.call('GET', KEYS[1]) or ARGV[1] .. ' 0 0 0',\n"
    "  " RESERVE_PATTERN ")\n"
    "redis.call('SET', KEYS[1], string.format(" RESERVE_FORMAT ", term, orders + ARGV[2],\n"
    "  files + ARGV[3], uploads + ARGV[4]), 'PX', " RESERVE_KEPT_MS ")\n"
    "return 1\n";

/*
 * KEYS: the reserve. ARGV: optionally a term; then only a reserve of an earlier term is read, and removed.
 * Reply: the four numbers, or nothing.
 */
static const char read_script[] = "local kept = redis.call('GET', KEYS[1])\n"
                                  "if not kept then return {} end\n"
                                  "local numbers = {string.match(kept, " RESERVE_PATTERN ")}\n"
                                  "for i = 1, 4 do numbers[i] = tonumber(numbers[i]) end\n"
                                  "if ARGV[1] and numbers[1] >= tonumber(ARGV[1]) then return {} end\n"
                                  "if ARGV[1] then redis.call('DEL', KEYS[1]) end\n"
                                  "return numbers\n";

const char *reserve_key(struct arena *arena, const char *prefix, int64_t account_id)
{
    return arena_printf(arena, "%sreserve:%" PRId64, prefix, account_id);
}

void reserve_put(struct redis *redis, struct context *context, const char *prefix, int64_t account_id,
                 const struct quota_reserve *reserve)
{
    struct arena *arena = context->arena;
    const char *command[] = {"EVAL",
                             put_script,
                             "1",
                             reserve_key(arena, prefix, account_id),
                             arena_printf(arena, "%" PRId64, reserve->term),
                             arena_printf(arena, "%" PRId64, reserve->amounts.orders),
                             arena_printf(arena, "%" PRId64, reserve->amounts.files),
                             arena_printf(arena, "%" PRId64, reserve->amounts.uploads)};
    struct redis_reply reply = redis_call(redis, context, 8, command, NULL);
    if (reply.kind == REDIS_ERROR)
        log_event(LOG_ERROR, context, "reserve_failed", LOG_TEXT("cause", reply.text));
}

struct quota_reserve reserve_of(const struct redis_reply *items)
{
    return (struct quota_reserve){{items[1].integer, items[2].integer, items[3].integer}, items[0].integer};
}

static bool read_run(struct redis *redis, struct context *context, const char *key, const char *term,
                     struct quota_reserve *reserve)
{
    *reserve = (struct quota_reserve){{0}, 0};
    const char *command[] = {"EVAL", read_script, "1", key, term};
    if (redis == NULL)
        return false;
    struct redis_reply reply = redis_call(redis, context, term != NULL ? 5 : 4, command, NULL);
    if (reply.kind != REDIS_LIST || reply.length != reserve_numbers)
        return false;
    *reserve = reserve_of(reply.items);
    return true;
}

void reserve_read(struct redis *redis, struct context *context, const char *prefix, int64_t account_id,
                  struct quota_reserve *reserve)
{
    read_run(redis, context, reserve_key(context->arena, prefix, account_id), NULL, reserve);
}

bool reserve_remove_old(struct redis *redis, struct context *context, const char *prefix, int64_t account_id,
                        int64_t term, struct quota_reserve *reserve)
{
    return read_run(redis, context, reserve_key(context->arena, prefix, account_id),
                    arena_printf(context->arena, "%" PRId64, term), reserve);
}
