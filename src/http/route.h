/*
 * Routes: tables of method, path pattern, handler and flags.
 *
 * A pattern has literal segments and captures: "/api/v2/orders/{orderId}". A last segment "{name*}" captures
 * the rest of the path, slashes included. If several patterns match, the pattern with the leftmost literal
 * segment wins; the order of the tables is irrelevant. A trailing slash of the path is ignored.
 */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include "http/request.h"

enum route_flag {
    /* Needs no API key, because the URL is signed or local. */
    ROUTE_OPEN = 1,
    /* The domain admits the request, together with the lock of the idempotency key. */
    ROUTE_ADMITS = 2,
    /* Console: only for owners of an account. */
    ROUTE_OWNER = 4,
    /* Console: only for users of the operator. */
    ROUTE_OPERATOR = 8,
    /* Console: also allowed before the address is verified, and while the account is suspended. */
    ROUTE_PROFILE = 16,
    /*
     * Console: not counted as one of a user's changes in a day, so that a thief of a session cannot block it
     * by using them up.
     */
    ROUTE_ESCAPE = 32,
    /* See ROUTE_SCOPE: also the scope of the order's type suffices.  The path has {orderId}. */
    ROUTE_SCOPE_OF_ORDER = 64
};

/*
 * The scopes of enum key_scope of which an API key with limits needs one.  Such a key is refused at a route
 * without this flag.
 */
enum { route_scope_shift = 8 };
#define ROUTE_SCOPE(scopes) ((unsigned)(scopes) << route_scope_shift)

struct route {
    enum method method; /* GET serves HEAD as well */
    const char *pattern;
    enum iw_error (*handle)(struct request *request);
    unsigned flags;
};

/*
 * Finds the route and fills request->route and its captures.
 * RESOURCE_NOT_FOUND, or METHOD_NOT_ALLOWED with the header Allow set.
 */
enum iw_error route_find(struct request *request, const struct route *const *tables) IW_MUST_USE;

#endif
