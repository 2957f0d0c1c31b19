/*
 * The meaning of the status of an answer: one table for the sources that are fetched, the targets that
 * results are pushed to and the receivers of webhooks.  doc/api.md has it for clients.  Knows no HTTP
 * library.
 */
#ifndef DOMAIN_PEER_H
#define DOMAIN_PEER_H

enum peer { PEER_SOURCE, PEER_TARGET, PEER_WEBHOOK, PEER_COUNT };

enum peer_fate {
    PEER_TAKEN,   /* done */
    PEER_RETRIED, /* may go better later */
    PEER_FINAL,   /* will not go better */
    PEER_GONE     /* wants no more: the webhook is deactivated */
};

struct peer_status {
    long first, last;
    enum peer_fate fates[PEER_COUNT];
    const char *clause; /* for a sentence to the client; NULL: the number says enough */
};

/* The row of a status; never NULL. */
const struct peer_status *peer_status(long status);

#endif
