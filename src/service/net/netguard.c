#include "service/net/netguard.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

enum { blocks_max = 64, port_https = 443, port_http = 80, port_max = 65535, address_bits = 128 };

/* A block of addresses. IPv4 addresses are stored as ::ffff:a.b.c.d. */
struct address_block {
    uint8_t address[16];
    unsigned bits;
};

struct address_list {
    struct address_block blocks[blocks_max];
    unsigned count;
};

struct netguard {
    struct address_list reachable;  /* the only blocks that can contain public addresses */
    struct address_list unroutable; /* the parts of these blocks that are not public */
    struct address_list refused;    /* outgoing.refuse_addresses */
    struct address_list allowed;    /* outgoing.allow_addresses */
    bool is_own_refused;            /* outgoing.refuse_addresses has the word "own" */
    struct address_list loopback;
    struct netguard_ports ports; /* outgoing.allow_ports */
};

/*
 * All of IPv4, global unicast of IPv6 (RFC 4291, 2.5.4, as assigned by IANA) and NAT64
 * (RFC 6052).
 */
static const char *const reachable_blocks[] = {"0.0.0.0/0", "2000::/3", "64:ff9b::/96"};
static const char *const loopback_blocks[] = {"127.0.0.0/8", "::1/128"};

/* Not globally reachable according to the IANA registries, or multicast. */
static const char *const unroutable_blocks[] = {
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
    "2001::/23",       /* IETF protocol assignments, Teredo among them, RFC 2928 */
    "2001:db8::/32",   /* documentation, RFC 3849 */
    "3fff::/20",       /* documentation, RFC 9637 */
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

/* Returns the bits of the longest block that contains the address, plus one; 0 if there is none. */
static unsigned list_match(const struct address_list *list, const uint8_t address[16])
{
    unsigned longest = 0;
    for (unsigned i = 0; i < list->count; i++) {
        const uint8_t *block = list->blocks[i].address;
        unsigned bits = list->blocks[i].bits, whole = bits / 8, rest = bits % 8;
        if (bits >= longest && memcmp(block, address, whole) == 0 &&
            (rest == 0 || ((block[whole] ^ address[whole]) >> (8 - rest)) == 0))
            longest = bits + 1;
    }
    return longest;
}

/* Reads a table of this file. */
static void list_fill(struct address_list *list, const char *const *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!block_read(blocks[i], &list->blocks[list->count++]))
            abort(); /* an error in the table */
}

/* Reads a setting. The word "own" is permitted if is_own is not NULL. */
static bool list_read(struct context *context, struct address_list *list, const char *key, const char *text,
                      bool *is_own)
{
    char *rest = NULL, *copy = arena_text(context->arena, text);
    for (char *word = strtok_r(copy, " \t,", &rest); word != NULL; word = strtok_r(NULL, " \t,", &rest)) {
        if (is_own != NULL && strcmp(word, "own") == 0)
            *is_own = true;
        else if (list->count == blocks_max || !block_read(word, &list->blocks[list->count++])) {
            context_fail(context, IW_CONFIG_INVALID, "outgoing.%s: \"%s\" is not an address block.", key,
                         word);
            return false;
        }
    }
    return true;
}

/* ---- ports ---- */

/* Reads a word such as "443" or "8000-8099". */
static bool range_read(const char *word, size_t length, struct netguard_range *range)
{
    char text[16];
    int64_t first = 0, last = 0;
    if (length >= sizeof text)
        return false;
    memcpy(text, word, length);
    text[length] = '\0';
    char *dash = strchr(text, '-');
    if (dash != NULL)
        *dash = '\0';
    if (!text_integer(text, 1, port_max, &first))
        return false;
    if (!text_integer(dash != NULL ? dash + 1 : text, first, port_max, &last))
        return false;
    *range = (struct netguard_range){(uint16_t)first, (uint16_t)last};
    return true;
}

bool netguard_ports_read(const struct config *config, struct netguard_ports *ports)
{
    static const char separators[] = " \t,";
    const char *at = config->outgoing_allow_ports + strspn(config->outgoing_allow_ports, separators);
    *ports = (struct netguard_ports){.count = 0};
    for (; *at != '\0'; at += strspn(at, separators)) {
        size_t length = strcspn(at, separators);
        if (ports->count == netguard_ranges_max || !range_read(at, length, &ports->ranges[ports->count++]))
            return false;
        at += length;
    }
    if (ports->count > 0)
        return true;
    ports->ranges[ports->count++] = (struct netguard_range){port_https, port_https};
    if (config->outgoing_allow_http)
        ports->ranges[ports->count++] = (struct netguard_range){port_http, port_http};
    return true;
}

bool netguard_ports_have(const struct netguard_ports *ports, unsigned port)
{
    for (unsigned i = 0; i < ports->count; i++)
        if (port >= ports->ranges[i].first && port <= ports->ranges[i].last)
            return true;
    return false;
}

/* ---- the guard ---- */

