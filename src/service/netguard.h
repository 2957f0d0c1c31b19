/*
 * The addresses that the service may connect to for a client.
 *
 * The check applies to the address that a socket connects to, after DNS and after every
 * redirect. So spellings of a host name and DNS answers cannot bypass it. An IPv6 address with
 * an IPv4 address inside (mapped, compatible, NAT64, 6to4) is checked as both.
 *
 * Source of the table: the IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890
 * and its updates). Blocks that are not globally reachable are refused, and multicast. Knows
 * neither libcurl nor the database.
 */
#ifndef SERVICE_NETGUARD_H
#define SERVICE_NETGUARD_H

#include <stdbool.h>

#include <sys/socket.h>

#include <imgward/context.h>

struct netguard;

/*
 * Creates a guard that allows public addresses and the blocks in allowed: "127.0.0.0/8 ::1/128
 * 10.1.2.3", separated by blanks; "" for none. CONFIG_INVALID names an invalid block. The
 * caller owns the guard.
 */
enum iw_error netguard_new(struct context *context, const char *allowed, struct netguard **guard) IW_MUST_USE;
void netguard_free(struct netguard *guard);

/* True when the service may connect to the address. Families other than IPv4 and IPv6 are refused. */
bool netguard_allows(const struct netguard *guard, const struct sockaddr *address);

#endif
