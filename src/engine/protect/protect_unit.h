/*
 * The unit perturbation of a picture: the output of the network, bounded, multiplied by the texture mask and
 * stored as integers.  These are small floats with three bits of mantissa, because strokes are up to a
 * thousand times as strong as most of a perturbation.  Their values are relative; the scale supplies the
 * missing power of two.  The strongest unit of one picture can be a million times that of another.
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
 * Units are -unit_peak..unit_peak.  Unit 0 is no change.  The sizes of 1..8 are eight numbers in even steps,
 * those of 9..16 twice as much, and so on: nearly sixteen octaves.
 *
 * The start of a step cycles over eight rows, at its sixteenths 1, 3 .. 15 (unit_odd).  All samples of one
 * size cross a rounding threshold (some levels and a half) at the same scale.  Where most sizes are similar,
 * as on one colour at the strength high, the PSNR would jump there by a decibel.  With the cycle only an
 * eighth of the samples jumps.
 *
 * The eight numbers of a row are odd and none divides another.  So no size is an odd multiple of another and
 * shares its thresholds.  Even multiples of a threshold are not thresholds.
 */
enum {
    unit_peak = 127,
    unit_octave_steps = 8,
    unit_step = 16,
    unit_rows = 8,
    unit_peak_size = 232 << 15 /* of the largest unit, in the middle of the eight rows */
};

static inline int unit_odd(uint32_t y)
{
    return (int)(2 * (y % unit_rows) + 1);
}

/* The value of |unit| is its mantissa << its octave.  The octave of 0 is -1 and must not be used. */
static inline int unit_mantissa(int size, int odd)
{
    return unit_step * (unit_octave_steps + ((size - 1) & (unit_octave_steps - 1))) + odd;
}

static inline int unit_octave(int size)
{
    return (size - 1) >> 3;
}

/* The masking of a picture. */
struct unit_hiding {
    double mean;  /* of the texture mask, 0..1 */
    bool is_bare; /* no texture anywhere: one colour, or a drawn gradient */
};

/* The parameters of a strength for the unit perturbation. */
struct unit_way {
    enum net_network network;
    struct canvas_hiding hiding;
    struct canvas_peaks peaks;
    float amplitude; /* of the perturbation in the input of the next pass, where the mask is 1 */
    float blue;      /* gain of blue-yellow contrast where the mask is low */
    float pale;      /* share of the chroma along rows that is removed */
    float level;     /* share of level lines that stays */
    unsigned table;  /* of gains, below spectra_tables */
    float dither; /* root mean square of the grain on smooth and other places before scaling, where the whole
                     picture gets grain.  Otherwise it is reduced in proportion to the share that does */
};

/*
 * The rank of a value is its nearest unit, as if units began far below any perturbation and had no end.
 * Returns the rank of the largest of count values.  odd is unit_odd of their row.  Nearest applies to the
 * bits of a float, so to values within an octave.
 */
int units_rank(const float *values, size_t count, int odd);

/* Stores count values as units: their ranks minus floor_rank (whole octaves), or 0 where that is less. */
void units_store(const float *values, size_t count, int odd, int floor_rank, int8_t *units);

/* Converts units to those that units_store would have stored for a floor_rank higher by ranks, which is whole
 * octaves. */
void units_lower(int8_t *units, size_t count, int ranks);

/*
 * Fills units, which must be 0, row by row: one value a pixel for a grey picture, three for RGB.  The largest
 * is in the last octave.  Fills peaks, one for every block of the picture.  Error: NO_MEMORY.
 */
enum iw_error unit_compute(const struct net *net, const struct image *image, const struct unit_way *way,
                           uint64_t seed, int8_t *units, uint8_t *peaks,
                           struct unit_hiding *hiding) IW_MUST_USE;

#endif
