/*
 * A whole request through the API's own tables, limiter, validation and
 * rendering, with a database that is made of memory: what the targets of bodies,
 * queries, paths and FastCGI parameters have in common.
 */
#ifndef FUZZ_HTTP_HARNESS_H
#define FUZZ_HTTP_HARNESS_H

#include <stddef.h>

/* Path and query of URLs that the harness' own keys signed; static texts. */
const char *harness_upload_uri(void);
const char *harness_download_uri(void);

/* "HTTP_AUTHORIZATION=Bearer ..." with a key that the database knows. */
extern const char harness_authorization[];

/*
 * Serves one request and looks at all that comes of it: the answer is one
 * well-formed answer (status, headers without control characters, JSON of the
 * error or data shape), never a 500; every line that was logged is one JSON
 * object.  Ends the program otherwise.  Parameters are "NAME=value", closed by
 * NULL.  The status.
 */
unsigned harness_serve(const char *const *parameters, const void *body, size_t size);

#endif