enum iw_error netguard_new(struct context *context, const struct config *config, struct netguard **guard)
{
    struct netguard *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return context_fail(context, IW_NO_MEMORY, NULL);
    list_fill(&fresh->reachable, reachable_blocks, sizeof reachable_blocks / sizeof reachable_blocks[0]);
    list_fill(&fresh->unroutable, unroutable_blocks, sizeof unroutable_blocks / sizeof unroutable_blocks[0]);
    list_fill(&fresh->loopback, loopback_blocks, sizeof loopback_blocks / sizeof loopback_blocks[0]);
    if (!netguard_ports_read(config, &fresh->ports))
        context_fail(context, IW_CONFIG_INVALID,
                     "outgoing.allow_ports: \"%s\" is not a list of at most %d ports or ranges.",
                     config->outgoing_allow_ports, netguard_ranges_max);
    else if (list_read(context, &fresh->allowed, "allow_addresses", config->outgoing_allow_addresses, NULL) &&
             list_read(context, &fresh->refused, "refuse_addresses", config->outgoing_refuse_addresses,
                       &fresh->is_own_refused)) {
        *guard = fresh;
        return IW_OK;
    }
    netguard_free(fresh);
    return context->error;
}

void netguard_free(struct netguard *guard)
{
    free(guard);
}

/* Extracts the IPv4 address inside an IPv6 address. Returns false if there is none. */
static bool inner_ipv4(const uint8_t address[16], uint8_t inner[16])
{
    static const struct {
        uint8_t prefix[12];
        unsigned prefix_bytes;
        unsigned at;
    } forms[] = {
        {{0x00, 0x64, 0xFF, 0x9B}, 12, 12}, /* NAT64 64:ff9b::/96, RFC 6052 */
        {{0x20, 0x02}, 2, 2},               /* 6to4 2002::/16, RFC 3056 */
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (memcmp(address, forms[i].prefix, forms[i].prefix_bytes) == 0) {
            mapped_set(inner, address + forms[i].at);
            return true;
        }
    return false;
}

/* Writes an address in the kernel's form; IPv4-mapped addresses become IPv4. Returns the size. */
static socklen_t address_make(const uint8_t form[16], struct sockaddr_storage *address)
{
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    *address = (struct sockaddr_storage){.ss_family = AF_INET6};
    if (memcmp(form, mapped, sizeof mapped) == 0) {
        struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons(port_https)};
        memcpy(&ipv4.sin_addr, form + 12, 4);
        memcpy(address, &ipv4, sizeof ipv4);
        return sizeof ipv4;
    }
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons(port_https)};
    memcpy(&ipv6.sin6_addr, form, 16);
    memcpy(address, &ipv6, sizeof ipv6);
    return sizeof ipv6;
}

static bool sockaddr_form(const struct sockaddr *address, uint8_t form[16], unsigned *port)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in ipv4;
        memcpy(&ipv4, address, sizeof ipv4);
        mapped_set(form, (const uint8_t *)&ipv4.sin_addr.s_addr);
        *port = ntohs(ipv4.sin_port);
        return true;
    }
    if (address->sa_family != AF_INET6)
        return false;
    struct sockaddr_in6 ipv6;
    memcpy(&ipv6, address, sizeof ipv6);
    memcpy(form, ipv6.sin6_addr.s6_addr, 16);
    *port = ntohs(ipv6.sin6_port);
    return true;
}

/*
 * Returns true for an address of this machine, because packets to it would have the same address as their
 * source. Connecting a UDP socket sends nothing and only looks up the route. Unlike a list of addresses read
 * at the start, the result is current, and it needs no netlink socket.
 */
static bool is_own(const uint8_t form[16])
{
    struct sockaddr_storage address, source = {.ss_family = AF_UNSPEC};
    uint8_t source_form[16];
    unsigned port = 0;
    socklen_t size = address_make(form, &address), source_size = sizeof source;
    int probe = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_routed = probe >= 0 && connect(probe, (const struct sockaddr *)&address, size) == 0 &&
                     getsockname(probe, (struct sockaddr *)&source, &source_size) == 0;
    if (probe >= 0)
        close(probe);
    return is_routed && sockaddr_form((const struct sockaddr *)&source, source_form, &port) &&
           memcmp(source_form, form, 16) == 0;
}

static bool address_allowed(const struct netguard *guard, const uint8_t address[16])
{
    uint8_t inner[16];
    unsigned allowed = list_match(&guard->allowed, address);
    unsigned refused = list_match(&guard->refused, address);
    bool is_public =
        list_match(&guard->reachable, address) != 0 && list_match(&guard->unroutable, address) == 0;
    if (allowed < refused || (allowed == 0 && !is_public))
        return false;
    /* Loopback is refused unless it is in the list of allowed blocks; in that case the operator wants it. */
    if (guard->is_own_refused && allowed <= address_bits && list_match(&guard->loopback, address) == 0 &&
        is_own(address))
        return false;
    return allowed != 0 || !inner_ipv4(address, inner) || address_allowed(guard, inner);
}

bool netguard_allows(const struct netguard *guard, const struct sockaddr *address)
{
    uint8_t form[16];
    unsigned port = 0;
    return sockaddr_form(address, form, &port) && netguard_ports_have(&guard->ports, port) &&
           address_allowed(guard, form);
}
