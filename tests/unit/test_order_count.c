/*
 * Counting the orders of an account while orders arrive and clocks step. The sums are correct,
 * and the database work for one count does not grow with the table.
 *
 * The test replaces both clocks and the database's count (--wrap). A "row" is a counted index
 * entry.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "domain/order_count.h"
#include "runner.h"

enum { room = 600000, a_second = 1000, a_minute = 60000 };

static int64_t now_ms = 1780000000000, steady_ms = 5000000;
static int64_t ids[room];
static unsigned id_count;
static int64_t rows_seen;
static struct domain domain;
static int64_t next_account = 100;

int64_t __wrap_clock_now_ms(void);
int64_t __wrap_clock_now_ms(void)
{
    return now_ms;
}

int64_t __wrap_clock_monotonic_ms(void);
int64_t __wrap_clock_monotonic_ms(void)
{
    return steady_ms;
}

/* Ids follow the order of commits approximately, so few need to be counted individually. */
enum iw_error __wrap_orders_count(const struct store *store, const struct order_filter *filter,
                                  int64_t *count);
enum iw_error __wrap_orders_count(const struct store *store, const struct order_filter *filter,
                                  int64_t *count)
{
    (void)store->context;
    (void)store->db;
    int64_t up_to = filter->id_up_to > 0 ? filter->id_up_to : INT64_MAX;
    *count = 0;
    for (unsigned i = 0; i < id_count; i++)
        *count += ids[i] > filter->id_above && ids[i] <= up_to;
    rows_seen += *count;
    return IW_OK;
}

static void time_passes(int64_t ms)
{
    now_ms += ms;
    steady_ms += ms;
}

static void order_comes(int64_t made_ms)
{
    ids[id_count] = order_id_make(made_ms, id_count);
    id_count++;
}

/* A new account with this number of orders, all an hour old. */
static struct order_filter account_new(unsigned orders)
{
    id_count = 0;
    for (unsigned i = 0; i < orders; i++)
        order_comes(now_ms - 60 * a_minute);
    return (struct order_filter){.account_id = next_account++, .type = -1, .status = -1, .channel = -1};
}

static int64_t total(const struct order_filter *filter)
{
    int64_t count = -1;
    CU_ASSERT_EQUAL(order_count(&domain, filter, &count), IW_OK);
    return count;
}

/*
 * A minute with this number of orders and lists per second. Every sum must be correct. Returns
 * the rows read by an average list.
 */
static int64_t minute_run(const struct order_filter *filter, unsigned orders, unsigned lists)
{
    unsigned wrong = 0;
    rows_seen = 0;
    for (unsigned step = 0; step < 60 * lists; step++) {
        for (unsigned i = 0; i < orders / lists; i++)
            order_comes(now_ms);
        wrong += total(filter) != id_count;
        time_passes(a_second / lists);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    return rows_seen / (60 * lists);
}

static void test_a_list_costs_the_same_however_many_orders_there_are(void)
{
    struct order_filter filter = account_new(2000);
    int64_t second = 0, last = 0;
    for (int minute = 1; minute <= 9; minute++) {
        last = minute_run(&filter, 400, 4);
        if (minute == 2)
            second = last;
    }
    printf("(%lld rows a list in the second minute, %lld in the ninth) ", (long long)second, (long long)last);
    CU_ASSERT(id_count > 200000);
    CU_ASSERT(last <= second + second / 20);
    /* About two seconds of orders per list, and some rows for new marks. */
    CU_ASSERT(last < 8 * 400);
}

static void test_an_account_that_is_large_and_quiet_costs_nothing(void)
{
    struct order_filter filter = account_new(500000);
    total(&filter);
    rows_seen = 0;
    for (int i = 0; i < 100; i++) {
        time_passes(3 * a_second);
        if (i % 10 == 0)
            order_comes(now_ms);
        CU_ASSERT_EQUAL(total(&filter), id_count);
    }
    CU_ASSERT(rows_seen < 100 * 10);
}

static void test_a_small_account_is_counted_whole(void)
{
    struct order_filter filter = account_new(0);
    for (int i = 0; i < 999; i++) {
        order_comes(now_ms - 5 * a_minute); /* the longest delay that is supported */
        CU_ASSERT_EQUAL(total(&filter), id_count);
    }
}

/* An order whose commit took ten seconds, or a minute and a half. */
static void test_an_order_that_comes_late_is_found(void)
{
    struct order_filter filter = account_new(2000);
    minute_run(&filter, 400, 4);
    order_comes(now_ms - 10 * a_second);
    time_passes(4 * a_second);
    CU_ASSERT_EQUAL(total(&filter), id_count);
    order_comes(now_ms - 90 * a_second);
    time_passes(10 * a_minute);
    CU_ASSERT_EQUAL(total(&filter), id_count);
}

static void test_a_clock_that_is_set_back_hides_no_order(void)
{
    struct order_filter filter = account_new(2000);
    for (int64_t step_ms = 1; step_ms < 10 * 60 * a_minute; step_ms *= 7) {
        minute_run(&filter, 400, 4);
        now_ms -= step_ms;
        minute_run(&filter, 40, 4);
        now_ms += step_ms;
    }
}

static void test_filters_are_counted_each_for_itself(void)
{
    struct order_filter one = account_new(3000), other;
    CU_ASSERT_EQUAL(total(&one), 3000);
    for (int type = -1; type < ORDER_TYPE_COUNT; type++)
        for (int channel = -1; channel < ORDER_CHANNEL_COUNT; channel++) {
            other = account_new(2000 + (unsigned)(10 * (type + 1) + channel + 1));
            other.type = type;
            other.channel = channel;
            CU_ASSERT_EQUAL(total(&other), id_count);
            CU_ASSERT_EQUAL(total(&other), id_count);
        }
}

static void test_orders_of_a_status_are_counted_again_until_they_are_very_many(void)
{
    struct order_filter filter = account_new(19000);
    filter.status = ORDER_PENDING;
    for (int i = 0; i < 900; i++) {
        id_count--;
        CU_ASSERT_EQUAL(total(&filter), id_count);
    }
    filter = account_new(500000);
    filter.status = ORDER_COMPLETE;
    rows_seen = 0;
    for (int i = 0; i < 1000; i++) {
        total(&filter);
        time_passes(20);
    }
    CU_ASSERT(rows_seen <= 5 * 500000);
    order_comes(now_ms);
    time_passes(6 * a_second);
    CU_ASSERT_EQUAL(total(&filter), id_count);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"a list costs the same however many orders there are",
         test_a_list_costs_the_same_however_many_orders_there_are},
        {"an account that is large and quiet costs nothing",
         test_an_account_that_is_large_and_quiet_costs_nothing},
        {"a small account is counted whole", test_a_small_account_is_counted_whole},
        {"an order that comes late is found", test_an_order_that_comes_late_is_found},
        {"a clock that is set back hides no order", test_a_clock_that_is_set_back_hides_no_order},
        {"filters are counted each for itself", test_filters_are_counted_each_for_itself},
        {"orders of a status are counted again until they are very many",
         test_orders_of_a_status_are_counted_again_until_they_are_very_many},
        CU_TEST_INFO_NULL,
    };
    return runner_run("order_count", tests);
}
