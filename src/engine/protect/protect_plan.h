/*
 * The parts of a plan of the anti-AI engine: a picture's units, the peak of each block, and their histograms.
 * The histograms give the error at any scale.
 */
#ifndef ENGINE_PROTECT_PROTECT_PLAN_H
#define ENGINE_PROTECT_PROTECT_PLAN_H

#include <math.h>

#include <imgward/protect.h>

#include "engine/protect/protect_unit.h"

enum {
    delta_peak = 22, /* the largest change of a sample in levels of 255: the peak of the strength high */
    room_count = delta_peak + 1,
    histogram_places = room_count * (unit_peak + 1),
    scale_peak = 63, /* the scale at which a 127th of the largest unit would be so many levels */
    step_bits = 30   /* a unit's change is its size in steps of 2^-30 levels where samples have 8 bits */
};

struct protect_plan {
    uint32_t width_px, height_px;
    unsigned colors; /* 1 or 3 */
    unsigned depth_bits;
    double peak_share; /* share of the perturbation at its peak where the picture has no masking */
    struct unit_hiding hiding;
    double scale; /* of the last protect_render; 0: none */
    /* The number of samples of every eighth row at histogram_place; after counting, the number with that room
     * or more. */
    uint64_t histogram[unit_rows][histogram_places];
    uint64_t
        peaks_histogram[histogram_places]; /* of every eighth row, without the limit of the sample range */
    int8_t *units;                         /* row by row, colors a pixel, and one extra row */
    uint8_t *peaks; /* of blocks, row by row: the largest change of a sample, in levels of 255 */
    uint8_t *line;  /* a value for each sample of a row */
};

static inline size_t plan_row_samples(const struct protect_plan *plan)
{
    return (size_t)plan->width_px * plan->colors;
}

static inline int8_t *plan_row(const struct protect_plan *plan, uint32_t y)
{
    return plan->units + y * plan_row_samples(plan);
}

/* room: levels to the end of the range in the direction of the unit, or to the sample's peak. */
static inline int histogram_place(int room, int unit)
{
    return room * (unit_peak + 1) + (unit < 0 ? -unit : unit);
}

/*
 * The common rounding of all code that moves 8-bit samples: in integers, the same in every loop.  A mantissa
 * times the maximum of steps has less than 30 bits, so the size of 0 has no effect.
 */
static inline int delta_of8(int size, int odd, int steps)
{
    const int delta = ((unit_mantissa(size, odd) * steps >> (step_bits - 1 - unit_octave(size))) + 1) >> 1;
    return delta < delta_peak ? delta : delta_peak;
}

/* At scale 1 the largest unit moves by unit_peak levels. */
static inline int steps_of(double scale)
{
    return (int)(fmin(scale, scale_peak) * unit_peak / unit_peak_size * (1 << step_bits) + 0.5);
}

/* The change by a unit of a row in levels of 255; rounded at the depth of the samples. */
static inline double delta_of(const struct protect_plan *plan, int size, int odd, double scale)
{
    if (plan->depth_bits == 8)
        return delta_of8(size, odd, steps_of(scale));
    const double share =
        size > 0 ? (double)(unit_mantissa(size, odd) << unit_octave(size)) / unit_peak_size : 0;
    return fmin(share * unit_peak * scale, delta_peak);
}

/* Expands the peaks of blocks to each sample of a row. */
void plan_line(const struct protect_plan *plan, uint32_t y, const uint8_t values[room_count]);

/* Counts all samples. */
void plan_count(struct protect_plan *plan, const struct image *image);

/* The sum of squared errors in levels of 255. */
double plan_squares(const struct protect_plan *plan, double scale);

/* The share of the perturbation, as roots of its size, in samples at their peak, without the limit of the
 * range.  It rises with the scale. */
double plan_share_at_peak(const struct protect_plan *plan, double scale);

#endif
