#include "service/redis/admission.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/crypto.h"
#include "base/log.h"
#include "service/redis/reserve.h"

/*
 * KEYS: the window and, optionally, the lock and the reserve. ARGV: limit, window in ms, token and lifetime
 * of the lock in ms, term, files and uploads. Reply: whether the request is refused, requests used, ms left
 * of the window, lock (1 ours, 0 held elsewhere, -1 none). Then 1 if the reserve covers the creation,
 * otherwise the whole reserve.
 */
static const char admit_script[] =
    "local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])\n"
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
    "if lock ~= 1 then return {0, used + 1, left, lock} end\n"
    "local kept = redis.call('GET', KEYS[3])\n"
    "if not kept then return {0, used + 1, left, lock} end\n"
    "local term, orders, files, uploads = string.match(kept, " RESERVE_PATTERN ")\n"
    "local new = {orders - 1, files - ARGV[6], uploads - ARGV[7]}\n"
    "if term == ARGV[5] and new[1] >= 0 and new[2] >= 0 and new[3] >= 0 then\n"
    "  redis.call('SET', KEYS[3], string.format(" RESERVE_FORMAT ", term, new[1], new[2], new[3]),\n"
    "    'PX', " RESERVE_KEPT_MS ")\n"
    "  return {0, used + 1, left, lock, 1}\n"
    "end\n"
    "redis.call('DEL', KEYS[3])\n"
    "return {0, used + 1, left, lock, tonumber(term), tonumber(orders), tonumber(files),\n"
    "  tonumber(uploads)}\n";

