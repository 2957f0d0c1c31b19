/*
 * The trace of a request or an order: an id that all its log lines have, in every program.
 *
 * Source: W3C Trace Context, Level 1 (https://www.w3.org/TR/trace-context-1/), header traceparent. The header
 * tracestate is not read, because nothing here uses it.
 */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H

#include <stdbool.h>

#include "base/arena.h"

enum { trace_id_size = 33 };

struct trace {
    char id[trace_id_size]; /* 32 lower-case hexadecimal digits, not all zero; "" if there is no trace */
    bool is_sampled; /* the flag "sampled"; set in a trace that starts here, because its lines are logged */
    bool is_given;   /* the client's traceparent had the id */
};

/* Reads a traceparent. Returns false, without a change, for NULL and for every value that the standard
 * refuses. */
bool trace_read(const char *traceparent, struct trace *trace);

/* Starts a trace: its id is wanted if that is a trace id, otherwise random. wanted may be NULL. */
void trace_begin(struct trace *trace, struct arena *arena, const char *wanted);

/* Makes a traceparent of version 00 with a new random parent id, in the arena. */
const char *trace_parent(struct arena *arena, const struct trace *trace);

#endif
