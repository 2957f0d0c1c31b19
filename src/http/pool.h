/*
 * The supervisor of the pool: one listening socket, N processes that serve it.
 *
 * A process that died is replaced; if all processes die early, after a pause. HUP reloads the configuration:
 * every process finishes its request and is replaced; an invalid file changes nothing. TERM lets all
 * processes finish, a second TERM kills them. The supervisor serves no request.
 */
#ifndef HTTP_POOL_H
#define HTTP_POOL_H

#include "base/context.h"
#include "http/edge.h"

/* The effects of the signals, for --help. */
extern const char pool_usage[];

/* Reads the configuration, and the secrets and signing keys that it names. */
enum iw_error pool_check(struct context *context, const char *config_file,
                         const struct edge *edge) IW_MUST_USE;

/* Runs until TERM and returns the exit code. Borrows edge. If the start fails, the error is in context. */
int pool_run(struct context *context, const char *config_file, const struct edge *edge);

#endif
