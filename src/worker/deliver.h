/*
 * Deliveries of webhooks, in the event loop of the supervisor.
 *
 * Leases what is due, sends it through fetch.h, and records what the receiver
 * answered.  Many receivers are served side by side and few deliveries of one
 * at a time, so that one that hangs holds up nobody but itself; one account, and
 * all receivers that failed last time, get half of the room at most.  The database
 * is the truth: dying at any line costs at most a delivery that comes twice.
 * Knows nothing of jobs and pictures.
 */
#ifndef WORKER_DELIVER_H
#define WORKER_DELIVER_H

#include <stdbool.h>
#include <stdint.h>

#include <poll.h>

#include <imgward/context.h>

#include "base/config.h"
#include "base/metrics.h"
#include "service/fetch.h"
#include "store/db.h"

struct deliver;

enum { deliver_descriptors_max = fetch_descriptors_max };

/*
 * Borrows config (whose values a reload may change in place, see
 * deliver_reload), db and owner (worker/owner.h).  CONFIG_INVALID when a key
 * file or the list of addresses is not what it must be.  The caller owns it.
 */
enum iw_error deliver_new(struct context *context, const struct config *config, struct db *db,
                          const char *owner, struct metrics *metrics, struct deliver **deliver) IW_MUST_USE;

/* Checks the files and addresses that the configuration names. */
enum iw_error deliver_check(struct context *context, const struct config *config) IW_MUST_USE;

/* Ends every transfer; what was leased comes back when its lease ends. */
void deliver_free(struct deliver *deliver);

/* Takes over a configuration that changed.  On an error the keys from before stay in force. */
enum iw_error deliver_reload(struct deliver *deliver, struct context *context) IW_MUST_USE;

/* Something may be due: looks with the next step instead of in its own time. */
void deliver_wake(struct deliver *deliver);

/* Deliveries under way. */
unsigned deliver_count(const struct deliver *deliver);

/* Fills what to poll for, at most room of them, and answers how many. */
unsigned deliver_poll(const struct deliver *deliver, struct pollfd *polls, unsigned room);

/* When deliver_step has something to do even without events (monotonic). */
int64_t deliver_next_ms(const struct deliver *deliver);

/* Moves everything on after a poll.  While stopping it finishes what it began and begins nothing. */
void deliver_step(struct deliver *deliver, const struct pollfd *polls, unsigned count, bool is_stopping);

#endif
