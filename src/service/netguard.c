#include "service/netguard.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { blocks_max = 64 };

/* A block of addresses. IPv4 addresses are stored as ::ffff:a.b.c.d. */
struct address_block {
    uint8_t address[16];
    unsigned bits;
};

struct netguard {
    struct address_block refused[blocks_max];
    unsigned refused_count;
    struct address_block allowed[blocks_max];
    unsigned allowed_count;
};

/* Not globally reachable according to the IANA registries, or multicast. */
static const char *const refused_blocks[] = {
    "0.0.0.0/8",       /* this network, RFC 791 */
    "10.0.0.0/8",      /* private use, RFC 1918 */
    "100.64.0.0/10",   /* shared address space, RFC 6598 */
    "127.0.0.0/8",     /* loopback, RFC 1122 */
    "169.254.0.0/16",  /* link local and cloud metadata, RFC 3927 */
    "172.16.0.0/12",   /* private use, RFC 1918 */
    "192.0.0.0/24",    /* IETF protocol assignments, RFC 6890 */
    "192.0.2.0/24",    /* documentation, RFC 5737 */
    "192.88.99.0/24",  /* 6to4 relay anycast, RFC 7526 */
    "192.168.0.0/16",  /* private use, RFC 1918 */
    "198.18.0.0/15",   /* benchmarking, RFC 2544 */
    "198.51.100.0/24", /* documentation, RFC 5737 */
    "203.0.113.0/24",  /* documentation, RFC 5737 */
    "224.0.0.0/4",     /* multicast, RFC 5771 */
    "240.0.0.0/4",     /* reserved and broadcast, RFC 1112 */
    "::/96",           /* unspecified, loopback, IPv4-compatible, RFC 4291 */
    "::ffff:0:0:0/96", /* IPv4-translated, RFC 2765 */
    "64:ff9b:1::/48",  /* local NAT64, RFC 8215 */
    "100::/64",        /* discard, RFC 6666 */
    "2001::/23",       /* IETF protocol assignments, Teredo among them, RFC 2928 */
    "2001:db8::/32",   /* documentation, RFC 3849 */
    "3fff::/20",       /* documentation, RFC 9637 */
    "5f00::/16",       /* segment routing, RFC 9602 */
    "fc00::/7",        /* unique local, RFC 4193 */
    "fe80::/10",       /* link local, RFC 4291 */
    "fec0::/10",       /* site local, RFC 3879 */
    "ff00::/8",        /* multicast, RFC 4291 */
};

static void mapped_set(uint8_t address[16], const uint8_t ipv4[4])
{
    memset(address, 0, 10);
    memset(address + 10, 0xFF, 2);
    memcpy(address + 12, ipv4, 4);
}

/* Reads "address" or "address/bits". */
static bool block_read(const char *text, struct address_block *block)
{
    char host[64];
    uint8_t ipv4[4];
    const char *slash = strchr(text, '/');
    size_t length = slash != NULL ? (size_t)(slash - text) : strlen(text);
    int64_t bits = -1;
    if (length >= sizeof host)
        return false;
    memcpy(host, text, length);
    host[length] = '\0';
    bool is_ipv4 = inet_pton(AF_INET, host, ipv4) == 1;
    if (is_ipv4)
        mapped_set(block->address, ipv4);
    else if (inet_pton(AF_INET6, host, block->address) != 1)
        return false;
    int64_t most = is_ipv4 ? 32 : 128;
    if (slash == NULL)
        bits = most;
    else if (!text_integer(slash + 1, 0, most, &bits))
        return false;
    block->bits = (unsigned)bits + (is_ipv4 ? 96 : 0);
    return true;
}

static bool blocks_hold(const struct address_block *blocks, unsigned count, const uint8_t address[16])
{
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *block = blocks[i].address;
        unsigned whole = blocks[i].bits / 8, rest = blocks[i].bits % 8;
        if (memcmp(block, address, whole) == 0 &&
            (rest == 0 || ((block[whole] ^ address[whole]) >> (8 - rest)) == 0))
            return true;
    }
    return false;
}

static bool allowed_read(struct context *context, struct netguard *guard, const char *allowed)
{
    char *rest = NULL, *copy = arena_text(context->arena, allowed);
    for (char *word = strtok_r(copy, " \t,", &rest); word != NULL; word = strtok_r(NULL, " \t,", &rest)) {
        if (guard->allowed_count < blocks_max && block_read(word, &guard->allowed[guard->allowed_count++]))
            continue;
        context_fail(context, IW_CONFIG_INVALID, "outgoing.allow_addresses: \"%s\" is not an address block.",
                     word);
        return false;
    }
    return true;
}

enum iw_error netguard_new(struct context *context, const char *allowed, struct netguard **guard)
{
    struct netguard *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return context_fail(context, IW_NO_MEMORY, NULL);
    for (size_t i = 0; i < sizeof refused_blocks / sizeof refused_blocks[0]; i++)
        if (!block_read(refused_blocks[i], &fresh->refused[fresh->refused_count++]))
            abort(); /* an error in the table */
    if (!allowed_read(context, fresh, allowed)) {
        netguard_free(fresh);
        return context->error;
    }
    *guard = fresh;
    return IW_OK;
}

void netguard_free(struct netguard *guard)
{
    free(guard);
}

/* Extracts the IPv4 address inside an IPv6 address; false when there is none. */
static bool inner_ipv4(const uint8_t address[16], uint8_t inner[16])
{
    static const struct {
        uint8_t prefix[12];
        unsigned prefix_bytes;
        unsigned at;
    } forms[] = {
        {{0x00, 0x64, 0xFF, 0x9B}, 12, 12}, /* NAT64 64:ff9b::/96, RFC 6052 */
        {{0x20, 0x02}, 2, 2},               /* 6to4 2002::/16, RFC 3056 */
        {{0}, 12, 12},                      /* IPv4-compatible ::/96, RFC 4291 */
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (memcmp(address, forms[i].prefix, forms[i].prefix_bytes) == 0) {
            mapped_set(inner, address + forms[i].at);
            return true;
        }
    return false;
}

static bool address_allowed(const struct netguard *guard, const uint8_t address[16])
{
    uint8_t inner[16];
    if (blocks_hold(guard->allowed, guard->allowed_count, address))
        return true;
    if (blocks_hold(guard->refused, guard->refused_count, address))
        return false;
    return !inner_ipv4(address, inner) || address_allowed(guard, inner);
}

bool netguard_allows(const struct netguard *guard, const struct sockaddr *address)
{
    uint8_t form[16];
    if (address->sa_family == AF_INET) {
        struct sockaddr_in ipv4;
        memcpy(&ipv4, address, sizeof ipv4);
        mapped_set(form, (const uint8_t *)&ipv4.sin_addr.s_addr);
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 ipv6;
        memcpy(&ipv6, address, sizeof ipv6);
        memcpy(form, ipv6.sin6_addr.s6_addr, sizeof form);
    } else {
        return false;
    }
    return address_allowed(guard, form);
}
