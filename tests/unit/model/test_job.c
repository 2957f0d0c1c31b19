/* States of a job: the table of transitions, and the count of attempts. */
#include "model/job.h"

#include <stdlib.h>
#include <string.h>

#include "runner.h"

static const struct job_limits limits = {.failures_max = 5, .deaths_max = 3, .retry_first_ms = 1000};

static uint64_t random_state = 0x9E3779B97F4A7C15u;

/* A fixed sequence, so that failures can be reproduced. */
static unsigned random_below(unsigned bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state % bound);
}

/* The exception is a failed job, which an operator may retry. */
static void ended_jobs_never_move(void)
{
    for (int event = 0; event < JOB_EVENT_COUNT; event++) {
        CU_ASSERT_EQUAL(job_next(JOB_DONE, (enum job_event)event), JOB_NONE);
        CU_ASSERT_EQUAL(job_next(JOB_FAILED, (enum job_event)event),
                        event == JOB_EVENT_REOPEN ? JOB_QUEUED : JOB_NONE);
        CU_ASSERT_EQUAL(job_next(JOB_NONE, (enum job_event)event), JOB_NONE);
    }
}

static void only_a_leased_job_can_finish(void)
{
    for (int state = JOB_NONE; state < JOB_STATE_COUNT; state++) {
        enum job_state next = job_next((enum job_state)state, JOB_EVENT_FINISH);
        CU_ASSERT_EQUAL(next, state == JOB_LEASED ? JOB_DONE : JOB_NONE);
    }
}

static void no_state_outside_the_table(void)
{
    CU_ASSERT_EQUAL(job_next((enum job_state)JOB_STATE_COUNT, JOB_EVENT_LEASE), JOB_NONE);
    CU_ASSERT_EQUAL(job_next(JOB_QUEUED, (enum job_event)JOB_EVENT_COUNT), JOB_NONE);
    CU_ASSERT_EQUAL(job_next((enum job_state) - 1, JOB_EVENT_LEASE), JOB_NONE);
}

static void names_go_both_ways(void)
{
    for (int state = JOB_NONE + 1; state < JOB_STATE_COUNT; state++)
        CU_ASSERT_EQUAL(job_state_by_name(job_state_name((enum job_state)state)), state);
    for (int kind = 0; kind < JOB_KIND_COUNT; kind++) {
        enum job_kind read = JOB_KIND_COUNT;
        CU_ASSERT_TRUE(job_kind_read(job_kind_name((enum job_kind)kind), &read));
        CU_ASSERT_EQUAL(read, kind);
    }
    CU_ASSERT_EQUAL(job_state_by_name("nothing"), JOB_NONE);
    CU_ASSERT_PTR_NULL(job_state_name(JOB_NONE));
}

/* In ten thousand random histories, each job ends within the allowed number of attempts. */
static void every_job_ends(void)
{
    for (int life = 0; life < 10000; life++) {
        enum job_state state = JOB_QUEUED;
        int64_t failures = 0, deaths = 0, lost = 0;
        int tries = 0;
        while (state != JOB_DONE && state != JOB_FAILED) {
            state = job_next(state, JOB_EVENT_LEASE);
            CU_ASSERT_EQUAL_FATAL(state, JOB_LEASED);
            tries++;
            unsigned chance = random_below(10);
            if (chance == 0 && lost < 5) {
                lost++;
                state = job_next(state, JOB_EVENT_LOSE);
                continue;
            }
            if (chance == 1) {
                state = job_next(state, JOB_EVENT_FINISH);
                continue;
            }
            struct job_verdict verdict =
                job_judge(random_below(2) == 0 ? JOB_TROUBLE_TRANSIENT : JOB_TROUBLE_DEATH, failures, deaths,
                          0, &limits);
            CU_ASSERT_FATAL(verdict.failures + verdict.deaths == failures + deaths + 1);
            failures = verdict.failures;
            deaths = verdict.deaths;
            state = job_next(state, verdict.event);
        }
        CU_ASSERT_FATAL(failures <= limits.failures_max && deaths <= limits.deaths_max);
        CU_ASSERT_FATAL(tries <= limits.failures_max + limits.deaths_max + lost);
    }
}

