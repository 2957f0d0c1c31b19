/*
 * Errors on the wire: the one table from enum iw_error to HTTP status, and the
 * one error body, as plain JSON or as RFC 9457.
 */
#ifndef HTTP_FAILURE_H
#define HTTP_FAILURE_H

#include "http/request.h"

/* The HTTP status of an error; 500 for those that a client has no business with. */
unsigned failure_status(enum iw_error error);

/*
 * Replaces what was prepared of the answer by the error that the context holds.
 * Headers that belong to it (Allow) are kept.
 */
void failure_render(struct request *request);

#endif
