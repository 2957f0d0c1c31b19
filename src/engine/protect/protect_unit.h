/*
 * A perturbation of any scale as one byte a sample.  Units are small floats: a sign, four bits of exponent
 * and three bits of mantissa.  The largest value is not known in advance; stored units are lowered by whole
 * octaves when a larger one appears.
 */
#ifndef ENGINE_PROTECT_PROTECT_UNIT_H
#define ENGINE_PROTECT_PROTECT_UNIT_H

#include <stddef.h>
#include <stdint.h>

enum { unit_peak = 127, unit_octave_steps = 8 };

/* Units that share their scale: several runs of memory. */
struct units {
    struct {
        int8_t *values;
        size_t count;
    } runs[3];
    unsigned run_count;
    int floor_rank; /* the rank of unit 0; begins at 0 */
};

/* Stores count values; lowers all runs first if a value is too large. */
void units_store(struct units *units, const float *values, size_t count, int8_t *stored);

/* Restores count values, each to about a sixteenth. */
void units_load(const int8_t *stored, int floor_rank, size_t count, float *values);

#endif
