/* The metrics of the pool: its routes are their endpoints. */
#ifndef HTTP_REQUEST_METRICS_H
#define HTTP_REQUEST_METRICS_H

#include "base/metrics.h"
#include "http/route.h"

/* The metrics of a program with these routes, made before it forks; never freed. */
struct metrics *request_metrics_new(const struct route *const *tables);

/* Counts a request that has been answered.  Nothing where request->metrics is NULL. */
void request_metrics_count(const struct request *request, const struct route *const *tables,
                           enum iw_error error, int64_t ms);

#endif
