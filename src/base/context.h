/*
 * The context of one request, job or command.
 *
 * It borrows the arena of that work and holds its error. The error is recorded once where it
 * is known (context_fail), logged once at the edge, and turned into a response by the edge's
 * table. Validation collects: each bad field adds a context_detail, and context_validated
 * turns them into one VALIDATION_FAILED.
 */
#ifndef BASE_CONTEXT_H
#define BASE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/trace.h"

/* One bad field, "files[3].fileName", and a message. */
struct context_detail {
    const char *field;
    const char *message;
    struct context_detail *next;
};

/* A note on a complete result: "METADATA_LEFT_OUT" and a sentence for the client. */
struct context_note {
    const char *code;
    const char *sentence;
    struct context_note *next;
};

struct context {
    struct arena *arena;

    /* Identifiers that are added to every log line. Zero or "" when unknown. */
    char request_id[64];
    struct trace trace;
    int64_t account_id;
    int64_t order_id;
    int64_t job_id;

    /* The error; valid when error != IW_OK. */
    enum iw_error error;
    const char *sentence;   /* shown to the client */
    const char *cause;      /* only for the log; may be NULL */
    const char *reason;     /* short constant word for logs and metrics; may be NULL */
    unsigned retry_after_s; /* 0 means no Retry-After */
    struct context_detail *details;
    struct context_detail *details_last;
    unsigned detail_count;
    const char *expired_at; /* ISO 8601 with URL_EXPIRED, else NULL */

    /* Notes on the result in the order added, one per code. context_clear keeps them. */
    struct context_note *notes;
};

/* Initialises a context. request_id may be NULL. */
void context_init(struct context *context, struct arena *arena, const char *request_id);

/* Initialises a context for a part of a caller's work: the same arena and identifiers, no error. */
void context_init_part(struct context *context, const struct context *caller);

/*
 * The work turns out to be on an order with this trace; NULL for an order without one. Work without a trace
 * of its client joins it.
 */
void context_trace_join(struct context *context, const char *trace_id);

/* The lines that follow are not about this order. */
void context_order_end(struct context *context);

/* Clears the error and its details; keeps identifiers, notes and arena. */
void context_clear(struct context *context);

/*
 * Records an error and returns it, for use as "return context_fail(...)". A NULL format
 * selects the default sentence of the error. The first error wins: when one is recorded
 * already, the call changes nothing and returns that one.
 */
enum iw_error context_fail(struct context *context, enum iw_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Records the cause for the log, such as a driver's message or an errno. Clients never see it. */
void context_cause(struct context *context, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds one bad field. Copies field and message into the arena. At most 2000 are kept. */
void context_detail(struct context *context, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Adds a note on the result. code is a borrowed upper-case constant; the sentence is copied
 * into the arena. A second note with the same code is ignored.
 */
void context_note(struct context *context, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Makes the note with this code the first one, whose code a client sees. */
void context_note_lead(struct context *context, const char *code);

/* The sentences of all notes, joined by spaces, in the arena; NULL if there are none. */
const char *context_notes_text(const struct context *context);

/* IW_OK when no detail was added, else VALIDATION_FAILED with a summary. */
enum iw_error context_validated(struct context *context) IW_MUST_USE;

#endif
