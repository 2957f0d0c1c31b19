/*
 * Requests to other servers: owns the event loop of libcurl (service/net/fetch.h) with its poll
 * descriptors, and replaces it after a reload.  Transfers and webhook deliveries have a sender
 * each, and the sender knows neither of them.
 */
#ifndef WORKER_SENDER_H
#define WORKER_SENDER_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/context.h"
#include "service/net/fetch.h"

enum { sender_descriptors_max = fetch_descriptors_max };

struct sender {
    const struct config *config; /* borrowed; a reload changes its values in place */
    struct fetch *fetch;
    bool is_stale; /* made with an older configuration; replaced as soon as no request is open */
};

/* Errors as fetch_new.  The caller closes it even after an error. */
enum iw_error sender_open(struct sender *sender, struct context *context,
                          const struct config *config) IW_MUST_USE;

/* Ends every request without calling its done. */
void sender_close(struct sender *sender);

/* The configuration changed: new requests wait until the sender is replaced, if it must be. */
void sender_reload(struct sender *sender);

/* Returns how many more requests may start if busy of at most "most" are open; 0 before a replacement. */
unsigned sender_room(const struct sender *sender, unsigned busy, unsigned most);

/* Starts a request; errors and ownership as fetch_start. */
enum iw_error sender_send(struct sender *sender, struct context *context,
                          const struct fetch_request *request) IW_MUST_USE;

/* Fills polls with at most room descriptors; returns their count. */
unsigned sender_poll(const struct sender *sender, struct pollfd *polls, unsigned room);

/* The time (monotonic) of the next sender_step without an event; INT64_MAX: never. */
int64_t sender_next_ms(const struct sender *sender);

/*
 * Continues all requests after a poll, and calls done of each request that ended.
 * True if the sender was replaced: requests may start again.  Logs a failed replacement.
 */
bool sender_step(struct sender *sender, struct context *context, const struct pollfd *polls, unsigned count);

#endif
