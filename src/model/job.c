#include "model/job.h"

#include <stddef.h>

#include "model/word.h"

static const char *const names[JOB_STATE_COUNT] = {
    [JOB_QUEUED] = "queued", [JOB_LEASED] = "leased",   [JOB_DONE] = "done",
    [JOB_FAILED] = "failed", [JOB_REFUSED] = "refused",
};

static const char *const kinds[JOB_KIND_COUNT] = {
    [JOB_PROTECT] = "protect", [JOB_EMBED] = "embed", [JOB_EXTRACT] = "extract",
    [JOB_ARCHIVE] = "archive", [JOB_FETCH] = "fetch", [JOB_PUSH] = "push",
};

/* An event without an entry is illegal. */
static const enum job_state transitions[JOB_STATE_COUNT][JOB_EVENT_COUNT] = {
    [JOB_QUEUED] =
        {
            [JOB_EVENT_LEASE] = JOB_LEASED,
            [JOB_EVENT_CANCEL] = JOB_FAILED,
        },
    [JOB_LEASED] =
        {
            [JOB_EVENT_FINISH] = JOB_DONE,
            [JOB_EVENT_RELEASE] = JOB_QUEUED,
            [JOB_EVENT_LOSE] = JOB_QUEUED,
            [JOB_EVENT_RETRY] = JOB_QUEUED,
            [JOB_EVENT_FAIL] = JOB_FAILED,
            [JOB_EVENT_REFUSE] = JOB_REFUSED,
            [JOB_EVENT_CANCEL] = JOB_FAILED,
        },
    [JOB_FAILED] = {[JOB_EVENT_REOPEN] = JOB_QUEUED},
    [JOB_REFUSED] = {[JOB_EVENT_REOPEN] = JOB_QUEUED},
};

enum job_state job_next(enum job_state state, enum job_event event)
{
    if ((unsigned)state >= JOB_STATE_COUNT || (unsigned)event >= JOB_EVENT_COUNT)
        return JOB_NONE;
    return transitions[state][event];
}

/* Doubles with each failed attempt, up to job_wait_max_ms. */
static int64_t wait_ms(int64_t first_ms, int64_t tries)
{
    int64_t wait = first_ms;
    for (int64_t i = 1; i < tries && wait < job_wait_max_ms; i++)
        wait *= 2;
    return wait < job_wait_max_ms ? wait : job_wait_max_ms;
}

struct job_verdict job_judge(enum job_trouble trouble, int64_t failures, int64_t deaths, int64_t asked_ms,
                             const struct job_limits *limits)
{
    struct job_verdict verdict = {.event = JOB_EVENT_FAIL, .failures = failures, .deaths = deaths};
    if (trouble == JOB_TROUBLE_TRANSIENT && ++verdict.failures < limits->failures_max)
        verdict.event = JOB_EVENT_RETRY;
    if (trouble == JOB_TROUBLE_DEATH && ++verdict.deaths < limits->deaths_max)
        verdict.event = JOB_EVENT_RETRY;
    if (verdict.event != JOB_EVENT_RETRY)
        return verdict;
    verdict.wait_ms =
        wait_ms(limits->retry_first_ms, trouble == JOB_TROUBLE_DEATH ? verdict.deaths : verdict.failures);
    if (asked_ms > verdict.wait_ms)
        verdict.wait_ms = asked_ms < job_wait_max_ms ? asked_ms : job_wait_max_ms;
    return verdict;
}

struct job_verdict job_wait_out(int64_t attempt, int64_t failures, int64_t deaths,
                                const struct job_limits *limits)
{
    int64_t wait = wait_ms(limits->retry_first_ms, attempt);
    return (struct job_verdict){.event = JOB_EVENT_RETRY,
                                .failures = failures,
                                .deaths = deaths,
                                .wait_ms = wait < job_ours_wait_max_ms ? wait : job_ours_wait_max_ms};
}

const char *job_state_name(enum job_state state)
{
    return (unsigned)state < JOB_STATE_COUNT ? names[state] : NULL;
}

enum job_state job_state_by_name(const char *name)
{
    int found = word_find(name, names, JOB_STATE_COUNT);
    return found > 0 ? (enum job_state)found : JOB_NONE;
}

const char *job_kind_name(enum job_kind kind)
{
    return (unsigned)kind < JOB_KIND_COUNT ? kinds[kind] : NULL;
}

const char *job_class_name(enum job_class class)
{
    return class == JOB_CLASS_TRANSFER ? "transfer" : "image";
}

bool job_kind_read(const char *name, enum job_kind *kind)
{
    int found = word_find(name, kinds, JOB_KIND_COUNT);
    if (found >= 0)
        *kind = (enum job_kind)found;
    return found >= 0;
}
