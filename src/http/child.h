/* One process of the pool: opens its handles and serves until told to stop. */
#ifndef HTTP_CHILD_H
#define HTTP_CHILD_H

#include <imgward/context.h>

#include "base/config.h"
#include "base/metrics.h"
#include "http/route.h"

/*
 * Reads all that a process needs beside the configuration: secrets, signing
 * keys.  CONFIG_INVALID with a sentence that names the file.  Connects to nothing.
 */
enum iw_error child_check(struct context *context, const struct config *config) IW_MUST_USE;

/*
 * Serves requests of the listener; returns the exit code.  Borrows config, routes (see route_find) and
 * metrics. TERM lets the current request finish.
 */
int child_run(const struct config *config, const struct route *const *routes, int listener,
              struct metrics *metrics);

#endif
