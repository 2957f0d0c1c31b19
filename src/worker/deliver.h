/*
 * Webhook deliveries: leases due deliveries, sends them, records the answers.
 *
 * Many receivers are served in parallel, with a few deliveries each, so that a receiver that hangs
 * delays no other.  Accounts share the parallel requests, in total and of each server: an account may
 * have as many as stay free for others.  All receivers that are slow, or failed last time, count as one
 * account. If a worker dies, a delivery may be sent twice. Knows no jobs and no pictures.
 */
#ifndef WORKER_DELIVER_H
#define WORKER_DELIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/context.h"
#include "service/secret/secret_box.h"
#include "worker/loop.h"
#include "worker/sender.h"

struct deliver_attempt;
struct presign;
struct shared;

/* In the order of their turns. */
enum deliver_errand { DELIVER_SWEEP, DELIVER_LOOK, DELIVER_FORGET, DELIVER_ERRAND_COUNT };

struct deliver {
    struct shared *shared;
    struct sender sender;
    struct presign *presign;
    struct secret_box secret_box;
    struct arena *arena; /* of one errand */
    struct context context;
    struct deliver_attempt *attempts; /* a list */
    unsigned count;
    bool is_database_away;
    int64_t errand_at_ms[DELIVER_ERRAND_COUNT]; /* monotonic */
};

/* CONFIG_INVALID for a bad key file or list of addresses.  The caller closes it even after an error. */
enum iw_error deliver_open(struct deliver *deliver, struct context *context) IW_MUST_USE;

/* Ends every request.  Leased deliveries are sent again after the leases end. */
void deliver_close(struct deliver *deliver);

/* Checks the files and addresses that a configuration names. */
enum iw_error deliver_check(struct context *context, const struct config *config) IW_MUST_USE;

/* The configuration changed.  After an error the old keys stay in use. */
enum iw_error deliver_reload(struct deliver *deliver, struct context *context) IW_MUST_USE;

extern const struct loop_source deliver_source; /* the sockets of all deliveries */

/* Records one answer, or runs one errand.  A worker that stops only records. */
extern const struct loop_timer deliver_timer;

#endif
