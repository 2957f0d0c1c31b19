/* The metrics of the pool, by route. */
#ifndef HTTP_REQUEST_METRICS_H
#define HTTP_REQUEST_METRICS_H

#include "base/metrics.h"
#include "http/route.h"

/* Creates the metrics of a program with these routes, before it forks.  Never freed. */
struct metrics *request_metrics_new(const struct route *const *tables);

/* Counts a request after its response.  No effect if request->metrics is NULL. */
void request_metrics_count(const struct request *request, const struct route *const *tables,
                           enum iw_error error, int64_t ms);

#endif
