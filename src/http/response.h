/*
 * The answer to a request: status, headers, a body that is rendered whole or
 * streamed.  Nothing leaves before response_send or response_stream_begin.
 */
#ifndef HTTP_RESPONSE_H
#define HTTP_RESPONSE_H

#include "http/request.h"

void response_init(struct request *request);

/* Forgets body, headers and status, for an answer that turned into a failure. */
void response_clear(struct request *request);

/* 200 unless a handler says otherwise. */
void response_status(struct request *request, unsigned status);

/*
 * Adds a header.  Content-Type given here replaces application/json,
 * Cache-Control replaces no-store.  Control characters in the value
 * become blanks, so a value can never start a header.
 */
void response_header(struct request *request, const char *name, const char *value);
void response_header_printf(struct request *request, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a header that stays when the answer turns into a failure (CORS). */
void response_header_always(struct request *request, const char *name, const char *value);

/*
 * Begins {"data": ...}: the handler renders one value under the key "data" (and
 * more members if it likes); response_send closes the object.
 */
struct render *response_data(struct request *request);

/*
 * Lets the web server send a file: X-Accel-Redirect to an internal location,
 * with an empty body.  The file must exist (checked by the account).
 */
void response_redirect_internally(struct request *request, const char *location);

/* Sends status, headers and body; HEAD sends no body. */
void response_send(struct request *request);

/*
 * Sends status and headers; the body follows in pieces.  RATE_LIMIT_EXCEEDED
 * when the limiter, asked earlier, says no: nothing is sent then.
 */
enum iw_error response_stream_begin(struct request *request) IW_MUST_USE;

/* Sends what was rendered so far and empties the body.  False when the client is gone. */
bool response_stream_flush(struct request *request);

#endif
