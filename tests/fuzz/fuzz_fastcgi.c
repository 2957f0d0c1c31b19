/*
 * Serves a request: FastCGI parameters, one per line, then an empty line and the body. In REQUEST_URI,
 * "@in" and "@out" stand for signed URLs, so that the fuzzer reaches the code after verification.
 */
#include <stdlib.h>
#include <string.h>

#include "http_harness.h"
#include "targets.h"

enum { parameters_max = 64, uri_room = 512 };

static const char uri_upload[] = "REQUEST_URI=@in";
static const char uri_download[] = "REQUEST_URI=@out";

static char *uri_signed(const char *path)
{
    char *parameter = malloc(uri_room);
    if (parameter == NULL)
        abort();
    strcpy(parameter, "REQUEST_URI=");
    strncat(parameter, path, uri_room - sizeof "REQUEST_URI=");
    return parameter;
}

/* Each parameter has a separate buffer, so that a sanitizer detects reads past the end. */
static char *parameter_make(const char *line, size_t length)
{
    if (length == sizeof uri_upload - 1 && memcmp(line, uri_upload, length) == 0)
        return uri_signed(harness_upload_uri());
    if (length == sizeof uri_download - 1 && memcmp(line, uri_download, length) == 0)
        return uri_signed(harness_download_uri());
    return strndup(line, length);
}

int fuzz_fastcgi(const unsigned char *data, size_t size)
{
    char *owned[parameters_max + 1] = {NULL};
    const char *parameters[parameters_max + 1];
    unsigned count = 0;
    const char *at = (const char *)data, *end = at + size;
    while (at < end && count < parameters_max) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((line_end != NULL ? line_end : end) - at);
        if (length > 0)
            owned[count++] = parameter_make(at, length);
        at = line_end != NULL ? line_end + 1 : end;
        if (length == 0)
            break;
    }
    memcpy(parameters, owned, sizeof parameters);
    harness_serve(parameters, at, (size_t)(end - at));
    for (unsigned i = 0; i < count; i++)
        free(owned[i]);
    return 0;
}
