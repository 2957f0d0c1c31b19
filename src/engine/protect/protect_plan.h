/*
 * What a plan of the anti-AI engine is made of: a picture's units, how far each of its blocks may move, and
 * the counts of both that say what any scale makes of them.
 */
#ifndef ENGINE_PROTECT_PROTECT_PLAN_H
#define ENGINE_PROTECT_PROTECT_PLAN_H

#include <math.h>

#include <imgward/protect.h>

#include "engine/protect/protect_unit.h"

enum {
    delta_peak = 22, /* no sample moves by more levels (of 255) than this: the peak of the strength high */
    room_count = delta_peak + 1,
    histogram_places = room_count * (unit_peak + 1),
    scale_peak = 63, /* where a 127th of the largest unit would move by so many levels */
    step_bits = 30   /* what a unit moves by is its size in steps of 2^-30 levels where samples have 8 bits */
};

struct protect_plan {
    uint32_t width_px, height_px;
    unsigned colors; /* 1 or 3 */
    unsigned depth_bits;
    double peak_share; /* of what is drawn, at its peak where nothing hides it */
    struct unit_hiding hiding;
    double scale; /* of the last protect_render; 0: none */
    /* How many samples of every eighth row at histogram_place; once all are counted, with that room or
     * more. */
    uint64_t histogram[unit_rows][histogram_places];
    uint64_t peaks_histogram[histogram_places]; /* of every eighth row, as if the range had no end */
    int8_t *units;                              /* row by row, colors a pixel, and one row more */
    uint8_t *peaks; /* of blocks, row by row: what no sample moves by more than, in levels of 255 */
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

/* room: levels to the end of the range towards which the unit moves the sample, or to its peak. */
static inline int histogram_place(int room, int unit)
{
    return room * (unit_peak + 1) + (unit < 0 ? -unit : unit);
}

/*
 * Rounded as everywhere where 8-bit samples are moved: in whole numbers, the same in every loop.  A mantissa
 * times the most steps has less than 30 bits, so that what it takes for the size of 0 comes to nothing.
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

/* What a unit of a row becomes, in levels of 255; rounded where the samples are. */
static inline double delta_of(const struct protect_plan *plan, int size, int odd, double scale)
{
    if (plan->depth_bits == 8)
        return delta_of8(size, odd, steps_of(scale));
    const double share =
        size > 0 ? (double)(unit_mantissa(size, odd) << unit_octave(size)) / unit_peak_size : 0;
    return fmin(share * unit_peak * scale, delta_peak);
}

/* Makes of each sample of a row the value of the peak of its block. */
void plan_line(const struct protect_plan *plan, uint32_t y, const uint8_t values[room_count]);

/* Counts all samples. */
void plan_count(struct protect_plan *plan, const struct image *image);

/* The sum of squared errors in levels of 255. */
double plan_squares(const struct protect_plan *plan, double scale);

/* The share of what is drawn, as roots of its size, that is in samples that move as far as they may, or would
 * if the range had no end; it rises with the scale. */
double plan_share_at_peak(const struct protect_plan *plan, double scale);

#endif