static void a_broken_picture_fails_at_once(void)
{
    struct job_verdict verdict = job_judge(JOB_TROUBLE_FINAL, 0, 0, 0, &limits);
    CU_ASSERT_EQUAL(verdict.event, JOB_EVENT_FAIL);
    CU_ASSERT_EQUAL(verdict.failures, 0);
    CU_ASSERT_EQUAL(verdict.deaths, 0);
}

/* The contract: "retried twice in a fresh process, then fails alone". */
static void a_killer_is_tried_three_times(void)
{
    int64_t deaths = 0;
    for (int i = 0; i < 2; i++) {
        struct job_verdict verdict = job_judge(JOB_TROUBLE_DEATH, 4, deaths, 0, &limits);
        CU_ASSERT_EQUAL(verdict.event, JOB_EVENT_RETRY);
        CU_ASSERT_EQUAL(verdict.failures, 4);
        deaths = verdict.deaths;
    }
    CU_ASSERT_EQUAL(job_judge(JOB_TROUBLE_DEATH, 4, deaths, 0, &limits).event, JOB_EVENT_FAIL);
}

static void waits_double_up_to_a_ceiling(void)
{
    const struct job_limits patient = {.failures_max = 100, .deaths_max = 3, .retry_first_ms = 1000};
    CU_ASSERT_EQUAL(job_judge(JOB_TROUBLE_TRANSIENT, 0, 0, 0, &patient).wait_ms, 1000);
    CU_ASSERT_EQUAL(job_judge(JOB_TROUBLE_TRANSIENT, 1, 0, 0, &patient).wait_ms, 2000);
    CU_ASSERT_EQUAL(job_judge(JOB_TROUBLE_TRANSIENT, 4, 0, 0, &patient).wait_ms, 16000);
    CU_ASSERT_EQUAL(job_judge(JOB_TROUBLE_TRANSIENT, 60, 0, 0, &patient).wait_ms, job_wait_max_ms);
}

/* A server's Retry-After can only delay a retry, up to the maximum. */
static void a_wait_that_is_asked_for_is_kept_within_bounds(void)
{
    const struct job_limits patient = {.failures_max = 100, .deaths_max = 3, .retry_first_ms = 1000};
    CU_ASSERT_EQUAL(job_judge(JOB_TROUBLE_TRANSIENT, 0, 0, 30000, &patient).wait_ms, 30000);
    CU_ASSERT_EQUAL(job_judge(JOB_TROUBLE_TRANSIENT, 4, 0, 3000, &patient).wait_ms, 16000);
    CU_ASSERT_EQUAL(job_judge(JOB_TROUBLE_TRANSIENT, 0, 0, INT64_MAX, &patient).wait_ms, job_wait_max_ms);
    CU_ASSERT_EQUAL(job_judge(JOB_TROUBLE_TRANSIENT, 4, 0, 30000, &limits).event, JOB_EVENT_FAIL);
}

/* A full disk does not count as a failure, because the file is not its cause. */
static void a_full_disk_fails_no_file(void)
{
    for (int64_t attempt = 1; attempt < 90; attempt++) {
        struct job_verdict verdict =
            job_wait_out(attempt, limits.failures_max - 1, limits.deaths_max - 1, &limits);
        CU_ASSERT_EQUAL(verdict.event, JOB_EVENT_RETRY);
        CU_ASSERT_EQUAL(verdict.failures, limits.failures_max - 1);
        CU_ASSERT_EQUAL(verdict.deaths, limits.deaths_max - 1);
        CU_ASSERT(verdict.wait_ms >= limits.retry_first_ms && verdict.wait_ms <= job_ours_wait_max_ms);
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"ended jobs never move", ended_jobs_never_move},
        {"only a leased job can finish", only_a_leased_job_can_finish},
        {"there is no state outside the table", no_state_outside_the_table},
        {"names go both ways", names_go_both_ways},
        {"every job ends", every_job_ends},
        {"a wait that is asked for is kept within bounds", a_wait_that_is_asked_for_is_kept_within_bounds},
        {"a broken picture fails at once", a_broken_picture_fails_at_once},
        {"a killer is tried three times", a_killer_is_tried_three_times},
        {"waits double up to a ceiling", waits_double_up_to_a_ceiling},
        {"a full disk fails no file", a_full_disk_fails_no_file},
        CU_TEST_INFO_NULL,
    };
    return runner_run("job", tests);
}
