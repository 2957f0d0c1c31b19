/* Allowed and refused addresses: a private address is refused in every notation. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "service/net/netguard.h"
#include "runner.h"

static struct arena *arena;
static struct context context;
static struct config config;

static bool allows_at(const struct netguard *guard, const char *text, unsigned port)
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
    ipv4->sin_port = htons((uint16_t)port); /* same offset in sockaddr_in and sockaddr_in6 */
    return netguard_allows(guard, (const struct sockaddr *)&address);
}

static bool allows(const struct netguard *guard, const char *text)
{
    return allows_at(guard, text, 443);
}

static void config_fresh(void)
{
    arena_reset(arena);
    context_init(&context, arena, NULL);
    config_init(&config);
}

static struct netguard *guard_made(void)
{
    struct netguard *guard = NULL;
    CU_ASSERT_EQUAL_FATAL(netguard_new(&context, &config, &guard), IW_OK);
    return guard;
}

static struct netguard *guard_with(const char *allowed)
{
    config_fresh();
    config.outgoing_allow_addresses = allowed;
    return guard_made();
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
        config_fresh();
        config.outgoing_allow_addresses = bad[i];
        CU_ASSERT_EQUAL(netguard_new(&context, &config, &guard), IW_CONFIG_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, bad[i]));
        config_fresh();
        config.outgoing_refuse_addresses = arena_printf(arena, "own %s", bad[i]);
        CU_ASSERT_EQUAL(netguard_new(&context, &config, &guard), IW_CONFIG_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, "outgoing.refuse_addresses"));
    }
    struct sockaddr unix_address = {.sa_family = AF_UNIX};
    struct netguard *guard = guard_with("");
    CU_ASSERT_FALSE(netguard_allows(guard, &unix_address));
    netguard_free(guard);
}

static void test_only_global_unicast_and_nat64_are_reachable(void)
{
    static const char *const addresses[] = {
        "1::1",   "1fff::1", "4000::1", "64:ff9a::808:808", "64:ff9b::1:808:808",
        "200::1", "5f00::1", "8000::1", "f000::1",          "::ffff:0:8.8.8.8"};
    struct netguard *guard = guard_with("");
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
        CU_ASSERT_FALSE(allows(guard, addresses[i]));
    netguard_free(guard);
}

/* By the registries Azure's address is public, but every form of it is refused. */
static void test_a_metadata_service_at_a_public_address_is_refused(void)
{
    static const char *const addresses[] = {"168.63.129.16", "::ffff:168.63.129.16", "64:ff9b::a83f:8110",
                                            "2002:a83f:8110::1"};
    struct netguard *guard = guard_with("");
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
        CU_ASSERT_FALSE(allows(guard, addresses[i]));
    CU_ASSERT(allows(guard, "168.63.129.17"));
    netguard_free(guard);
    config_fresh();
    config.outgoing_refuse_addresses = "";
    guard = guard_made();
    CU_ASSERT(allows(guard, "168.63.129.16"));
    netguard_free(guard);
}

static void test_the_most_specific_block_applies(void)
{
    config_fresh();
    config.outgoing_allow_addresses = "10.0.0.0/8 10.1.2.3 8.8.8.8";
    config.outgoing_refuse_addresses = "10.1.0.0/16 10.1.2.3 8.8.8.0/24 2600::/12";
    struct netguard *guard = guard_made();
    CU_ASSERT(allows(guard, "10.2.0.1"));
    CU_ASSERT_FALSE(allows(guard, "10.1.0.1"));
    CU_ASSERT(allows(guard, "10.1.2.3"));
    CU_ASSERT(allows(guard, "8.8.8.8"));
    CU_ASSERT_FALSE(allows(guard, "8.8.8.9"));
    CU_ASSERT_FALSE(allows(guard, "2606:4700::1"));
    netguard_free(guard);
}

