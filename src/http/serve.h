/* Serves one request, from the parameters to the response and the line in the log. */
#ifndef HTTP_SERVE_H
#define HTTP_SERVE_H

#include "http/route.h"

/*
 * Serves a request that request_init filled: authentication, admission, handler,
 * response, log line, metrics.  If a streamed response fails, sets
 * response.is_broken; the caller must then abort the connection.
 */
void serve(struct request *request, const struct route *const *tables);

#endif
