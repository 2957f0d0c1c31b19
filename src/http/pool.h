/*
 * The supervisor of the pool: one listening socket, N processes that serve it.
 *
 * The dead are forked again (with a pause when all of them die at once); HUP
 * reads the configuration anew and replaces every process once it has finished
 * its request, and a bad file leaves everything as it was; TERM lets all finish,
 * a second TERM ends them at once.  Serves no request itself.
 */
#ifndef HTTP_POOL_H
#define HTTP_POOL_H

#include <imgward/context.h>

#include "http/route.h"

/* Runs until TERM; returns the exit code.  routes: see route_find.  context is for errors of the start. */
int pool_run(struct context *context, const char *config_file, const struct route *const *routes);

#endif
