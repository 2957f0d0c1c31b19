/*
 * Memory of one request or one job: all its allocations come from one arena and are freed
 * together.
 *
 * Allocation never fails for the caller. When memory runs out, or an arena exceeds its limit,
 * the process logs that and calls abort(). The supervisor starts another process, and the
 * database has the committed state. Continuing a half-done request would be worse.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena;

/* Replaces abort() in this process. end must not return and must not allocate. */
void arena_end_set(void (*end)(void));

/* Creates an arena that may grow to limit_bytes (0: 64 MiB). The caller owns it. */
struct arena *arena_new(size_t limit_bytes);

/* Frees the arena and all its allocations. */
void arena_free(struct arena *arena);

/* Frees all allocations but keeps the first block for the next request. */
void arena_reset(struct arena *arena);

/* Zeroed memory, aligned for any type. */
void *arena_alloc(struct arena *arena, size_t bytes) __attribute__((returns_nonnull));

/* Zeroed memory of count * bytes; an overflow aborts. */
void *arena_array(struct arena *arena, size_t count, size_t bytes) __attribute__((returns_nonnull));

/*
 * Room for one more item in an array of count items that only grows by this function: the array, or a larger
 * copy. Start with NULL and 0.
 */
void *arena_more(struct arena *arena, void *items, size_t count, size_t bytes)
    __attribute__((returns_nonnull));

/* Calls end(argument) when the arena is reset or freed: for a library's memory that the arena owns. */
void arena_at_end(struct arena *arena, void (*end)(void *argument), void *argument);

/* Copies text: a string (NULL gives NULL), length bytes plus a terminating zero, or printf output. */
char *arena_text(struct arena *arena, const char *text);
char *arena_text_n(struct arena *arena, const char *text, size_t length) __attribute__((returns_nonnull));
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));
char *arena_vprintf(struct arena *arena, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0), returns_nonnull));

/* Bytes allocated since the last reset. */
size_t arena_used_bytes(const struct arena *arena);

#endif
