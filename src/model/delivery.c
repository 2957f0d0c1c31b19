#include "model/delivery.h"

#include <stddef.h>

#include "model/peer.h"
#include "model/word.h"

static const char *const names[DELIVERY_STATE_COUNT] = {
    [DELIVERY_PENDING] = "PENDING",
    [DELIVERY_SENDING] = "SENDING",
    [DELIVERY_DELIVERED] = "DELIVERED",
    [DELIVERY_FAILED] = "FAILED",
};

/* An event without an entry is illegal. */
static const enum delivery_state transitions[DELIVERY_STATE_COUNT][DELIVERY_EVENT_COUNT] = {
    [DELIVERY_PENDING] =
        {
            [DELIVERY_EVENT_LEASE] = DELIVERY_SENDING,
            [DELIVERY_EVENT_CANCEL] = DELIVERY_FAILED,
            [DELIVERY_EVENT_REPEAT] = DELIVERY_PENDING,
        },
    [DELIVERY_SENDING] =
        {
            [DELIVERY_EVENT_SUCCEED] = DELIVERY_DELIVERED,
            [DELIVERY_EVENT_RETRY] = DELIVERY_PENDING,
            [DELIVERY_EVENT_FAIL] = DELIVERY_FAILED,
            [DELIVERY_EVENT_LOSE] = DELIVERY_PENDING,
            [DELIVERY_EVENT_POSTPONE] = DELIVERY_PENDING,
            [DELIVERY_EVENT_CANCEL] = DELIVERY_FAILED,
        },
    [DELIVERY_DELIVERED] = {[DELIVERY_EVENT_REPEAT] = DELIVERY_PENDING},
    [DELIVERY_FAILED] = {[DELIVERY_EVENT_REPEAT] = DELIVERY_PENDING},
};

/* Seconds before each retry; doc/webhooks.md documents them. */
static const int64_t schedule_s[delivery_retries] = {5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400};

enum { jitter_part = 5 };

enum delivery_state delivery_next(enum delivery_state state, enum delivery_event event)
{
    if ((unsigned)state >= DELIVERY_STATE_COUNT || (unsigned)event >= DELIVERY_EVENT_COUNT)
        return DELIVERY_NONE;
    return transitions[state][event];
}

/* Jitter is only added: deliveries that failed together are not retried together. */
static int64_t wait_ms(int64_t failures, int64_t retry_after_s, uint64_t random)
{
    int64_t scheduled_ms = schedule_s[failures - 1] * 1000;
    int64_t jittered_ms = scheduled_ms + (int64_t)(random % (uint64_t)(scheduled_ms / jitter_part + 1));
    int64_t asked_s = retry_after_s < delivery_retry_after_max_s ? retry_after_s : delivery_retry_after_max_s;
    return asked_s * 1000 > jittered_ms ? asked_s * 1000 : jittered_ms;
}

struct delivery_verdict delivery_judge(const struct delivery_answer *answer, int64_t failures,
                                       uint64_t random)
{
    struct delivery_verdict verdict = {.event = DELIVERY_EVENT_SUCCEED, .failures = failures};
    enum peer_fate fate =
        answer->is_answered ? peer_status(answer->status)->fates[PEER_WEBHOOK] : PEER_RETRIED;
    if (fate == PEER_TAKEN)
        return verdict;
    verdict.event = DELIVERY_EVENT_FAIL;
    verdict.failures++;
    verdict.is_gone = fate == PEER_GONE;
    if (verdict.is_gone || verdict.failures > delivery_retries)
        return verdict;
    verdict.event = DELIVERY_EVENT_RETRY;
    verdict.wait_ms = wait_ms(verdict.failures, answer->is_answered ? answer->retry_after_s : 0, random);
    return verdict;
}

bool delivery_is_hopeless(int64_t first_failure_ms, int64_t now_ms)
{
    return first_failure_ms != 0 && now_ms - first_failure_ms >= delivery_silence_ms;
}

const char *delivery_state_name(enum delivery_state state)
{
    return (unsigned)state < DELIVERY_STATE_COUNT ? names[state] : NULL;
}

enum delivery_state delivery_state_by_name(const char *name)
{
    int found = word_find(name, names, DELIVERY_STATE_COUNT);
    return found > 0 ? (enum delivery_state)found : DELIVERY_NONE;
}
