/* States and retries of a delivery. */
#include "model/delivery.h"
#include "runner.h"

static uint64_t random_state = 0x9E3779B97F4A7C15u;

/* A fixed sequence, so that failures can be reproduced. */
static unsigned random_below(unsigned bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state % bound);
}

static const enum delivery_state all_states[] = {DELIVERY_NONE, DELIVERY_PENDING, DELIVERY_SENDING,
                                                 DELIVERY_DELIVERED, DELIVERY_FAILED};

static void an_ended_delivery_only_moves_when_it_is_repeated(void)
{
    for (int event = 0; event < DELIVERY_EVENT_COUNT; event++) {
        enum delivery_state wanted = event == DELIVERY_EVENT_REPEAT ? DELIVERY_PENDING : DELIVERY_NONE;
        CU_ASSERT_EQUAL(delivery_next(DELIVERY_DELIVERED, (enum delivery_event)event), wanted);
        CU_ASSERT_EQUAL(delivery_next(DELIVERY_FAILED, (enum delivery_event)event), wanted);
        CU_ASSERT_EQUAL(delivery_next(DELIVERY_NONE, (enum delivery_event)event), DELIVERY_NONE);
    }
}

static void only_a_delivery_being_sent_can_succeed_or_fail(void)
{
    for (size_t i = 0; i < sizeof all_states / sizeof all_states[0]; i++) {
        bool is_sending = all_states[i] == DELIVERY_SENDING;
        CU_ASSERT_EQUAL(delivery_next(all_states[i], DELIVERY_EVENT_SUCCEED),
                        is_sending ? DELIVERY_DELIVERED : DELIVERY_NONE);
        CU_ASSERT_EQUAL(delivery_next(all_states[i], DELIVERY_EVENT_FAIL),
                        is_sending ? DELIVERY_FAILED : DELIVERY_NONE);
        CU_ASSERT_EQUAL(delivery_next(all_states[i], DELIVERY_EVENT_RETRY),
                        is_sending ? DELIVERY_PENDING : DELIVERY_NONE);
    }
}

static void a_delivery_being_sent_is_not_repeated(void)
{
    CU_ASSERT_EQUAL(delivery_next(DELIVERY_SENDING, DELIVERY_EVENT_REPEAT), DELIVERY_NONE);
    CU_ASSERT_EQUAL(delivery_next(DELIVERY_SENDING, DELIVERY_EVENT_LEASE), DELIVERY_NONE);
    CU_ASSERT_EQUAL(delivery_next((enum delivery_state)DELIVERY_STATE_COUNT, DELIVERY_EVENT_LEASE),
                    DELIVERY_NONE);
    CU_ASSERT_EQUAL(delivery_next(DELIVERY_PENDING, (enum delivery_event)DELIVERY_EVENT_COUNT),
                    DELIVERY_NONE);
}

static void state_names_go_both_ways(void)
{
    for (int state = DELIVERY_NONE + 1; state < DELIVERY_STATE_COUNT; state++)
        CU_ASSERT_EQUAL(delivery_state_by_name(delivery_state_name((enum delivery_state)state)), state);
    CU_ASSERT_EQUAL(delivery_state_by_name("NOTHING"), DELIVERY_NONE);
    CU_ASSERT_PTR_NULL(delivery_state_name(DELIVERY_NONE));
}

/*
 * The contract: "Retries after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h
 * (jittered), then FAILED".
 */
static void the_schedule_is_the_contracts(void)
{
    static const int64_t schedule_s[] = {5,         5 * 60,    30 * 60,   2 * 3600, 5 * 3600,
                                         10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600};
    const struct delivery_answer answer = {.is_answered = true, .status = 500};
    int64_t failures = 0;
    for (size_t i = 0; i < sizeof schedule_s / sizeof schedule_s[0]; i++) {
        int64_t least = INT64_MAX, most = 0;
        struct delivery_verdict verdict = {.failures = 0};
        for (unsigned turn = 0; turn < 2000; turn++) {
            verdict = delivery_judge(&answer, failures, (uint64_t)random_below(1u << 30) * 7919);
            CU_ASSERT_EQUAL_FATAL(verdict.event, DELIVERY_EVENT_RETRY);
            least = verdict.wait_ms < least ? verdict.wait_ms : least;
            most = verdict.wait_ms > most ? verdict.wait_ms : most;
        }
        CU_ASSERT(least >= schedule_s[i] * 1000 && least < schedule_s[i] * 1020);
        CU_ASSERT(most <= schedule_s[i] * 1200 && most > schedule_s[i] * 1180);
        CU_ASSERT_EQUAL(verdict.failures, failures + 1);
        failures = verdict.failures;
    }
    struct delivery_verdict last = delivery_judge(&answer, failures, 1);
    CU_ASSERT_EQUAL(last.event, DELIVERY_EVENT_FAIL);
    CU_ASSERT_EQUAL(last.failures, delivery_tries);
    CU_ASSERT_FALSE(last.is_gone);
}

