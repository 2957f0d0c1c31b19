#include "domain/outgoing.h"

#include <assert.h>

#include "service/fetch.h"

static_assert((int)outgoing_url_bytes_max == (int)fetch_url_bytes_max, "one limit");

const char *outgoing_url_fault(const struct config *config, const char *url)
{
    const char *why = NULL;
    return fetch_url_is_valid(url, config->outgoing_allow_http, &why) ? NULL : why;
}
