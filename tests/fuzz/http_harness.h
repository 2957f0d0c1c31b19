/*
 * Serves a whole request with the API's tables, limiter, validation and rendering, and with a
 * database in memory. Shared by the targets of bodies, queries, paths and FastCGI parameters.
 */
#ifndef FUZZ_HTTP_HARNESS_H
#define FUZZ_HTTP_HARNESS_H

#include <stddef.h>

/* Return path and query of URLs that the harness has signed; static texts. */
const char *harness_upload_uri(void);
const char *harness_download_uri(void);

/* "HTTP_AUTHORIZATION=Bearer ..." with a key that exists in the database. */
extern const char harness_authorization[];

/*
 * Serves one request and checks the results. The response must be well-formed: status, headers
 * without control characters, JSON in the error or data format, never a 500. Every log line
 * must be one JSON object. Otherwise it aborts. Parameters are "NAME=value", terminated by
 * NULL. Returns the status.
 */
unsigned harness_serve(const char *const *parameters, const void *body, size_t size);

#endif
