/*
 * The response to a request: status, headers, and a body that is either rendered completely or streamed.
 * Nothing is sent before response_send or response_stream_begin.
 */
#ifndef HTTP_RESPONSE_H
#define HTTP_RESPONSE_H

#include "http/request.h"

void response_init(struct request *request);

/* Discards body, headers and status, before an error response. */
void response_clear(struct request *request);

/* Sets the status; the default is 200. */
void response_status(struct request *request, unsigned status);

/*
 * Adds a header.  Content-Type replaces the default application/json,
 * Cache-Control the default no-store.  Control characters in the value become
 * blanks, so that a value cannot start another header.
 */
void response_header(struct request *request, const char *name, const char *value);
void response_header_printf(struct request *request, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a header that an error response keeps (CORS). */
void response_header_always(struct request *request, const char *name, const char *value);

/*
 * Opens the object of the body. The handler renders the members, usually a single member "data";
 * response_send closes the object.
 */
struct render *response_data(struct request *request);

/*
 * Makes the web server send a file, by X-Accel-Redirect to an internal location and an empty body. The caller
 * has checked that the file exists.
 */
void response_redirect_internally(struct request *request, const char *location);

/* Sends status, headers and body; no body for HEAD. */
void response_send(struct request *request);

/*
 * Waits for the admission, then sends status and headers; the body follows in pieces. RATE_LIMIT_EXCEEDED,
 * before anything is sent, if the request is refused.
 */
enum iw_error response_stream_begin(struct request *request) IW_MUST_USE;

/* Sends the rendered part of the body and clears it.  False if the client disconnected. */
bool response_stream_flush(struct request *request);

#endif
