/* One process of the pool: opens its handles and serves requests until a signal stops it. */
#ifndef HTTP_CHILD_H
#define HTTP_CHILD_H

#include "base/config.h"
#include "base/context.h"
#include "base/metrics.h"
#include "http/edge.h"
#include "http/in_flight.h"

/*
 * Reads the files that a process needs besides the configuration: secrets and signing keys. CONFIG_INVALID
 * with a sentence that names the file. Opens no connection.
 */
enum iw_error child_check(struct context *context, const struct config *config) IW_MUST_USE;

/*
 * Checks whether sealing and signing keys belong to the database (domain/keyring.h) and connects to it for
 * that. CONFIG_INVALID if they do not. *is_checked is false if the database could not be asked; then each
 * process asks before its first request.
 */
enum iw_error child_keyring_check(struct context *context, const struct config *config,
                                  bool *is_checked) IW_MUST_USE;

/*
 * Connects to the database, Redis and the file store. Returns one line, in the context's arena, that names
 * what is unavailable and why.
 */
const char *child_status(struct context *context, const struct config *config);

/* State that the processes of a pool share. */
struct child_share {
    struct metrics *metrics;
    struct in_flight *in_flight;
    struct hosts *hosts;     /* the choice of the database server */
    unsigned in_flight_slot; /* of this process */
    bool is_keyring_checked;
};

/*
 * Serves requests of the listener and returns the exit code.  Borrows config,
 * edge and share.  TERM lets the current request finish.
 */
int child_run(const struct config *config, const struct edge *edge, int listener,
              const struct child_share *share);

#endif
