#include "domain/webhooks/outgoing.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "service/net/fetch.h"

static_assert((int)outgoing_url_bytes_max == (int)fetch_url_bytes_max, "one limit");
static_assert((int)outgoing_headers_max + 4 <= (int)fetch_headers_max, "room for the service's own");

const char *outgoing_url_fault(const struct config *config, const char *url)
{
    const char *why = NULL;
    return fetch_url_is_valid(url, config, &why) ? NULL : why;
}

/* A name that ends with "-" is a prefix. */
static const char *const header_names[] = {"Content-Type", "Cache-Control", "Content-Disposition",
                                           "x-amz-",       "x-ms-",         "x-goog-"};

static const char token_characters[] =
    "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

bool outgoing_header_name_is_token(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && length <= outgoing_header_name_bytes_max && strspn(name, token_characters) == length;
}

static bool is_name_allowed(const char *name)
{
    for (size_t i = 0; i < sizeof header_names / sizeof header_names[0]; i++) {
        size_t length = strlen(header_names[i]);
        bool is_prefix = header_names[i][length - 1] == '-';
        if (is_prefix ? strncasecmp(name, header_names[i], length) == 0 && name[length] != '\0'
                      : text_equal_nocase(name, header_names[i]))
            return true;
    }
    return false;
}

const char *outgoing_header_fault(const char *name, const char *value, size_t length)
{
    if (!outgoing_header_name_is_token(name) || !is_name_allowed(name))
        return "is not sent; allowed are Content-Type, Cache-Control, Content-Disposition and names that "
               "begin with x-amz-, x-ms- or x-goog-";
    if (length == 0)
        return "must not be empty";
    for (size_t i = 0; i < length; i++)
        if (value[i] < ' ' || value[i] > '~')
            return "must be printable ASCII on one line";
    if (value[0] == ' ' || value[length - 1] == ' ')
        return "must not begin or end with a blank";
    return NULL;
}
