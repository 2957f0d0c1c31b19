/* How much of each limit an account uses, as JSON: in GET /stats/usage and in the console. */
#ifndef API_USAGE_H
#define API_USAGE_H

#include <stdint.h>

#include "http/request.h"

/* Renders plan and limits into an open object. */
enum iw_error usage_render(struct request *request, struct render *render,
                           const struct account *account) IW_MUST_USE;

enum { usage_steps_min = 4, usage_steps_max = 6 };

/* A chart's axis: 0 to step * steps. */
struct usage_scale {
    int64_t step; /* 1, 2 or 5 times a power of ten */
    unsigned steps;
};

/* The smallest scale with round steps that includes the largest value. */
struct usage_scale usage_scale_for(int64_t largest);

#endif
