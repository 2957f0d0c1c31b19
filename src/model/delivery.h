/*
 * Deliveries: states, the table of legal transitions, the retry schedule, and the rows of the sender.
 *
 * A delivery is one event on its way to one webhook.  Only delivery_next decides its next state.
 * delivery_judge applies the schedule to a receiver's answer.  src/db/deliveries.c writes the
 * decision.
 */
#ifndef MODEL_DELIVERY_H
#define MODEL_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum delivery_state {
    DELIVERY_NONE,    /* no state: an illegal transition */
    DELIVERY_PENDING, /* waits until the time of the next attempt */
    DELIVERY_SENDING, /* belongs to a worker until the lease ends */
    DELIVERY_DELIVERED,
    DELIVERY_FAILED,
    DELIVERY_STATE_COUNT
};

enum delivery_event {
    DELIVERY_EVENT_LEASE,    /* a worker leases it */
    DELIVERY_EVENT_SUCCEED,  /* the receiver answered 2xx in time */
    DELIVERY_EVENT_RETRY,    /* it did not: retried after a backoff */
    DELIVERY_EVENT_FAIL,     /* no retry is left, or the receiver is gone */
    DELIVERY_EVENT_LOSE,     /* the worker died or did not record in time */
    DELIVERY_EVENT_POSTPONE, /* our own trouble; does not count as an attempt */
    DELIVERY_EVENT_CANCEL,   /* the webhook was deleted or deactivated */
    DELIVERY_EVENT_REPEAT,   /* the client requests it again */
    DELIVERY_EVENT_COUNT
};

enum {
    delivery_retries = 9,
    delivery_tries = 10, /* the first attempt and nine retries */
    delivery_retry_after_max_s = 86400,
    delivery_silence_ms = 5 * 86400 * 1000 /* failures for so long without a success deactivate a webhook */
};

/* The result of one attempt. */
struct delivery_answer {
    bool is_answered;
    long status;           /* HTTP; valid when answered */
    int64_t retry_after_s; /* 0 means no Retry-After */
};

struct delivery_verdict {
    enum delivery_event event; /* DELIVERY_EVENT_SUCCEED, _RETRY or _FAIL */
    int64_t failures;          /* failed attempts, this one included */
    int64_t wait_ms;           /* before the next attempt */
    bool is_gone;              /* the receiver is gone: deactivate the webhook */
};

/* The state after the event; DELIVERY_NONE if the event is illegal in this state. */
enum delivery_state delivery_next(enum delivery_state state, enum delivery_event event);

/*
 * Decides the event after an attempt, by the table of peer.c.  2xx succeeds and 410 deactivates the webhook.
 * Anything else, redirects included, is retried by the contract's schedule.  random adds up to a fifth to the
 * wait.  Retry-After delays a retry by up to 24 h.
 */
struct delivery_verdict delivery_judge(const struct delivery_answer *answer, int64_t failures,
                                       uint64_t random);

/* True if a webhook has failed for delivery_silence_ms since first_failure_ms (0 if it has not failed). */
bool delivery_is_hopeless(int64_t first_failure_ms, int64_t now_ms);

/* "PENDING" and so on, as in the database; NULL for DELIVERY_NONE.  Static text. */
const char *delivery_state_name(enum delivery_state state);

/* DELIVERY_NONE if there is no such state. */
enum delivery_state delivery_state_by_name(const char *name);

/* A leased delivery. */
struct delivery {
    int64_t id;
    int64_t event_id;
    int64_t attempt; /* the fencing token */
    int64_t failures;
};

/* A signing secret as the database keeps it, sealed. */
struct delivery_secret {
    const char *sealed;
    size_t size;
};

/* An event as its deliveries report it. */
struct delivery_subject {
    int64_t event_id;
    int64_t account_id;
    const char *event_type;
    int64_t occurred_ms;
    int64_t sequence;
    int64_t order_id; /* 0 means a test */
    /* The trace of the order: */
    const char *trace_id; /* NULL if it has none, and for a test */
    bool is_trace_sampled;
};

#endif
