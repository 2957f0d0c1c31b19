/*
 * The life of a delivery: one event on its way to one receiver.
 *
 * One table says which happening leads from which state to which, and one
 * function reads it: no other place decides about a delivery's state.
 * delivery_judge reads an answer of the receiver against the schedule.  Knows no
 * database and no HTTP library; src/store/deliveries.c writes what is decided here.
 */
#ifndef DOMAIN_DELIVERY_H
#define DOMAIN_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

enum delivery_state {
    DELIVERY_NONE,    /* no state: an illegal step */
    DELIVERY_PENDING, /* waits for its time */
    DELIVERY_SENDING, /* belongs to a worker until its lease ends */
    DELIVERY_DELIVERED,
    DELIVERY_FAILED,
    DELIVERY_STATE_COUNT
};

enum delivery_event {
    DELIVERY_EVENT_LEASE,    /* a worker takes it */
    DELIVERY_EVENT_SUCCEED,  /* the receiver answered 2xx in time */
    DELIVERY_EVENT_RETRY,    /* it did not: once more, later */
    DELIVERY_EVENT_FAIL,     /* the schedule is over, or the receiver is gone */
    DELIVERY_EVENT_LOSE,     /* its worker died or was silent for a lease */
    DELIVERY_EVENT_POSTPONE, /* trouble of ours, no try of the receiver's */
    DELIVERY_EVENT_CANCEL,   /* its webhook was deleted or is not active */
    DELIVERY_EVENT_REPEAT,   /* the client asks for it once more */
    DELIVERY_EVENT_COUNT
};

enum {
    delivery_retries = 9,
    delivery_tries = 10, /* the first and nine retries */
    delivery_retry_after_max_s = 86400,
    delivery_silence_ms = 5 * 86400 * 1000 /* failures for so long without one success end a webhook */
};

/* How a try ended. */
struct delivery_answer {
    bool is_answered;
    long status;           /* HTTP; valid when answered */
    int64_t retry_after_s; /* 0: the receiver said nothing */
};

struct delivery_verdict {
    enum delivery_event event; /* DELIVERY_EVENT_SUCCEED, _RETRY or _FAIL */
    int64_t failures;          /* tries that failed, this one included */
    int64_t wait_ms;           /* before the next try */
    bool is_gone;              /* the receiver wants no more: deactivate the webhook */
};

/* The state that the event leads to, or DELIVERY_NONE when it may not happen in this state. */
enum delivery_state delivery_next(enum delivery_state state, enum delivery_event event);

/*
 * Decides what follows a try, by the table of domain/peer.c.  2xx is a success, 410 the end of the webhook;
 * everything else, redirects included, is tried again by the schedule of the
 * contract, never earlier than it says and at most a fifth later (random picks
 * where), and not before Retry-After, of which at most 24 h count.
 */
struct delivery_verdict delivery_judge(const struct delivery_answer *answer, int64_t failures,
                                       uint64_t random);

/* True when a webhook has failed since first_failure_ms (0: it has not) for too long. */
bool delivery_is_hopeless(int64_t first_failure_ms, int64_t now_ms);

/* "PENDING" and so on, as the database has it; NULL for DELIVERY_NONE.  Static text. */
const char *delivery_state_name(enum delivery_state state);

/* DELIVERY_NONE when there is no such state. */
enum delivery_state delivery_state_by_name(const char *name);

#endif
