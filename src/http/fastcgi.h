/*
 * FastCGI: the only file pair that includes libfcgi.  Accepts one request at a
 * time on a listening socket and lends its parameters and its wire.
 */
#ifndef HTTP_FASTCGI_H
#define HTTP_FASTCGI_H

#include <signal.h>

#include "http/request.h"

struct fastcgi;

/*
 * Creates the pool's listening unix socket, mode 0660, non-blocking; -1 after
 * context_fail.  Replaces a stale socket.  CONFIG_INVALID when another process
 * serves it.
 */
int fastcgi_listen(struct context *context, const char *path, int backlog);

/* For one process of the pool, after the fork.  The caller owns it. */
struct fastcgi *fastcgi_new(int listener);
void fastcgi_free(struct fastcgi *fastcgi);

/*
 * Waits for a request, at most timeout_ms (-1: no limit), under the signal mask.
 * Returns the parameters, lent until fastcgi_finish, and fills wire.  NULL after
 * a signal or a timeout, when the peer does not speak FastCGI, or when another
 * process accepted the request.
 */
char *const *fastcgi_accept(struct fastcgi *fastcgi, const sigset_t *mask, int timeout_ms, struct wire *wire);

/* Ends the request.  is_cut aborts the connection, so that the client sees a truncated response. */
void fastcgi_finish(struct fastcgi *fastcgi, bool is_cut);

#endif
