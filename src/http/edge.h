/*
 * What distinguishes the programs that serve a pool: routes, authentication, configuration.
 *
 * imgward-api and imgward-console have one each, in their main.c.  All members are static.
 */
#ifndef HTTP_EDGE_H
#define HTTP_EDGE_H

#include "http/failure.h"
#include "http/request.h"
#include "http/route.h"

struct edge {
    const char *prefix; /* of every path; the routes omit it */
    const struct route *const *routes;
    /* Reads the configuration file; api_socket, api_processes and the user of the database are this
     * program's. */
    enum iw_error (*configure)(struct context *context, const char *file, struct config *config);
    /* Checks every request before its authentication; NULL: no check. */
    enum iw_error (*guard)(struct request *request);
    /* Sets request->account, unless it fails before the account is known.  Not called for ROUTE_OPEN. */
    enum iw_error (*authenticate)(struct request *request);
    int64_t open_body_bytes_max; /* of a body of ROUTE_OPEN, which anybody may send; 0: api.body_max_bytes */
    /* After a success of a request that may change something, before its answer is sent; NULL: nothing. */
    void (*changed)(struct request *request);
    const struct failure_status *statuses; /* in addition to the API's; closed by IW_OK; NULL: none */
    const char *scheme;                    /* WWW-Authenticate of a 401 */
    const char *counter;                   /* follows redis.prefix in the keys of rate limit and lock */
};

#endif
