/*
 * The scopes of API keys (enum key_scope).  The flags of a route name the scopes that it needs, so that no
 * handler checks them.
 */
#ifndef HTTP_SCOPE_H
#define HTTP_SCOPE_H

#include "http/request.h"

/*
 * Checks the scopes of an authenticated request's key.  AUTH_SCOPE_MISSING; ORDER_NOT_FOUND if the type of
 * the order decides.
 */
enum iw_error scope_check(struct request *request) IW_MUST_USE;

#endif
