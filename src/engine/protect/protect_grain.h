/*
 * Grain: what is laid over smooth places in place of strokes, which would be seen there.
 *
 * A field of three colours.  At every sixteenth pixel, each way, one of a few patterns begins,
 * up or down, and is laid over those beside it; which one, a hash of the place says.  The
 * patterns come from the weights file (tools/grain.py learns them).
 */
#ifndef ENGINE_PROTECT_PROTECT_GRAIN_H
#define ENGINE_PROTECT_PROTECT_GRAIN_H

#include <stddef.h>
#include <stdint.h>

enum {
    grain_patterns = 16,
    grain_px = 32, /* a side of a pattern */
    grain_colors = 3,
    grain_step_px = 16 /* how far apart they are laid */
};

struct grain {
    float patterns[grain_patterns][grain_px][grain_px * grain_colors]; /* the field's root mean square is 1 */
};

/* Fills count pixels of a row from x, y on, three values each; the same wherever a row of them begins. */
void grain_line(const struct grain *grain, uint64_t key, uint64_t y, uint64_t x, size_t count, float *values);

#endif
