#include "worker/loop.h"

#include <stddef.h>

#include "base/clock.h"

enum { turn_longest_ms = 1000 };

/* Milliseconds until the next timer or source is due. */
static int wait_ms(const struct loop *loop)
{
    int64_t now_ms = clock_monotonic_ms(), next_ms = now_ms + turn_longest_ms;
    for (unsigned i = 0; i < loop_parts_max; i++) {
        const struct loop_source *source = loop->sources[i].table;
        const struct loop_timer *timer = loop->timers[i].table;
        int64_t source_ms =
            source != NULL && source->next_ms != NULL ? source->next_ms(loop->sources[i].part) : INT64_MAX;
        int64_t timer_ms = timer != NULL ? timer->next_ms(loop->timers[i].part) : INT64_MAX;
        next_ms = source_ms < next_ms ? source_ms : next_ms;
        next_ms = timer_ms < next_ms ? timer_ms : next_ms;
    }
    return next_ms > now_ms ? (int)(next_ms - now_ms) : 0;
}

void loop_wait(struct loop *loop)
{
    unsigned counts[loop_parts_max] = {0}, count = 0;
    for (unsigned i = 0; i < loop_parts_max && loop->sources[i].table != NULL; i++) {
        counts[i] =
            loop->sources[i].table->poll(loop->sources[i].part, loop->polls + count, loop->polls_max - count);
        count += counts[i];
    }
    if (poll(loop->polls, count, wait_ms(loop)) < 0)
        return;
    const struct pollfd *polls = loop->polls;
    for (unsigned i = 0; i < loop_parts_max && loop->sources[i].table != NULL; i++) {
        loop->sources[i].table->take(loop->sources[i].part, polls, counts[i]);
        polls += counts[i];
    }
}

void loop_step(struct loop *loop)
{
    int64_t now_ms = clock_monotonic_ms();
    for (unsigned i = 0; i < loop_parts_max; i++) {
        loop->timer_last = (loop->timer_last + 1) % loop_parts_max;
        const struct loop_timer *timer = loop->timers[loop->timer_last].table;
        void *part = loop->timers[loop->timer_last].part;
        if (timer != NULL && timer->next_ms(part) <= now_ms) {
            timer->step(part, now_ms);
            return;
        }
    }
}
