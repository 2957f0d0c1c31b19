/*
 * Sends a query string to every endpoint that reads a query. The first byte selects the endpoint,
 * the rest is the query.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http_harness.h"
#include "targets.h"

static const char *const paths[] = {
    "/api/v2/orders",
    "/api/v2/orders/stats/recent",
    "/api/v2/orders/webhooks",
    "/api/v2/orders/webhooks/12/events",
    "/api/v2/orders/382515091307376618",
};

int fuzz_query(const unsigned char *data, size_t size)
{
    if (size == 0)
        return 0;
    unsigned which = data[0] % (sizeof paths / sizeof paths[0]);
    char *uri = NULL;
    size_t length = strnlen((const char *)data + 1, size - 1);
    if (asprintf(&uri, "REQUEST_URI=%s?%.*s", paths[which], (int)length, (const char *)data + 1) < 0)
        return 0;
    const char *const parameters[] = {"REQUEST_METHOD=GET", uri, harness_authorization, NULL};
    unsigned status = harness_serve(parameters, NULL, 0);
    free(uri);
    if (status != 200 && status != 400 && status != 404)
        abort();
    return 0;
}
