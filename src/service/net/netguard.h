/*
 * The addresses and ports that the service may connect to for a client.
 *
 * The check applies to the address that a socket connects to, after DNS and after every redirect. So no
 * spelling of a host name and no DNS response can bypass it. An IPv6 address with an IPv4 address inside
 * (mapped, NAT64, 6to4) is checked as both.
 *
 * Source of the tables: the IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890 and its
 * updates). Blocks that are not globally reachable are refused, and multicast. In IPv6, only 2000::/3 and
 * NAT64 are reachable. This module depends neither on libcurl nor on the database.
 *
 * outgoing.allow_addresses and outgoing.refuse_addresses change that. The most specific block applies;
 * between equal blocks, the allowed block. The word "own" in refuse_addresses stands for each address of this
 * machine, loopback excepted.
 */
#ifndef SERVICE_NET_NETGUARD_H
#define SERVICE_NET_NETGUARD_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/socket.h>

#include "base/config.h"
#include "base/context.h"

enum { netguard_ranges_max = 32 };

struct netguard;

struct netguard_range {
    uint16_t first;
    uint16_t last;
};

/* The ports that a URL may have. */
struct netguard_ports {
    struct netguard_range ranges[netguard_ranges_max + 1];
    unsigned count;
};

/*
 * Reads outgoing.allow_ports; if it is empty, 443, and 80 with outgoing.allow_http. Returns false if it is
 * invalid.
 */
bool netguard_ports_read(const struct config *config, struct netguard_ports *ports);

bool netguard_ports_have(const struct netguard_ports *ports, unsigned port);

/*
 * Creates a guard with the keys allow_addresses, refuse_addresses and allow_ports of [outgoing].
 * CONFIG_INVALID names an invalid block or port. The caller owns the guard.
 */
enum iw_error netguard_new(struct context *context, const struct config *config,
                           struct netguard **guard) IW_MUST_USE;
void netguard_free(struct netguard *guard);

/*
 * Returns true if the service may connect to the address and port. Families other than IPv4 and IPv6 are
 * refused.
 */
bool netguard_allows(const struct netguard *guard, const struct sockaddr *address);

#endif
