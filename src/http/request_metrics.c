#include "http/request_metrics.h"

#include <stdio.h>
#include <stdlib.h>

#include "model/quota.h"

enum { name_size = 128 };

/* Returns the number of a route, counted from 1 in the order of the tables; 0 without a route. */
static unsigned route_number(const struct route *const *tables, const struct route *wanted)
{
    unsigned number = 0;
    for (; wanted != NULL && *tables != NULL; tables++)
        for (const struct route *route = *tables; route->pattern != NULL; route++) {
            number++;
            if (route == wanted)
                return number;
        }
    return 0;
}

struct metrics *request_metrics_new(const struct route *const *tables)
{
    unsigned count = 1, at = 1; /* endpoint 0 stands for requests without a route */
    for (const struct route *const *table = tables; *table != NULL; table++)
        for (const struct route *route = *table; route->pattern != NULL; route++)
            count++;
    char(*names)[name_size] = calloc(count, sizeof *names);
    const char **endpoints = calloc(count, sizeof *endpoints);
    if (names == NULL || endpoints == NULL)
        abort();
    endpoints[0] = "none";
    for (; *tables != NULL; tables++)
        for (const struct route *route = *tables; route->pattern != NULL; route++, at++) {
            snprintf(names[at], name_size, "%s %s", request_method_text(route->method), route->pattern);
            endpoints[at] = names[at];
        }
    return metrics_new(endpoints, count);
}

void request_metrics_count(const struct request *request, const struct route *const *tables,
                           enum iw_error error, int64_t ms)
{
    unsigned number = route_number(tables, request->route), class = request->response.status / 100;
    metrics_add(request->metrics, METRIC_REQUESTS, number, class, 1);
    metrics_observe(request->metrics, METRIC_REQUEST_SECONDS, number, ms);
    if (error != IW_OK)
        metrics_add(request->metrics, METRIC_ERRORS, (unsigned)error, 0, 1);
    if (request->admission.is_redis_away)
        metrics_add(request->metrics, METRIC_REDIS_AWAY, 0, 0, 1);
    if (error == IW_USAGE_LIMIT_EXCEEDED && request->context->reason != NULL)
        metrics_add(request->metrics, METRIC_USAGE_REFUSED, (unsigned)quota_find(request->context->reason), 0,
                    1);
    if (error == IW_RATE_LIMIT_EXCEEDED)
        metrics_add(request->metrics, METRIC_RATE_LIMITED, 0, 0, 1);
}
