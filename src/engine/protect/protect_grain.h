/*
 * Grain: it replaces strokes on smooth places, where strokes would be visible.
 *
 * Grain is a field of three colours.  One of a few patterns begins at every sixteenth pixel in each
 * direction, with either sign, and overlaps its neighbours.  A hash of the place selects the pattern.  The
 * patterns come from the weights file (tools/grain.py learns them).
 */
#ifndef ENGINE_PROTECT_PROTECT_GRAIN_H
#define ENGINE_PROTECT_PROTECT_GRAIN_H

#include <stddef.h>
#include <stdint.h>

enum {
    grain_patterns = 16,
    grain_px = 32, /* side of a pattern */
    grain_colors = 3,
    grain_step_px = 16 /* distance between starts of patterns */
};

struct grain {
    float patterns[grain_patterns][grain_px][grain_px * grain_colors]; /* the field's root mean square is 1 */
};

/* Fills count pixels of a row from x, y, three values each.  The result does not depend on the start of the
 * row. */
void grain_line(const struct grain *grain, uint64_t key, uint64_t y, uint64_t x, size_t count, float *values);

#endif
