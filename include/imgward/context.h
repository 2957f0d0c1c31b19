/*
 * The context of one piece of work: a request, a job, a command.
 *
 * It owns nothing but points at the arena of the work, and it holds the error
 * of the work: filled once where the error is known (context_fail), logged once
 * at the edge, turned into an answer by the edge's table.  Validation gathers:
 * each bad field is a context_detail, and context_validated makes one
 * VALIDATION_FAILED of them all.
 */
#ifndef IMGWARD_CONTEXT_H
#define IMGWARD_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/arena.h>
#include <imgward/error.h>

/* One bad field: "files[3].fileName" and a sentence. */
struct context_detail {
    const char *field;
    const char *message;
    struct context_detail *next;
};

/* One fact about a result that is complete: "METADATA_LEFT_OUT" and a sentence for the client. */
struct context_note {
    const char *code;
    const char *sentence;
    struct context_note *next;
};

struct context {
    struct arena *arena;

    /* Who asks and about what: copied into every log line.  Zero or "" when unknown. */
    char request_id[64];
    int64_t account_id;
    int64_t order_id;
    int64_t job_id;

    /* The error; valid when error != IW_OK. */
    enum iw_error error;
    const char *sentence;   /* for the client */
    const char *cause;      /* for the log alone, may be NULL */
    const char *reason;     /* short constant word for log and metric, may be NULL */
    unsigned retry_after_s; /* 0: no advice */
    struct context_detail *details;
    struct context_detail *details_last;
    unsigned detail_count;
    const char *expired_at; /* with URL_EXPIRED: ISO 8601; NULL otherwise */

    /* Notes on the result, in the order added, one for each code.  They stay when the error is cleared. */
    struct context_note *notes;
};

/* Starts a piece of work on an arena.  request_id may be NULL. */
void context_init(struct context *context, struct arena *arena, const char *request_id);

/* Forgets the error, keeps identity and arena. */
void context_clear(struct context *context);

/*
 * Records an error and returns it, so that "return context_fail(...)" is the
 * usual form.  A NULL format takes the error's default sentence.  The first
 * error stays: a second call while one is recorded changes nothing and returns
 * the first.
 */
enum iw_error context_fail(struct context *context, enum iw_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds the cause for the log (a driver's message, an errno): never shown to a client. */
void context_cause(struct context *context, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds one bad field.  field and message are copied into the arena. At most 2000 are kept. */
void context_detail(struct context *context, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Adds a note on the result.  code is a constant in upper case and is borrowed;
 * the sentence is copied into the arena.  A code that was noted before keeps its
 * first sentence.
 */
void context_note(struct context *context, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The sentences of all notes, joined by a space, in the arena; NULL when there is none. */
const char *context_notes_text(const struct context *context);

/* IW_OK when no detail was added, otherwise VALIDATION_FAILED with a summary sentence. */
enum iw_error context_validated(struct context *context) IW_MUST_USE;

#endif
