/* Lists of servers. */
#include "base/endpoint.h"
#include "runner.h"

static void test_lists_of_servers(void)
{
    struct endpoint list[endpoints_max];
    static const struct {
        const char *text;
        const char *host;
        int port;
    } rows[] = {
        {"a", "a", 7},       {"a:9", "a", 9},       {"10.0.0.1:65535", "10.0.0.1", 65535}, {"::1", "::1", 7},
        {"[::1]", "::1", 7}, {"[::1]:8", "::1", 8}, {"/run/a.sock", "/run/a.sock", 7}};
    static const char *const invalid[] = {
        "a:", "a:0", "a:65536", "a:x", ":1", "[::1", "[::1]x", "[]:1", "a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CU_ASSERT_EQUAL_FATAL(endpoints_read(rows[i].text, 7, list), 1);
        CU_ASSERT_STRING_EQUAL(list[0].host, rows[i].host);
        CU_ASSERT_EQUAL(list[0].port, rows[i].port);
        CU_ASSERT_EQUAL(endpoint_is_socket(&list[0]), rows[i].host[0] == '/');
    }
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++)
        CU_ASSERT_EQUAL(endpoints_read(invalid[i], 7, list), -1);
    CU_ASSERT_EQUAL(endpoints_read("", 7, list), 0);
    CU_ASSERT_EQUAL(endpoints_read(" a, b:3307 ,/run/c.sock,", 3306, list), 3);
    CU_ASSERT_STRING_EQUAL(list[2].host, "/run/c.sock");
    CU_ASSERT_EQUAL(list[1].port, 3307);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"lists of servers", test_lists_of_servers},
        CU_TEST_INFO_NULL,
    };
    return runner_run("endpoint", tests);
}
