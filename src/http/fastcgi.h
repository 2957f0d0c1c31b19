/*
 * FastCGI: the only file pair that includes libfcgi. Accepts one request at a time on a listening socket and
 * lends the request's parameters and wire.
 */
#ifndef HTTP_FASTCGI_H
#define HTTP_FASTCGI_H

#include <signal.h>

#include "http/request.h"

struct fastcgi;

/*
 * Creates the pool's listening unix socket, mode 0660, non-blocking; -1 after
 * context_fail.  Replaces a stale socket.  CONFIG_INVALID if another process
 * serves it.
 */
int fastcgi_listen(struct context *context, const char *path, int backlog);

/* Creates the state for one process of the pool; call it after the fork. The caller owns the result. */
struct fastcgi *fastcgi_new(int listener);
void fastcgi_free(struct fastcgi *fastcgi);

/*
 * Waits for a request, at most timeout_ms (-1 means no limit), under the signal mask.
 * Returns the parameters, lent until fastcgi_finish, and fills wire.  NULL after
 * a signal or a timeout, if the peer does not speak FastCGI, or if another
 * process accepted the request.
 */
char *const *fastcgi_accept(struct fastcgi *fastcgi, const sigset_t *mask, int timeout_ms, struct wire *wire);

/* Ends the request.  is_cut aborts the connection, so that the client sees a truncated response. */
void fastcgi_finish(struct fastcgi *fastcgi, bool is_cut);

#endif
