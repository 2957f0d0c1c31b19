#include "service/ratelimit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

/*
 * KEYS: the window, and the lock if one is asked for.  ARGV: limit, length of a
 * window, token and life of the lock.  A refused request takes no lock.
 */
static const char script[] = "local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])\n"
                             "local used = tonumber(redis.call('GET', KEYS[1]) or '0')\n"
                             "local left = redis.call('PTTL', KEYS[1])\n"
                             "if left <= 0 then used, left = 0, window end\n"
                             "if used >= limit then return {1, used, left, -1} end\n"
                             "if used == 0 then redis.call('SET', KEYS[1], 1, 'PX', window)\n"
                             "else redis.call('INCR', KEYS[1]) end\n"
                             "local lock = -1\n"
                             "if KEYS[2] then\n"
                             "  lock = redis.call('SET', KEYS[2], ARGV[3], 'NX', 'PX', ARGV[4]) and 1 or 0\n"
                             "end\n"
                             "return {0, used + 1, left, lock}\n";

enum { reply_length = 4, arguments_max = 9 };

/* What SCRIPT LOAD answered; "" before.  Redis and we agree on it for as long as the text is the same. */
static char script_name[48];

struct question {
    const char *arguments[arguments_max];
    unsigned count;
};

/* EVALSHA name keys..., or EVAL text keys... when is_text. */
static struct question question_make(struct arena *arena, const char *prefix, int64_t account_id,
                                     unsigned limit, const struct ratelimit_lock *lock, bool is_text)
{
    struct question question = {{is_text ? "EVAL" : "EVALSHA", is_text ? script : script_name}, 2};
    const char **next = question.arguments + 2;
    *next++ = lock != NULL ? "2" : "1";
    *next++ = arena_printf(arena, "%slimit:%" PRId64, prefix, account_id);
    if (lock != NULL)
        *next++ = arena_printf(arena, "%s%s", prefix, lock->name);
    *next++ = arena_printf(arena, "%u", limit);
    *next++ = arena_printf(arena, "%d", ratelimit_window_ms);
    if (lock != NULL) {
        *next++ = lock->token;
        *next++ = arena_printf(arena, "%" PRId64, lock->life_ms);
    }
    question.count = (unsigned)(next - question.arguments);
    return question;
}

static bool script_load(struct redis *redis, struct context *context)
{
    static const char *const command[] = {"SCRIPT", "LOAD", script};
    if (script_name[0] != '\0')
        return true;
    struct redis_reply reply = redis_call(redis, context, 3, command, NULL);
    if (reply.kind == REDIS_TEXT)
        snprintf(script_name, sizeof script_name, "%s", reply.text);
    return reply.kind == REDIS_TEXT;
}

bool ratelimit_send(struct redis *redis, struct context *context, const char *prefix, int64_t account_id,
                    unsigned limit, const struct ratelimit_lock *lock)
{
    if (!script_load(redis, context))
        return false;
    struct question question = question_make(context->arena, prefix, account_id, limit, lock, false);
    return redis_send(redis, context, question.count, question.arguments, NULL);
}

static bool reply_is_whole(const struct redis_reply *reply)
{
    if (reply->kind != REDIS_LIST || reply->length != reply_length)
        return false;
    for (size_t i = 0; i < reply_length; i++)
        if (reply->items[i].kind != REDIS_INTEGER)
            return false;
    return true;
}

struct ratelimit_answer ratelimit_receive(struct redis *redis, struct context *context, const char *prefix,
                                          int64_t account_id, unsigned limit, struct ratelimit_lock *lock)
{
    struct ratelimit_answer answer = {.is_known = false};
    struct redis_reply reply = redis_receive(redis, context);
    if (reply.kind == REDIS_ERROR && strncmp(reply.text, "NOSCRIPT", 8) == 0) {
        /* Redis was restarted or its scripts flushed: EVAL loads the script anew. */
        struct question question = question_make(context->arena, prefix, account_id, limit, lock, true);
        reply = redis_call(redis, context, question.count, question.arguments, NULL);
    }
    if (!reply_is_whole(&reply)) {
        if (reply.kind == REDIS_ERROR)
            log_event(LOG_ERROR, context, "ratelimit_failed", LOG_TEXT("cause", reply.text));
        return answer;
    }
    int64_t used = reply.items[1].integer;
    answer.is_known = true;
    answer.is_refused = reply.items[0].integer == 1;
    answer.remaining = used < limit ? limit - (unsigned)used : 0;
    answer.reset_s = (unsigned)((reply.items[2].integer + 999) / 1000);
    if (lock != NULL) {
        lock->is_ours = reply.items[3].integer == 1;
        lock->is_held = reply.items[3].integer == 0;
    }
    return answer;
}
