/*
 * The loop of the worker: waits for events, and does work at its time.
 *
 * A part is a struct, with a table of functions that take it.  The loop knows no part.
 */
#ifndef WORKER_LOOP_H
#define WORKER_LOOP_H

#include <poll.h>
#include <stdint.h>

/* Descriptors to poll.  take is called after every poll, also without an event. */
struct loop_source {
    unsigned (*poll)(void *part, struct pollfd *polls, unsigned room);
    void (*take)(void *part, const struct pollfd *polls, unsigned count);
    int64_t (*next_ms)(const void *part); /* monotonic: when take must be called; NULL if only for events */
};

/* Work at a time.  One step takes milliseconds at most, or is rare. */
struct loop_timer {
    int64_t (*next_ms)(const void *part); /* monotonic; INT64_MAX: never */
    void (*step)(void *part, int64_t now_ms);
};

enum { loop_parts_max = 8 };

/* Unused rows are empty. */
struct loop {
    struct {
        const struct loop_source *table;
        void *part;
    } sources[loop_parts_max];
    struct {
        const struct loop_timer *table;
        void *part;
    } timers[loop_parts_max];
    struct pollfd *polls; /* room for the descriptors of all sources */
    unsigned polls_max;
    unsigned timer_last; /* the row that ran last */
};

/* Waits for an event until the next timer, and passes its events to each source. */
void loop_wait(struct loop *loop);

/* Runs one timer that is due, each in its turn. */
void loop_step(struct loop *loop);

#endif
