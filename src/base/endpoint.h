/*
 * Lists of servers in the configuration: "a, b:3307, [2001:db8::1]:3306, /run/server.sock".
 */
#ifndef BASE_ENDPOINT_H
#define BASE_ENDPOINT_H

#include <stdbool.h>

enum { endpoints_max = 16, endpoint_host_size = 256 };

struct endpoint {
    char host[endpoint_host_size]; /* name or address without brackets; a Unix socket begins with a slash */
    int port;                      /* not used for a socket */
};

/*
 * Parses a list that is separated by commas or spaces. An item without a port gets the given port. Returns
 * the number of items, or -1 if an item is invalid or there are more than endpoints_max items.
 */
int endpoints_read(const char *list, int port, struct endpoint endpoints[endpoints_max]);

bool endpoint_is_socket(const struct endpoint *endpoint);

#endif
