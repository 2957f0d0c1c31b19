/* Serves the URI of a request. The first byte selects the method, the rest is REQUEST_URI. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http_harness.h"
#include "targets.h"

static const char *const methods[] = {
    "REQUEST_METHOD=GET",    "REQUEST_METHOD=HEAD",    "REQUEST_METHOD=POST", "REQUEST_METHOD=PUT",
    "REQUEST_METHOD=DELETE", "REQUEST_METHOD=OPTIONS", "REQUEST_METHOD=BREW",
};

int fuzz_path(const unsigned char *data, size_t size)
{
    if (size == 0)
        return 0;
    unsigned which = data[0] % (sizeof methods / sizeof methods[0]);
    char *uri = NULL;
    size_t length = strnlen((const char *)data + 1, size - 1);
    if (asprintf(&uri, "REQUEST_URI=%.*s", (int)length, (const char *)data + 1) < 0)
        return 0;
    const char *const parameters[] = {methods[which], uri, harness_authorization, NULL};
    harness_serve(parameters, "{}", 2);
    free(uri);
    return 0;
}
