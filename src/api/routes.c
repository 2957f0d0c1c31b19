/* Every table of routes of the program, one line a file of this room. */
#include "http/route.h"

const struct route *const api_routes[] = {
    NULL,
};
