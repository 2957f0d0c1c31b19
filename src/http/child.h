/* One process of the pool: opens its handles and serves until told to stop. */
#ifndef HTTP_CHILD_H
#define HTTP_CHILD_H

#include "base/config.h"

/*
 * Serves requests of the listener; answers the exit code.  config is borrowed.
 * A TERM lets the request under way finish.
 */
int child_run(const struct config *config, int listener);

#endif
