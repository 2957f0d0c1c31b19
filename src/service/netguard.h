/*
 * Which addresses we may connect to on a client's behalf.
 *
 * The check is on the address that a socket is about to be connected to, after
 * DNS and after every redirect, so that no spelling of a host name and no
 * answer of a name server gets around it.  Addresses that carry an IPv4 address
 * inside (mapped, compatible, NAT64, 6to4) are judged by that one as well.
 *
 * Source of the table: the IANA special-purpose address registries for IPv4 and
 * IPv6 (RFC 6890 and its updates); everything not globally reachable is refused,
 * and so is multicast.  Knows neither libcurl nor the database.
 */
#ifndef SERVICE_NETGUARD_H
#define SERVICE_NETGUARD_H

#include <stdbool.h>

#include <sys/socket.h>

#include <imgward/context.h>

struct netguard;

/*
 * A guard that lets through the public addresses and the blocks named in
 * allowed ("127.0.0.0/8 ::1/128 10.1.2.3", separated by blanks; "" for none).
 * CONFIG_INVALID names the block that is none.  The caller owns it.
 */
enum iw_error netguard_new(struct context *context, const char *allowed, struct netguard **guard) IW_MUST_USE;
void netguard_free(struct netguard *guard);

/* True when we may connect there.  Anything but IPv4 and IPv6 is refused. */
bool netguard_allows(const struct netguard *guard, const struct sockaddr *address);

#endif
