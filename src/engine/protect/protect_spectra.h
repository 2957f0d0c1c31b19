/*
 * Companding of the perturbation towards the spectrum of the picture that masks it.  A picture masks patterns
 * of its texture's size and orientation: grain masks grain, but not a row of equal strokes.
 *
 * Windows of 16x16 pixels overlap by half.  The luma of each is transformed to 8x8 frequencies.  Every
 * amplitude of the perturbation is raised to the power 15/16.  The remaining 1/16 comes from the picture's
 * amplitude at that frequency, or from the threshold of visibility where there is none.  Level lines are
 * attenuated further.
 *
 * Each strength has a table of gains (tools/gains.py), indexed by a window's brightness, its masking and its
 * perturbation.  The gains are those of groups of frequencies, of blue and red, and of the chroma along rows
 * that is removed.
 */
#ifndef ENGINE_PROTECT_PROTECT_SPECTRA_H
#define ENGINE_PROTECT_PROTECT_SPECTRA_H

#include <stdbool.h>
#include <stddef.h>

enum {
    spectra_side = 16,               /* px of a window in each direction */
    spectra_step = spectra_side / 2, /* distance from one window to the next */
    spectra_bins = spectra_side / 2, /* frequencies in each direction: (k + 1/2) / 16 cycles a pixel */
    spectra_waves = 2 * spectra_bins /* cosines, then sines */
};

/* The fields that are interpolated between windows: gains of colours, and the chroma that is removed along
 * rows. */
enum spectra_field { FIELD_BLUE, FIELD_RED, FIELD_PALE, spectra_field_count };

enum {
    spectra_rings = 4, /* of frequencies, by cycles a window */
    spectra_turns = 3, /* sectors of a radial band: upright strokes, slanting ones, level lines */
    spectra_groups = spectra_rings * spectra_turns, /* of frequencies with a common gain */
    spectra_gains = spectra_groups + spectra_field_count,
    spectra_lanes = 16, /* gains of a cell, padded */
    spectra_nodes = 4,
    spectra_tables = 3 /* of a weights file, one for each strength */
};

/* Gains at nodes of a window's mean luma, of its masking and of its perturbation, the last two as root mean
 * squares. */
struct spectra_table {
    float cells[spectra_nodes][spectra_nodes][spectra_nodes][spectra_lanes];
};

/*
 * Cosines and sines of the frequencies under a half sine wave, orthonormal over all windows together.  The
 * second half of a window mirrors the first.
 */
struct spectra {
    float waves[spectra_waves][spectra_step];
    float just_seen[spectra_bins][spectra_bins];
    float shares[spectra_step]; /* weight of the second of two windows in each pixel of their overlap */
    unsigned char groups[spectra_bins][spectra_bins];
    float light[spectra_nodes], hides[spectra_nodes],
        drawn[spectra_nodes]; /* nodes; logarithms, except those of light */
};

/* The parameters of a strength. */
struct spectra_way {
    float level; /* share of level lines that stays */
    const struct spectra_table *table;
};

void spectra_init(struct spectra *spectra);

/*
 * Adds to sums the companded perturbation (drawn) of a row of windows over the luma of picture, 0..1.  All
 * have spectra_side rows, stride values apart.  The sum is complete where windows overlap on all sides.
 * fields: spectra_field_count values a window.
 */
void spectra_compand(const struct spectra *spectra, const float *drawn, const float *picture, size_t stride,
                     size_t windows, const struct spectra_way *way, float *sums, float *fields);

/*
 * The rows of pixels under two overlapping rows of windows, planes of luma: the perturbation, the picture,
 * and the companded sum.  They move down a picture by spectra_step rows.
 */
enum { spectra_rows_count = spectra_side + spectra_step };

struct spectra_rows {
    float *drawn, *picture, *companded;
    float *upper, *lower; /* fields of the two rows of windows */
    size_t stride;        /* of the rows, in values */
};

static inline float *spectra_row(const struct spectra_rows *rows, float *plane, unsigned place)
{
    return plane + place * rows->stride;
}

/* The last spectra_side rows become the first; the caller fills those after them. */
void spectra_rows_advance(struct spectra_rows *rows);

/*
 * Adds the lower row of windows.  With is_first also the upper row, because no sum exists from the rows
 * above.  The spectra_step rows in the middle are complete after it.
 */
void spectra_rows_compand(const struct spectra *spectra, struct spectra_rows *rows, size_t windows,
                          const struct spectra_way *way, bool is_first);

/*
 * The fields of one of the spectra_step rows of pixels in the middle, interpolated between windows.  They
 * start at the second window, with spectra_step values for each window but the last.  The next field follows
 * stride values on.
 */
void spectra_rows_fields(const struct spectra *spectra, const struct spectra_rows *rows, size_t windows,
                         unsigned row, float *fields);

#endif
