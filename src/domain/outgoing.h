/*
 * Which addresses of a client's we would fetch from or send to (contract 3 and 9), by their looks, and which
 * headers are sent along to an output target (contract 3.1).
 */
#ifndef DOMAIN_OUTGOING_H
#define DOMAIN_OUTGOING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/config.h"

enum {
    outgoing_url_bytes_max = 2048,
    outgoing_headers_max = 20, /* a signed upload with encryption, retention and tags has about ten */
    outgoing_header_name_bytes_max = 128,
    outgoing_headers_bytes_max = 8192 /* Amazon S3's limit for all headers of a PUT */
};

/* What is wrong with a URL, as a constant clause ("must be an https URL"); NULL: nothing. */
const char *outgoing_url_fault(const struct config *config, const char *url);

/* True for a name of HTTP's characters (a token of RFC 9110, 5.6.2) of a bounded length. */
bool outgoing_header_name_is_token(const char *name);

/*
 * The fault of a header for an output target, as a constant clause; NULL: none.  Few names are sent,
 * so that no header changes how the request is read or speaks for the service; values are printable ASCII.
 */
const char *outgoing_header_fault(const char *name, const char *value, size_t length);

#endif
