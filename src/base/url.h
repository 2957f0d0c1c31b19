/*
 * The parts of an absolute URL with a host (RFC 3986, 3), unchanged.
 *
 * This parser is stricter than those of libraries, which repair "https:///host" and "https:/host" and decode
 * percent codes in a host. So host and path of an accepted URL are unambiguous.
 */
#ifndef BASE_URL_H
#define BASE_URL_H

#include <stdbool.h>
#include <stddef.h>

/* Borrows from the text; the length is 0 if the part is absent. */
struct url_part {
    const char *text;
    size_t length;
};

struct url {
    struct url_part scheme;
    struct url_part user; /* with the password */
    struct url_part host; /* a name or an address; IPv6 includes the brackets */
    struct url_part port; /* digits */
    const char *rest;     /* path, query and fragment */
};

/*
 * Returns false unless text is "scheme://[user@]host[:port]" followed by an optional path, query or fragment.
 * The host is a name of letters, digits, "-", "_" and ".", without empty labels and with at most 253 bytes
 * (RFC 1035, 2.3.4), or an address.
 */
bool url_read(const char *text, struct url *url);

/* Compares the part with a text; ignores the case of letters. */
bool url_part_is(struct url_part part, const char *text);

#endif
