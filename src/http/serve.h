/* One request from its parameters to its answer and its line in the log. */
#ifndef HTTP_SERVE_H
#define HTTP_SERVE_H

#include "http/route.h"

/*
 * Serves a request that request_init filled.  Always answers, unless the answer
 * was being streamed when it failed: response.is_broken says so, and the
 * connection must then be cut, not closed in order.
 */
void serve(struct request *request, const struct route *const *tables);

#endif
