/* Networks of attempts to sign in. */
#include "domain/people/throttle.h"
#include "fixture.h"

static void test_an_ipv6_address_counts_by_its_network(void)
{
    fresh();
    CU_ASSERT_STRING_EQUAL(throttle_network(arena, "192.0.2.7"), "192.0.2.7");
    CU_ASSERT_STRING_EQUAL(throttle_network(arena, "2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    CU_ASSERT_STRING_EQUAL(throttle_network(arena, "::ffff:192.0.2.7"), "::ffff:192.0.2.7");
    CU_ASSERT_STRING_EQUAL(throttle_network(arena, "no address"), "no address");
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"an IPv6 address counts by its network", test_an_ipv6_address_counts_by_its_network},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("throttle", tests);
}
