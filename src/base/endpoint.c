#include "base/endpoint.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const char separators[] = ", \t";

bool endpoint_is_socket(const struct endpoint *endpoint)
{
    return endpoint->host[0] == '/';
}

/* Splits "host:port" and "[address]:port"; an IPv6 address without brackets has no port. */
static bool endpoint_read(char *item, int port, struct endpoint *endpoint)
{
    char *host = item, *colon = strrchr(item, ':');
    int64_t number = port;
    if (item[0] == '[') {
        char *end = strchr(item, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':'))
            return false;
        colon = end[1] == ':' ? end + 1 : NULL;
        *end = '\0';
        host = item + 1;
    } else if (item[0] == '/' || (colon != NULL && strchr(item, ':') != colon)) {
        colon = NULL;
    }
    if (colon != NULL && !text_integer(colon + 1, 1, 65535, &number))
        return false;
    if (colon != NULL)
        *colon = '\0';
    endpoint->port = (int)number;
    snprintf(endpoint->host, sizeof endpoint->host, "%s", host);
    return host[0] != '\0';
}

int endpoints_read(const char *list, int port, struct endpoint endpoints[endpoints_max])
{
    int count = 0;
    for (const char *at = list + strspn(list, separators); *at != '\0'; at += strspn(at, separators)) {
        char item[endpoint_host_size];
        size_t length = strcspn(at, separators);
        if (length >= sizeof item || count == endpoints_max)
            return -1;
        memcpy(item, at, length);
        item[length] = '\0';
        if (!endpoint_read(item, port, &endpoints[count++]))
            return -1;
        at += length;
    }
    return count;
}
