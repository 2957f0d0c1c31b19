/*
 * The scopes of API keys (enum key_scope).  The flags of a route name the scopes that it needs, so that only
 * a handler with an order in its body checks them.
 */
#ifndef HTTP_SCOPE_H
#define HTTP_SCOPE_H

#include "http/request.h"

/*
 * Checks the scopes of an authenticated request's key.  AUTH_SCOPE_MISSING; ORDER_NOT_FOUND if the type of
 * the order decides.
 */
enum iw_error scope_check(struct request *request) IW_MUST_USE;

/* The same for the type of an order that the body names.  AUTH_SCOPE_MISSING, ORDER_NOT_FOUND. */
enum iw_error scope_order_check(struct request *request, int64_t order_id) IW_MUST_USE;

#endif