static const char release_script[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end\n"
    "return 0\n";

enum {
    reply_length = 4,
    reply_length_covered = reply_length + 1,
    reply_length_taken = reply_length + reserve_numbers,
    arguments_max = 13,
    token_bytes = 12
};

/*
 * The digest that SCRIPT LOAD returned, or "" before. It is valid for the whole process, because it depends
 * only on the text.
 */
static char script_digest[48];

struct admission_command {
    const char *arguments[arguments_max];
    unsigned count;
};

/* The command after its name and script: key count, keys, arguments. */
static struct admission_command command_make(const struct admission *admission, const char *name,
                                             const char *script)
{
    struct admission_command command = {{name, script}, 2};
    struct arena *arena = admission->context->arena;
    bool has_lock = admission->lock_name != NULL;
    const char **next = command.arguments + 2;
    *next++ = has_lock ? "3" : "1";
    *next++ = arena_printf(arena, "%slimit:%" PRId64, admission->prefix, admission->account_id);
    if (has_lock) {
        *next++ = arena_printf(arena, "%s%s", admission->prefix, admission->lock_name);
        *next++ = reserve_key(arena, admission->prefix, admission->account_id);
    }
    *next++ = arena_printf(arena, "%u", admission->limit_per_minute);
    *next++ = arena_printf(arena, "%d", admission_window_ms);
    if (has_lock) {
        *next++ = admission->lock_token;
        *next++ = arena_printf(arena, "%d", admission_lock_ms);
        *next++ = arena_printf(arena, "%" PRId64, admission->reserve.term);
        *next++ = arena_printf(arena, "%" PRId64, admission->amounts.files);
        *next++ = arena_printf(arena, "%" PRId64, admission->amounts.uploads);
    }
    command.count = (unsigned)(next - command.arguments);
    return command;
}

static bool script_load(struct redis *redis, struct context *context)
{
    static const char *const command[] = {"SCRIPT", "LOAD", admit_script};
    if (script_digest[0] != '\0')
        return true;
    struct redis_reply reply = redis_call(redis, context, 3, command, NULL);
    if (reply.kind == REDIS_TEXT)
        snprintf(script_digest, sizeof script_digest, "%s", reply.text);
    return reply.kind == REDIS_TEXT;
}

void admission_init(struct admission *admission, struct redis *redis, struct context *context,
                    const char *prefix, int64_t account_id, unsigned limit_per_minute)
{
    *admission = (struct admission){.redis = redis,
                                    .context = context,
                                    .prefix = prefix,
                                    .account_id = account_id,
                                    .limit_per_minute = limit_per_minute,
                                    .state = ADMISSION_NEW};
}

void admission_send(struct admission *admission)
{
    bool is_sent = false;
    if (admission->state != ADMISSION_NEW)
        return;
    /* Sets the numbers of a fresh window, because Redis is unavailable. */
    admission->remaining = admission->limit_per_minute;
    admission->reset_s = admission_window_ms / 1000;
    if (script_load(admission->redis, admission->context)) {
        struct admission_command command = command_make(admission, "EVALSHA", script_digest);
        is_sent = redis_send(admission->redis, admission->context, command.count, command.arguments, NULL);
    }
    admission->state = is_sent ? ADMISSION_SENT : ADMISSION_DECIDED;
    admission->is_redis_away = !is_sent;
}

static bool reply_is_complete(const struct redis_reply *reply)
{
    bool is_complete = reply->kind == REDIS_LIST &&
                       (reply->length == reply_length || reply->length == reply_length_covered ||
                        reply->length == reply_length_taken);
    for (size_t i = 0; is_complete && i < reply->length; i++)
        is_complete = reply->items[i].kind == REDIS_INTEGER;
    return is_complete;
}

enum iw_error admission_receive(struct admission *admission)
{
    struct context *context = admission->context;
    if (admission->state != ADMISSION_SENT)
        return IW_OK;
    struct redis_reply reply = redis_receive(admission->redis, context);
    if (reply.kind == REDIS_ERROR && strncmp(reply.text, "NOSCRIPT", 8) == 0) {
        /* Redis was restarted or its scripts were flushed, so EVAL loads the script again. */
        struct admission_command command = command_make(admission, "EVAL", admit_script);
        reply = redis_call(admission->redis, context, command.count, command.arguments, NULL);
    }
    admission->state = ADMISSION_DECIDED;
    if (!reply_is_complete(&reply)) {
        if (reply.kind == REDIS_ERROR)
            log_event(LOG_ERROR, context, "ratelimit_failed", LOG_TEXT("cause", reply.text));
        admission->is_redis_away = true;
        return IW_OK;
    }
    int64_t used = reply.items[1].integer, limit = admission->limit_per_minute;
    admission->remaining = used < limit ? (unsigned)(limit - used) : 0;
    admission->reset_s = (unsigned)((reply.items[2].integer + 999) / 1000);
    admission->is_lock_ours = reply.items[3].integer == 1;
    admission->is_lock_held_elsewhere = reply.items[3].integer == 0;
    admission->used = (unsigned)used;
    admission->is_covered = reply.length == reply_length_covered;
    if (reply.length == reply_length_taken)
        admission->reserve = reserve_of(&reply.items[reply_length]);
    if (reply.items[0].integer != 1)
        return IW_OK;
    context_clear(context);
    context->retry_after_s = admission->reset_s;
    return context_fail(context, IW_RATE_LIMIT_EXCEEDED,
                        "Your plan allows %u requests a minute; try again in %u s.",
                        admission->limit_per_minute, admission->reset_s);
}

/* Takes the lock of a request that is already counted. */
static void lock_take(struct admission *admission)
{
    struct arena *arena = admission->context->arena;
    const char *command[] = {"SET",
                             arena_printf(arena, "%s%s", admission->prefix, admission->lock_name),
                             admission->lock_token,
                             "NX",
                             "PX",
                             arena_printf(arena, "%d", admission_lock_ms)};
    if (admission->is_redis_away)
        return;
    struct redis_reply reply = redis_call(admission->redis, admission->context, 6, command, NULL);
    admission->is_lock_ours = reply.kind == REDIS_TEXT;
    admission->is_lock_held_elsewhere = reply.kind == REDIS_NULL;
    admission->is_redis_away = reply.kind == REDIS_AWAY;
}

enum iw_error admission_lock(struct admission *admission, const struct admission_creation *creation)
{
    struct arena *arena = admission->context->arena;
    uint8_t digest[sha256_bytes], token[token_bytes];
    crypto_sha256(creation->key, creation->key_length, digest);
    crypto_random(token, sizeof token);
    admission->lock_name = arena_printf(arena, "idempotency:%" PRId64 ":%s:%s", admission->account_id,
                                        creation->scope, crypto_base64url(arena, digest, sizeof digest));
    admission->lock_token = crypto_base64url(arena, token, sizeof token);
    admission->amounts = creation->amounts;
    admission->reserve = (struct quota_reserve){.term = quota_term(creation->now_ms)};
    if (admission->state == ADMISSION_DECIDED) {
        lock_take(admission);
        return IW_OK;
    }
    admission_send(admission);
    return admission_receive(admission);
}

bool admission_lock_is_held(const struct admission *admission)
{
    const char *command[] = {
        "EXISTS", arena_printf(admission->context->arena, "%s%s", admission->prefix, admission->lock_name)};
    struct redis_reply reply = redis_call(admission->redis, admission->context, 2, command, NULL);
    return reply.kind == REDIS_INTEGER && reply.integer == 1;
}

void admission_lock_release(struct admission *admission)
{
    if (!admission->is_lock_ours)
        return;
    const char *command[] = {
        "EVAL", release_script, "1",
        arena_printf(admission->context->arena, "%s%s", admission->prefix, admission->lock_name),
        admission->lock_token};
    redis_call(admission->redis, admission->context, 5, command, NULL);
    admission->is_lock_ours = false;
}
