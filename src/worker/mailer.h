/*
 * Sends queued mails.
 *
 * A mail server may be slow, and the worker may not wait.  So a child process with a separate connection to
 * the database sends the mails that are due, and exits.  At most one child runs.
 */
#ifndef WORKER_MAILER_H
#define WORKER_MAILER_H

#include <stdint.h>
#include <sys/types.h>

struct secret_box;
struct shared;

struct mailer {
    struct shared *shared;
    const struct secret_box *secret_box;
    pid_t child;          /* 0 if none runs */
    int64_t killed_at_ms; /* monotonic: when a child that still runs is killed */
};

/* Reaps a finished child, and starts one if mails are due.  Returns the pause before the next call. */
int64_t mailer_step(struct mailer *mailer);

/* Waits a few seconds for the mail in progress.  A mail that takes longer is sent again after its lease ends.
 */
void mailer_close(struct mailer *mailer);

#endif
