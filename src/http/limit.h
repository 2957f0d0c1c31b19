/*
 * The limiter on the way of a request: asked once, its answer read once, its
 * three numbers in every authenticated answer.  With Redis away everybody is let
 * through, and the numbers are those of a fresh window.
 */
#ifndef HTTP_LIMIT_H
#define HTTP_LIMIT_H

#include "http/request.h"
#include "service/ratelimit.h"

/* Sends the question; reads come back to the answer after their SQL.  Does nothing when it was asked. */
void limit_send(struct request *request);

/*
 * Asks for the limit and for an idempotency lock in one round trip and waits for
 * both.  lock NULL asks for the limit alone.
 */
enum iw_error limit_admit(struct request *request, struct ratelimit_lock *lock) IW_MUST_USE;

/* Waits for the answer to what was sent.  RATE_LIMIT_EXCEEDED; IW_OK when nothing was asked. */
enum iw_error limit_receive(struct request *request) IW_MUST_USE;

#endif
