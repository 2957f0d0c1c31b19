/* Ids, words and legal events of an order. */
#include "base/crypto.h"
#include "runner.h"
#include "model/order.h"

static const int64_t year_2024_ms = 1704067200000;

static void test_ids_are_positive_and_tell_their_time(void)
{
    /* 41 bits of milliseconds last until September 2093. */
    for (int64_t ms = year_2024_ms; ms < year_2024_ms + ((int64_t)1 << 41); ms += (int64_t)86400000 * 37) {
        int64_t id = order_id_make(ms, crypto_random_u64());
        CU_ASSERT(id >= 0);
        CU_ASSERT_EQUAL(order_id_time_ms(id), ms);
    }
}

static void test_ids_grow_with_time_for_any_random_part(void)
{
    for (int i = 0; i < 10000; i++) {
        int64_t ms = year_2024_ms + (int64_t)(crypto_random_u64() % ((uint64_t)1 << 40));
        CU_ASSERT(order_id_make(ms, UINT64_MAX) < order_id_make(ms + 1, 0));
        CU_ASSERT(order_id_make(ms, 0) < order_id_make(ms, 1));
    }
}

static void test_names_read_back(void)
{
    enum order_status status;
    enum order_type type;
    enum order_strength strength;
    for (int i = 0; i < ORDER_STATUS_COUNT; i++)
        CU_ASSERT(order_status_read(order_status_name((enum order_status)i), &status) &&
                  status == (enum order_status)i);
    for (int i = 0; i < ORDER_TYPE_COUNT; i++)
        CU_ASSERT(order_type_read(order_type_name((enum order_type)i), &type) && type == (enum order_type)i);
    CU_ASSERT(!order_strength_read("HIGH", &strength));
    CU_ASSERT(!order_strength_read("", &strength));
}

/*
 * Each random sequence of events ends, leaves a final status only by expiry, and has only
 * states of the order's type.
 */
static void test_no_walk_of_events_breaks_the_rules(void)
{
    for (int walk = 0; walk < 20000; walk++) {
        enum order_type type = (enum order_type)(crypto_random_u64() % ORDER_TYPE_COUNT);
        enum order_status status = ORDER_PENDING, next;
        int steps = 0;
        for (int i = 0; i < 40; i++) {
            enum order_event event = (enum order_event)(crypto_random_u64() % ORDER_EVENT_COUNT);
            if (!order_next(type, status, event, &next))
                continue;
            CU_ASSERT(!order_is_ended(status) || (status == ORDER_COMPLETE && next == ORDER_EXPIRED));
            CU_ASSERT(next != ORDER_PENDING);
            bool is_verdict = next == ORDER_DETECTED || next == ORDER_UNDETECTED;
            CU_ASSERT(!is_verdict || type == ORDER_WATERMARK_EXTRACT);
            status = next;
            steps++;
        }
        CU_ASSERT(steps <= 3);
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"ids are positive and tell their time", test_ids_are_positive_and_tell_their_time},
        {"ids grow with time for any random part", test_ids_grow_with_time_for_any_random_part},
        {"names read back", test_names_read_back},
        {"no walk of events breaks the rules", test_no_walk_of_events_breaks_the_rules},
        CU_TEST_INFO_NULL,
    };
    return runner_run("order", tests);
}
