/*
 * The unit perturbation of a picture: the network run over it, bounded, under the
 * texture mask, as whole numbers.  These are small floats of three bits of mantissa,
 * for strokes are up to a thousand times as strong as most of a perturbation.  What they
 * stand for is known but for a power of two, which the scale makes good: on one picture
 * the strongest is a million times what it is on another.
 */
#ifndef ENGINE_PROTECT_PROTECT_UNIT_H
#define ENGINE_PROTECT_PROTECT_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/error.h>
#include <imgward/image.h>

#include "engine/protect/protect_hide.h"
#include "engine/protect/protect_net.h"

/*
 * Units are -unit_peak..unit_peak.  0 stands for nothing; the sizes of 1..8 are eight numbers in even steps,
 * those of 9..16 twice as much, and so on: nearly sixteen octaves.
 *
 * Eight rows take turns with where a step begins, at its sixteenths 1, 3 .. 15 (unit_odd).  All samples of
 * one size cross a rounding threshold, some levels and a half, at the same scale; where most are of much the
 * same size, as on one colour at the strength high, the PSNR would jump there by a whole decibel.  So an
 * eighth of them does.  And as these numbers are odd, none of a row's eight goes into another: no size is an
 * odd multiple of another one, whose thresholds it would share, and even multiples of a threshold are none.
 */
enum {
    unit_peak = 127,
    unit_octave_steps = 8,
    unit_step = 16,
    unit_rows = 8,
    unit_peak_size = 232 << 15 /* of the largest, in the middle of the eight rows */
};

static inline int unit_odd(uint32_t y)
{
    return (int)(2 * (y % unit_rows) + 1);
}

/* What |unit| stands for is its mantissa << its octave; the octave of 0 is -1, and of no use. */
static inline int unit_mantissa(int size, int odd)
{
    return unit_step * (unit_octave_steps + ((size - 1) & (unit_octave_steps - 1))) + odd;
}

static inline int unit_octave(int size)
{
    return (size - 1) >> 3;
}

/* How much a picture hides. */
struct unit_hiding {
    double mean;  /* of the texture mask, 0..1 */
    bool is_bare; /* it has nowhere any texture: one colour, or a gradient that was drawn */
};

/* What a strength asks of the unit perturbation. */
struct unit_way {
    enum net_network network;
    struct canvas_hiding hiding;
    struct canvas_peaks peaks;
    float amplitude; /* how far what is drawn moves what the next pass looks at, where the mask is 1 */
    float blue;      /* how many times as much is drawn of blue against yellow where the mask is low */
    float pale;      /* how much of colour along rows is left out */
    float level;     /* how much is left of level lines */
    unsigned table;  /* of gains, below spectra_tables */
    float dither;    /* root mean square of the grain of smooth places and others, before all is scaled, where
                        all    of a picture gets any; else as much less as the share that does */
};

/*
 * The rank of a value is the unit nearest to it, if units began far below what is drawn on any picture and
 * had no end: that of the largest of count values.  odd is unit_odd of their row.  Nearest is meant of the
 * bits of a float, so of values within an octave.
 */
int units_rank(const float *values, size_t count, int odd);

/* Stores count values as units: their ranks less floor_rank, whole octaves, or 0 where that is less. */
void units_store(const float *values, size_t count, int odd, int floor_rank, int8_t *units);

/* Makes of units what units_store would have stored for a floor_rank more by so many ranks, whole octaves. */
void units_lower(int8_t *units, size_t count, int ranks);

/*
 * Fills units, all 0 before, row by row, one value a pixel for a grey picture and three for
 * one of RGB; the largest is in the last octave.  Fills peaks, one for every block of the picture. NO_MEMORY.
 */
enum iw_error unit_compute(const struct net *net, const struct image *image, const struct unit_way *way,
                           uint64_t seed, int8_t *units, uint8_t *peaks,
                           struct unit_hiding *hiding) IW_MUST_USE;

#endif
