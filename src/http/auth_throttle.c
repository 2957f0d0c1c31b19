#include "http/auth_throttle.h"

#include <stdbool.h>
#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

enum { slots = 256, address_size = 48 };

/* One address. Another address with the same slot replaces it, so that the table cannot fill up. */
static struct throttled_address {
    char address[address_size];
    int64_t until_ms; /* monotonic; end of the window */
    unsigned tries;
} addresses[slots];

/*
 * Returns the part of an address that is counted: the /64 of an IPv6 address, or the whole address if it is
 * or embeds an IPv4 address.
 */
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

unsigned auth_throttle_count(const char *address)
{
    char network[address_size];
    struct throttled_address *slot = slot_of(network_of(address, network));
    if (slot->until_ms <= clock_monotonic_ms() || strcmp(slot->address, network) != 0) {
        memcpy(slot->address, network, sizeof network);
        slot->until_ms = clock_monotonic_ms() + auth_throttle_window_ms;
        slot->tries = 0;
    }
    if (slot->tries < auth_throttle_tries_max) {
        slot->tries++;
        return 0;
    }
    int64_t left_ms = slot->until_ms - clock_monotonic_ms();
    return left_ms <= 0 ? 1 : (unsigned)((left_ms + 999) / 1000);
}

void auth_throttle_forget(void)
{
    memset(addresses, 0, sizeof addresses);
}
