/*
 * FastCGI: the only file pair that includes libfcgi.  Accepts one request after
 * the other on a listening socket and lends its parameters and a wire.
 */
#ifndef HTTP_FASTCGI_H
#define HTTP_FASTCGI_H

#include <signal.h>

#include "http/request.h"

struct fastcgi;

/*
 * A unix socket that the pool listens on, mode 0660, not blocking; -1 after
 * context_fail.  It replaces a socket that nobody serves any more; one that is
 * served is CONFIG_INVALID.
 */
int fastcgi_listen(struct context *context, const char *path, int backlog);

/* For one process of the pool, after the fork.  The caller owns it. */
struct fastcgi *fastcgi_new(int listener);
void fastcgi_free(struct fastcgi *fastcgi);

/*
 * Waits for a request, timeout_ms long at most (-1: for ever), with mask in
 * force: only here does a signal interrupt.  NULL when one did, when the time
 * was up, when the peer was not FastCGI or another process was faster;
 * otherwise the parameters, lent until fastcgi_finish, and wire.
 */
char *const *fastcgi_accept(struct fastcgi *fastcgi, const sigset_t *mask, int timeout_ms, struct wire *wire);

/* Ends the request; is_cut drops the connection so that the client sees a broken answer. */
void fastcgi_finish(struct fastcgi *fastcgi, bool is_cut);

#endif
