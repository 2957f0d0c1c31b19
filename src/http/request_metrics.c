#include "http/request_metrics.h"

#include <stdio.h>
#include <stdlib.h>

enum { name_size = 128 };

/* The number of a route, from 1 in the order of the tables; 0: none.  *count gets how many there are. */
static unsigned route_number(const struct route *const *tables, const struct route *wanted, unsigned *count)
{
    unsigned number = 0;
    *count = 0;
    for (; *tables != NULL; tables++)
        for (const struct route *route = *tables; route->pattern != NULL; route++) {
            ++*count;
            if (route == wanted)
                number = *count;
        }
    return number;
}

struct metrics *request_metrics_new(const struct route *const *tables)
{
    unsigned count, at = 1;
    route_number(tables, NULL, &count);
    count++; /* the requests without a route come first */
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
    unsigned count, number = route_number(tables, request->route, &count),
                    class = request->response.status / 100;
    metrics_add(request->metrics, METRIC_REQUESTS, number, class, 1);
    metrics_observe(request->metrics, METRIC_REQUEST_SECONDS, number, ms);
    if (error != IW_OK)
        metrics_add(request->metrics, METRIC_ERRORS, (unsigned)error, 0, 1);
    if (request->admission.is_redis_away)
        metrics_add(request->metrics, METRIC_REDIS_AWAY, 0, 0, 1);
    if (error == IW_RATE_LIMIT_EXCEEDED)
        metrics_add(request->metrics, METRIC_RATE_LIMITED, 0, 0, 1);
}
