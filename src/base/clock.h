/*
 * The only source of time. Tests move the wall clock of every process with the configuration
 * key test.clock_offset_s, so no other file may read the system clock.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* "2026-03-12T10:00:00.000Z" and the terminating zero. */
enum { clock_iso_size = 25 };

/* Milliseconds since 1970-01-01 UTC, with the offset applied. */
int64_t clock_now_ms(void);

/* Milliseconds of the monotonic clock; only differences between two readings have a meaning. */
int64_t clock_monotonic_ms(void);

/* Sets the offset of clock_now_ms in this process. */
void clock_offset_set_s(int64_t offset_s);

/* Writes ISO 8601 UTC with milliseconds and "Z". */
void clock_iso(int64_t time_ms, char text[clock_iso_size]);

/* Same as clock_iso, allocated in the arena. */
const char *clock_iso_text(struct arena *arena, int64_t time_ms);

/* Writes "YYYY-MM-DD" (11 bytes with the zero) of the UTC day of time_ms. */
void clock_day(int64_t time_ms, char text[11]);

/*
 * Reads an ISO 8601 time: date, "T", time with or without fraction, and "Z" or an offset such as +02:00.
 * Returns false for any other text, and for times before 1970 or after 9999 in UTC.
 */
bool clock_iso_read(const char *text, int64_t *time_ms);

/* Reads "YYYY-MM-DD"; *time_ms is the first millisecond of that UTC day. */
bool clock_day_read(const char *text, int64_t *time_ms);

#endif
