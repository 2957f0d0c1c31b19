/*
 * The only source of time.  Tests own it: an offset moves every process's wall
 * clock (configuration key test.clock_offset_s), and nothing else asks the system.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/arena.h>

/* "2026-03-12T10:00:00.000Z" and the closing zero. */
enum { clock_iso_size = 25 };

/* Milliseconds since 1970 UTC, offset applied. */
int64_t clock_now_ms(void);

/* Milliseconds of a clock that never steps; only differences mean something. */
int64_t clock_monotonic_ms(void);

/* Moves clock_now_ms for this process. */
void clock_offset_set_s(int64_t offset_s);

/* ISO 8601 UTC with milliseconds and Z into text. */
void clock_iso(int64_t time_ms, char text[clock_iso_size]);

/* The same in the arena. */
const char *clock_iso_text(struct arena *arena, int64_t time_ms);

/* "YYYY-MM-DD" (11 bytes with the zero) of the UTC day that holds time_ms. */
void clock_day(int64_t time_ms, char text[11]);

/*
 * Reads an ISO 8601 time: date, T, time with or without fraction, Z or an
 * offset as +02:00.  False when the text is anything else, or a time before
 * 1970 or after 9999 in UTC.
 */
bool clock_iso_read(const char *text, int64_t *time_ms);

/* Reads YYYY-MM-DD into the first millisecond of that UTC day. */
bool clock_day_read(const char *text, int64_t *time_ms);

#endif