static void every_2xx_and_nothing_else_is_a_success(void)
{
    for (long status = 100; status < 600; status++) {
        const struct delivery_answer answer = {.is_answered = true, .status = status};
        struct delivery_verdict verdict = delivery_judge(&answer, 3, 0);
        bool is_success = status >= 200 && status < 300;
        CU_ASSERT_EQUAL(verdict.event == DELIVERY_EVENT_SUCCEED, is_success);
        CU_ASSERT_EQUAL(verdict.is_gone, status == 410);
        CU_ASSERT_EQUAL(verdict.event == DELIVERY_EVENT_FAIL, status == 410);
        CU_ASSERT_EQUAL(verdict.failures, is_success ? 3 : 4);
    }
    const struct delivery_answer silent = {.is_answered = false, .status = 200};
    CU_ASSERT_EQUAL(delivery_judge(&silent, 0, 0).event, DELIVERY_EVENT_RETRY);
}

static void retry_after_is_honoured_up_to_a_day(void)
{
    struct delivery_answer answer = {.is_answered = true, .status = 503, .retry_after_s = 3600};
    CU_ASSERT_EQUAL(delivery_judge(&answer, 0, 0).wait_ms, 3600 * 1000);
    answer.retry_after_s = 1; /* earlier than the schedule, so it has no effect */
    CU_ASSERT_EQUAL(delivery_judge(&answer, 0, 0).wait_ms, 5000);
    answer.retry_after_s = 100 * 86400;
    CU_ASSERT_EQUAL(delivery_judge(&answer, 0, 0).wait_ms, 86400 * 1000);
    answer.retry_after_s = INT64_MAX;
    CU_ASSERT_EQUAL(delivery_judge(&answer, 0, 0).wait_ms, 86400 * 1000);
}

static void five_days_without_a_success_are_too_many(void)
{
    const int64_t day_ms = 86400 * 1000, now_ms = 1700000000000;
    CU_ASSERT_FALSE(delivery_is_hopeless(0, now_ms));
    CU_ASSERT_FALSE(delivery_is_hopeless(now_ms - 5 * day_ms + 1, now_ms));
    CU_ASSERT_TRUE(delivery_is_hopeless(now_ms - 5 * day_ms, now_ms));
}

/* In ten thousand random histories, each delivery ends after at most ten counted attempts. */
static void every_delivery_ends(void)
{
    for (int life = 0; life < 10000; life++) {
        enum delivery_state state = DELIVERY_PENDING;
        int64_t failures = 0;
        int tries = 0, lost = 0;
        while (state != DELIVERY_DELIVERED && state != DELIVERY_FAILED) {
            state = delivery_next(state, DELIVERY_EVENT_LEASE);
            CU_ASSERT_EQUAL_FATAL(state, DELIVERY_SENDING);
            if (lost < 5 && random_below(10) == 0) {
                lost++;
                state = delivery_next(state, DELIVERY_EVENT_LOSE);
                continue;
            }
            const struct delivery_answer answer = {.is_answered = random_below(4) > 0,
                                                   .status = 100 + (long)random_below(500)};
            struct delivery_verdict verdict = delivery_judge(&answer, failures, random_below(1000));
            failures = verdict.failures;
            state = delivery_next(state, verdict.event);
            tries++;
        }
        CU_ASSERT_FATAL(tries <= delivery_tries);
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"an ended delivery only moves when it is repeated",
         an_ended_delivery_only_moves_when_it_is_repeated},
        {"only a delivery being sent can succeed or fail", only_a_delivery_being_sent_can_succeed_or_fail},
        {"a delivery being sent is not repeated", a_delivery_being_sent_is_not_repeated},
        {"state names go both ways", state_names_go_both_ways},
        {"the schedule is the contract's", the_schedule_is_the_contracts},
        {"every 2xx and nothing else is a success", every_2xx_and_nothing_else_is_a_success},
        {"Retry-After is honoured up to a day", retry_after_is_honoured_up_to_a_day},
        {"five days without a success are too many", five_days_without_a_success_are_too_many},
        {"every delivery ends", every_delivery_ends},
        CU_TEST_INFO_NULL,
    };
    return runner_run("delivery", tests);
}
