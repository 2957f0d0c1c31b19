/*
 * Syntax rules for clients' URLs that the service fetches from or sends to
 * (contract 3 and 9).  Rules for the headers of output targets (contract 3.1).
 */
#ifndef DOMAIN_WEBHOOKS_OUTGOING_H
#define DOMAIN_WEBHOOKS_OUTGOING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/config.h"

enum {
    outgoing_url_bytes_max = 2048,
    outgoing_headers_max = 20, /* a signed upload with encryption, retention and tags has about ten */
    outgoing_header_name_bytes_max = 128,
    outgoing_headers_bytes_max = 8192 /* Amazon S3's limit for all headers of a PUT */
};

/* The fault of a URL as a constant clause ("must be an https URL"); NULL if there is none. */
const char *outgoing_url_fault(const struct config *config, const char *url);

/* True for an HTTP header name (a token, RFC 9110, 5.6.2) within the length limit. */
bool outgoing_header_name_is_token(const char *name);

/*
 * The fault of a header for an output target, as a constant clause; NULL if there is none.
 * Only a few names are allowed, so that no header changes the framing of the
 * request or carries credentials of the service.  Values are printable ASCII.
 */
const char *outgoing_header_fault(const char *name, const char *value, size_t length);

#endif
