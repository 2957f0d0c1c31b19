/*
 * Sends a request body through the validation of every endpoint with a body. The first byte
 * selects the endpoint, the rest is the body.
 */
#include <stdlib.h>

#include "http_harness.h"
#include "targets.h"

static const struct {
    const char *method;
    const char *uri;
} endpoints[] = {
    {"REQUEST_METHOD=POST", "REQUEST_URI=/api/v2/orders/anti-ai"},
    {"REQUEST_METHOD=POST", "REQUEST_URI=/api/v2/orders/anti-ai/with-urls"},
    {"REQUEST_METHOD=POST", "REQUEST_URI=/api/v2/orders/anti-ai/confirm"},
    {"REQUEST_METHOD=POST", "REQUEST_URI=/api/v2/orders/wtr-embed"},
    {"REQUEST_METHOD=POST", "REQUEST_URI=/api/v2/orders/wtr-extract"},
    {"REQUEST_METHOD=POST", "REQUEST_URI=/api/v2/orders/webhooks"},
    {"REQUEST_METHOD=PUT", "REQUEST_URI=/api/v2/orders/webhooks/12"},
    {"REQUEST_METHOD=POST", "REQUEST_URI=/api/v2/orders/382515091307376618/refresh-urls"},
};

int fuzz_body(const unsigned char *data, size_t size)
{
    if (size == 0)
        return 0;
    unsigned which = data[0] % (sizeof endpoints / sizeof endpoints[0]);
    const char *const parameters[] = {endpoints[which].method, endpoints[which].uri, harness_authorization,
                                      "CONTENT_TYPE=application/json", NULL};
    unsigned status = harness_serve(parameters, data + 1, size - 1);
    /* The path, the method and the content type are valid. */
    if (status == 405 || status == 401 || status == 415)
        abort();
    return 0;
}
