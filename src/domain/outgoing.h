/* Which addresses of a client's we would fetch from or send to (contract 3 and 9), by their looks. */
#ifndef DOMAIN_OUTGOING_H
#define DOMAIN_OUTGOING_H

#include "base/config.h"

enum { outgoing_url_bytes_max = 2048 };

/* What is wrong with a URL, as a constant clause ("must be an https URL"); NULL: nothing. */
const char *outgoing_url_fault(const struct config *config, const char *url);

#endif
