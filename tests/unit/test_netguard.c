/* Allowed and refused addresses: private ones are refused in every notation. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "service/netguard.h"
#include "runner.h"

static struct arena *arena;
static struct context context;

static bool allows(const struct netguard *guard, const char *text)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in *ipv4 = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)&address;
    if (inet_pton(AF_INET, text, &ipv4->sin_addr) == 1) {
        address.ss_family = AF_INET;
    } else {
        CU_ASSERT_EQUAL_FATAL(inet_pton(AF_INET6, text, &ipv6->sin6_addr), 1);
        address.ss_family = AF_INET6;
    }
    return netguard_allows(guard, (const struct sockaddr *)&address);
}

static struct netguard *guard_with(const char *allowed)
{
    struct netguard *guard = NULL;
    arena_reset(arena);
    context_init(&context, arena, NULL);
    CU_ASSERT_EQUAL_FATAL(netguard_new(&context, allowed, &guard), IW_OK);
    return guard;
}

static void test_public_addresses_pass(void)
{
    static const char *const addresses[] = {
        "1.1.1.1",        "8.8.8.8",          "172.15.255.255",  "172.32.0.1",     "192.167.1.1",
        "100.63.255.255", "100.128.0.1",      "223.255.255.255", "2606:4700::1",   "2a00:1450::1",
        "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "198.17.255.255", "198.20.0.1"};
    struct netguard *guard = guard_with("");
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
        CU_ASSERT(allows(guard, addresses[i]));
    netguard_free(guard);
}

static void test_every_form_of_a_private_address_is_refused(void)
{
    static const char *const addresses[] = {"0.0.0.0",
                                            "0.1.2.3",
                                            "10.0.0.1",
                                            "100.64.0.1",
                                            "127.0.0.1",
                                            "127.255.255.255",
                                            "169.254.169.254",
                                            "172.16.0.1",
                                            "172.31.255.255",
                                            "192.0.0.1",
                                            "192.0.2.5",
                                            "192.168.1.1",
                                            "198.18.0.1",
                                            "198.19.255.255",
                                            "198.51.100.1",
                                            "203.0.113.9",
                                            "224.0.0.1",
                                            "239.255.255.255",
                                            "240.0.0.1",
                                            "255.255.255.255",
                                            "::",
                                            "::1",
                                            "::127.0.0.1",
                                            "::ffff:127.0.0.1",
                                            "::ffff:10.0.0.1",
                                            "::ffff:169.254.169.254",
                                            "::ffff:0:10.0.0.1",
                                            "64:ff9b::7f00:1",
                                            "64:ff9b::a9fe:a9fe",
                                            "64:ff9b:1::1",
                                            "64:ff9b:1::808:808",
                                            "2002:7f00:1::1",
                                            "2002:a00:1::",
                                            "2001:0:1::1",
                                            "2001:db8::1",
                                            "fc00::1",
                                            "fd12:3456::1",
                                            "fe80::1",
                                            "febf::1",
                                            "fec0::1",
                                            "ff02::1",
                                            "100::1",
                                            "::8.8.8.8"};
    struct netguard *guard = guard_with("");
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
        CU_ASSERT_FALSE(allows(guard, addresses[i]));
    netguard_free(guard);
}

static void test_the_allow_list_only_allows_its_blocks(void)
{
    struct netguard *guard = guard_with("127.0.0.0/8 10.1.2.3, fd00:1::/32");
    CU_ASSERT(allows(guard, "127.0.0.1"));
    CU_ASSERT(allows(guard, "::ffff:127.0.0.1"));
    CU_ASSERT(allows(guard, "10.1.2.3"));
    CU_ASSERT(allows(guard, "fd00:1::5"));
    CU_ASSERT_FALSE(allows(guard, "10.1.2.4"));
    CU_ASSERT_FALSE(allows(guard, "::1"));
    CU_ASSERT_FALSE(allows(guard, "fd00:2::5"));
    netguard_free(guard);
}

static void test_an_invalid_block_is_named(void)
{
    static const char *const bad[] = {"127.0.0.0/33", "localhost", "1.2.3",
                                      "::/129",       "10.0.0.0/", "10.0.0.0/8x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct netguard *guard = NULL;
        arena_reset(arena);
        context_init(&context, arena, NULL);
        CU_ASSERT_EQUAL(netguard_new(&context, bad[i], &guard), IW_CONFIG_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, bad[i]));
    }
    struct sockaddr unix_address = {.sa_family = AF_UNIX};
    struct netguard *guard = guard_with("");
    CU_ASSERT_FALSE(netguard_allows(guard, &unix_address));
    netguard_free(guard);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"public addresses pass", test_public_addresses_pass},
        {"every form of a private address is refused", test_every_form_of_a_private_address_is_refused},
        {"the allow list only allows its blocks", test_the_allow_list_only_allows_its_blocks},
        {"an invalid block is named", test_an_invalid_block_is_named},
        CU_TEST_INFO_NULL,
    };
    arena = arena_new(0);
    int code = runner_run("netguard", tests);
    arena_free(arena);
    return code;
}
