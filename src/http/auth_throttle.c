#include "http/auth_throttle.h"

#include <stdbool.h>
#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

enum { slots = 256, address_size = 48 };

/* One address; another of the same slot takes its place, so that the table never fills. */
static struct throttled_address {
    char address[address_size];
    int64_t until_ms; /* monotonic: the window's end */
    unsigned tries;
} addresses[slots];

/* What is counted of an address: all of it, or the network of an IPv6 address that carries no IPv4 one. */
static const char *network_of(const char *address, char network[address_size])
{
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    uint8_t bytes[16];
    snprintf(network, address_size, "%s", address);
    if (inet_pton(AF_INET6, address, bytes) != 1 || memcmp(bytes, mapped, sizeof mapped) == 0)
        return network;
    memset(bytes + 8, 0, 8);
    inet_ntop(AF_INET6, bytes, network, address_size);
    return network;
}

/* FNV-1a (Fowler, Noll, Vo), folded to a slot. */
static struct throttled_address *slot_of(const char *address)
{
    uint32_t hash = 2166136261U;
    for (; *address != '\0'; address++)
        hash = (hash ^ (unsigned char)*address) * 16777619U;
    return &addresses[(hash ^ hash >> 16) % slots];
}

static bool is_live(const struct throttled_address *entry, const char *address)
{
    return entry->until_ms > clock_monotonic_ms() && strcmp(entry->address, address) == 0;
}

unsigned auth_throttle_wait_s(const char *address)
{
    char network[address_size];
    const struct throttled_address *entry = slot_of(network_of(address, network));
    if (!is_live(entry, network) || entry->tries < auth_throttle_tries_max)
        return 0;
    int64_t left_ms = entry->until_ms - clock_monotonic_ms();
    return left_ms <= 0 ? 1 : (unsigned)((left_ms + 999) / 1000);
}

void auth_throttle_note(const char *address)
{
    char network[address_size];
    struct throttled_address *entry = slot_of(network_of(address, network));
    if (!is_live(entry, network)) {
        memcpy(entry->address, network, sizeof network);
        entry->until_ms = clock_monotonic_ms() + auth_throttle_window_ms;
        entry->tries = 0;
    }
    entry->tries++;
}

void auth_throttle_forget(void)
{
    memset(addresses, 0, sizeof addresses);
}