/* Checks one address of this machine, which is inside the widest allowed block. */
static void own_check(const char *text)
{
    struct netguard *guard = guard_with("0.0.0.0/0 ::/0");
    CU_ASSERT_FALSE(allows(guard, text));
    netguard_free(guard);
    guard = guard_with(text);
    CU_ASSERT(allows(guard, text));
    netguard_free(guard);
    config_fresh();
    config.outgoing_allow_addresses = "0.0.0.0/0 ::/0";
    config.outgoing_refuse_addresses = "";
    guard = guard_made();
    CU_ASSERT(allows(guard, text));
    netguard_free(guard);
}

static void test_the_machines_own_addresses_are_refused(void)
{
    struct ifaddrs *list = NULL;
    CU_ASSERT_EQUAL_FATAL(getifaddrs(&list), 0);
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next) {
        char text[INET6_ADDRSTRLEN] = "";
        const void *bytes = NULL;
        if (at->ifa_addr == NULL || (at->ifa_flags & IFF_LOOPBACK) != 0)
            continue;
        if (at->ifa_addr->sa_family == AF_INET)
            bytes = &((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr;
        else if (at->ifa_addr->sa_family == AF_INET6)
            bytes = &((const struct sockaddr_in6 *)(const void *)at->ifa_addr)->sin6_addr;
        if (bytes == NULL || inet_ntop(at->ifa_addr->sa_family, bytes, text, sizeof text) == NULL ||
            strncmp(text, "fe80:", 5) == 0) /* a link-local address needs an interface */
            continue;
        own_check(text);
    }
    freeifaddrs(list);
    /* Loopback is the exception: only the list of allowed blocks decides. */
    struct netguard *guard = guard_with("127.0.0.0/8");
    CU_ASSERT(allows(guard, "127.0.0.1"));
    netguard_free(guard);
}

static void test_only_the_standard_ports_are_allowed_unless_configured(void)
{
    struct netguard *guard = guard_with("");
    CU_ASSERT(allows_at(guard, "8.8.8.8", 443));
    CU_ASSERT_FALSE(allows_at(guard, "8.8.8.8", 80));
    CU_ASSERT_FALSE(allows_at(guard, "2606:4700::1", 22));
    netguard_free(guard);
    config_fresh();
    config.outgoing_allow_http = true;
    guard = guard_made();
    CU_ASSERT(allows_at(guard, "8.8.8.8", 80));
    CU_ASSERT_FALSE(allows_at(guard, "8.8.8.8", 25));
    netguard_free(guard);
    config_fresh();
    config.outgoing_allow_ports = "8443, 9000-9001";
    guard = guard_made();
    CU_ASSERT(allows_at(guard, "8.8.8.8", 8443) && allows_at(guard, "8.8.8.8", 9001));
    CU_ASSERT_FALSE(allows_at(guard, "8.8.8.8", 443) || allows_at(guard, "8.8.8.8", 9002));
    netguard_free(guard);
}

static void test_an_invalid_port_is_named(void)
{
    static const char *const bad[] = {"0", "65536", "http", "443-", "-443", "9000-8000", "443;80", "1-2-3"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct netguard *guard = NULL;
        config_fresh();
        config.outgoing_allow_ports = bad[i];
        CU_ASSERT_EQUAL(netguard_new(&context, &config, &guard), IW_CONFIG_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, "outgoing.allow_ports"));
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"public addresses pass", test_public_addresses_pass},
        {"every form of a private address is refused", test_every_form_of_a_private_address_is_refused},
        {"the allow list only allows its blocks", test_the_allow_list_only_allows_its_blocks},
        {"an invalid block is named", test_an_invalid_block_is_named},
        {"only global unicast and NAT64 are reachable", test_only_global_unicast_and_nat64_are_reachable},
        {"a metadata service at a public address is refused",
         test_a_metadata_service_at_a_public_address_is_refused},
        {"the most specific block applies", test_the_most_specific_block_applies},
        {"the machine's own addresses are refused", test_the_machines_own_addresses_are_refused},
        {"only the standard ports are allowed unless configured",
         test_only_the_standard_ports_are_allowed_unless_configured},
        {"an invalid port is named", test_an_invalid_port_is_named},
        CU_TEST_INFO_NULL,
    };
    arena = arena_new(0);
    int code = runner_run("netguard", tests);
    arena_free(arena);
    return code;
}
