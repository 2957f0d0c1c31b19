/*
 * The meaning of an HTTP status from a peer: one table for sources, output targets and webhook receivers.
 * doc/api.md documents it for clients.  Includes no HTTP library.
 */
#ifndef MODEL_PEER_H
#define MODEL_PEER_H

enum peer { PEER_SOURCE, PEER_TARGET, PEER_WEBHOOK, PEER_COUNT };

enum peer_fate {
    PEER_TAKEN,   /* success */
    PEER_RETRIED, /* a retry may succeed */
    PEER_FINAL,   /* a retry gives the same */
    PEER_GONE     /* the receiver is gone: the webhook is deactivated */
};

struct peer_status {
    long first, last;
    enum peer_fate fates[PEER_COUNT];
    const char *clause; /* part of the sentence for the client; NULL if the number is enough */
};

/* The row of a status; never NULL. */
const struct peer_status *peer_status(long status);

#endif
