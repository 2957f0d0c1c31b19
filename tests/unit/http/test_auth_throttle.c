/* Unknown keys of an address. */
#include "http/auth_throttle.h"
#include "runner.h"

static void test_an_address_has_so_many_unknown_keys(void)
{
    auth_throttle_forget();
    for (unsigned i = 0; i < auth_throttle_tries_max; i++)
        CU_ASSERT_EQUAL(auth_throttle_count("192.0.2.1"), 0);
    unsigned wait_s = auth_throttle_count("192.0.2.1");
    CU_ASSERT(wait_s > 0 && wait_s <= auth_throttle_window_ms / 1000);
    CU_ASSERT_EQUAL(auth_throttle_count("192.0.2.2"), 0);
    CU_ASSERT_EQUAL(auth_throttle_count("2001:db8::1"), 0);
    auth_throttle_forget();
    for (unsigned i = 0; i < auth_throttle_tries_max; i++)
        CU_ASSERT_EQUAL(auth_throttle_count(i % 2 == 0 ? "2001:db8:1:2::1" : "2001:db8:1:2:a:b:c:d"), 0);
    CU_ASSERT(auth_throttle_count("2001:db8:1:2::99") > 0);
    CU_ASSERT_EQUAL(auth_throttle_count("2001:db8:1:3::1"), 0);
    for (unsigned i = 0; i < auth_throttle_tries_max; i++)
        CU_ASSERT_EQUAL(auth_throttle_count("::ffff:192.0.2.1"), 0);
    CU_ASSERT(auth_throttle_count("::ffff:192.0.2.1") > 0);
    CU_ASSERT_EQUAL(auth_throttle_count("::ffff:192.0.2.2"), 0);
    CU_ASSERT_EQUAL(auth_throttle_count("an address that is longer than any address of any kind may be"), 0);
    auth_throttle_forget();
    CU_ASSERT_EQUAL(auth_throttle_count("192.0.2.1"), 0);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"an address has so many unknown keys", test_an_address_has_so_many_unknown_keys},
        CU_TEST_INFO_NULL,
    };
    return runner_run("auth throttle", tests);
}
