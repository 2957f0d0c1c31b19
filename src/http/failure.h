/*
 * Errors as HTTP responses: the one table from enum iw_error to status, and the
 * one error body, in plain JSON or as a problem document (RFC 9457).
 */
#ifndef HTTP_FAILURE_H
#define HTTP_FAILURE_H

#include "http/request.h"

struct failure_status {
    enum iw_error error;
    unsigned status;
};

/* Returns the HTTP status of an error; 500 for internal errors. */
unsigned failure_status(enum iw_error error);

/* Replaces the prepared response by the context's error. For METHOD_NOT_ALLOWED, keeps the header Allow. */
void failure_render(struct request *request);

#endif
