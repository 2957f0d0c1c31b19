#include "base/url.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

static const char letters_digits[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
static const char name_marks[] = "-_";
enum { label_bytes_max = 63, name_bytes_max = 253, port_digits_max = 5 };

static bool is_of(struct url_part part, const char *more)
{
    for (size_t i = 0; i < part.length; i++)
        if (part.text[i] == '\0' ||
            (strchr(letters_digits, part.text[i]) == NULL && strchr(more, part.text[i]) == NULL))
            return false;
    return true;
}

/* A dot at the end stands for the root of the DNS. */
static bool is_name(struct url_part host)
{
    if (host.length > 0 && host.text[host.length - 1] == '.')
        host.length--;
    if (host.length == 0 || host.length > name_bytes_max)
        return false;
    for (const char *at = host.text, *end = host.text + host.length; at <= end;) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        struct url_part label = {at, (size_t)((dot != NULL ? dot : end) - at)};
        if (label.length == 0 || label.length > label_bytes_max || !is_of(label, name_marks) ||
            at[0] == '-' || at[label.length - 1] == '-')
            return false;
        at += label.length + 1;
    }
    return true;
}

static bool is_bracketed(struct url_part host)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (host.length < 2 || host.length - 2 >= sizeof text || host.text[host.length - 1] != ']')
        return false;
    memcpy(text, host.text + 1, host.length - 2);
    text[host.length - 2] = '\0';
    return inet_pton(AF_INET6, text, &address) == 1;
}

/* Splits "host:port". */
static bool host_read(struct url_part both, struct url *url)
{
    const char *bracket = both.length > 0 && both.text[0] == '[' ? memchr(both.text, ']', both.length) : NULL;
    size_t skipped = bracket != NULL ? (size_t)(bracket - both.text) : 0;
    const char *colon = memchr(both.text + skipped, ':', both.length - skipped);
    url->host = (struct url_part){both.text, colon != NULL ? (size_t)(colon - both.text) : both.length};
    if (colon != NULL)
        url->port = (struct url_part){colon + 1, both.length - url->host.length - 1};
    if (url->port.length > port_digits_max || strspn(url->port.text, "0123456789") < url->port.length)
        return false;
    return bracket != NULL ? is_bracketed(url->host) : is_name(url->host);
}

bool url_read(const char *text, struct url *url)
{
    struct url_part scheme = {text, strcspn(text, ":/?#")};
    *url = (struct url){.scheme = scheme, .user = {"", 0}, .port = {"", 0}};
    if (scheme.length == 0 || !is_of(scheme, "+-.") || strncmp(text + scheme.length, "://", 3) != 0)
        return false;
    struct url_part authority = {text + scheme.length + 3, strcspn(text + scheme.length + 3, "/?#")};
    url->rest = authority.text + authority.length;
    const char *at = memrchr(authority.text, '@', authority.length);
    if (at != NULL) {
        url->user = (struct url_part){authority.text, (size_t)(at - authority.text)};
        authority = (struct url_part){at + 1, (size_t)(url->rest - at - 1)};
    }
    return host_read(authority, url);
}

bool url_part_is(struct url_part part, const char *text)
{
    return strlen(text) == part.length && strncasecmp(part.text, text, part.length) == 0;
}
