/*
 * The differences between the programs that serve a pool: routes, authentication, configuration.
 *
 * The main.c of imgward-api and of imgward-console has one edge each. All members are static.
 */
#ifndef HTTP_EDGE_H
#define HTTP_EDGE_H

#include "base/config.h"

struct failure_status;
struct request;
struct route;

struct edge {
    const char *prefix; /* prefix of every path; the routes omit the prefix */
    const struct route *const *routes;
    /*
     * Reads the configuration file; api_socket, api_processes and the database user are those of this
     * program.
     */
    enum iw_error (*configure)(struct context *context, const char *file, struct config *config);
    /* Checks every request before its authentication; NULL for no check. */
    enum iw_error (*guard)(struct request *request);
    /* Sets request->account, unless it fails before the account is known.  Not called for ROUTE_OPEN. */
    enum iw_error (*authenticate)(struct request *request);
    int64_t open_body_bytes_max; /* limit for a body of ROUTE_OPEN, which any client may send; 0 for
                                    api.body_max_bytes */
    /*
     * Called after the success of a request that may change something, before the response is sent; may be
     * NULL.
     */
    void (*changed)(struct request *request);
    const struct failure_status
        *statuses;       /* in addition to those of the API, terminated by IW_OK; may be NULL */
    const char *scheme;  /* WWW-Authenticate of a 401 */
    const char *counter; /* follows redis.prefix in the Redis keys of rate limit and lock */
};

#endif
