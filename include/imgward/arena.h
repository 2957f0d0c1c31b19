/*
 * One arena a request, one a job: everything that lives as long as the request
 * is taken from it and given back at once.
 *
 * Allocation never fails from the caller's point of view.  When the machine has
 * no memory left, or an arena passes its limit, the process says so and ends
 * with abort(): the supervisor starts another and the database holds the truth.
 * A process that goes on with half of a request would be worse.
 */
#ifndef IMGWARD_ARENA_H
#define IMGWARD_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena;

/* A new arena that may grow to limit_bytes (0: 64 MiB).  The caller owns it. */
struct arena *arena_new(size_t limit_bytes);

/* Frees the arena and all that was taken from it. */
void arena_free(struct arena *arena);

/* Forgets all that was taken and keeps the first block for the next request. */
void arena_reset(struct arena *arena);

/* Zeroed memory, aligned for any type; the arena's. */
void *arena_alloc(struct arena *arena, size_t bytes) __attribute__((returns_nonnull));

/* count * bytes, checked for overflow. */
void *arena_array(struct arena *arena, size_t count, size_t bytes) __attribute__((returns_nonnull));

/* A copy of text (NULL gives NULL), of length bytes and a closing zero, or printed. */
char *arena_text(struct arena *arena, const char *text);
char *arena_text_n(struct arena *arena, const char *text, size_t length) __attribute__((returns_nonnull));
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));
char *arena_vprintf(struct arena *arena, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0), returns_nonnull));

/* Bytes handed out since the last reset. */
size_t arena_used_bytes(const struct arena *arena);

#endif
