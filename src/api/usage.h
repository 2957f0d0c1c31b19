/* What an account uses of its limits, as JSON: in GET /stats/usage and in the console. */
#ifndef API_USAGE_H
#define API_USAGE_H

#include "http/request.h"

/* Renders plan and limits into an open object. */
enum iw_error usage_render(struct request *request, struct render *render,
                           const struct account *account) IW_MUST_USE;

#endif
