/*
 * Brings what was drawn nearer to the spectrum of what hides it.  A picture hides what
 * is of the size and height of its own texture: grain hides grain, but no row of equal
 * strokes.  So in windows of 16x16 pixels, every half of which another begins, luma is taken
 * apart into 8x8 frequencies, and of what was drawn every amplitude is taken to the
 * power of fifteen sixteenths; the rest is given by how much of that frequency the picture
 * has, and by what is just seen where it has none.  Of level lines less is left.  And each
 * strength has a table of gains (tools/gains.py), by how light a window is, by what hides in it and
 * by what was drawn there: of groups of frequencies, of blue and red, and of how much of the
 * colour along rows is left out.
 */
#ifndef ENGINE_PROTECT_PROTECT_SPECTRA_H
#define ENGINE_PROTECT_PROTECT_SPECTRA_H

#include <stdbool.h>
#include <stddef.h>

enum {
    spectra_side = 16,               /* px of a window, each way */
    spectra_step = spectra_side / 2, /* from where one window begins to where the next does */
    spectra_bins = spectra_side / 2, /* frequencies, each way: (k + 1/2) / 16 cycles a pixel */
    spectra_waves = 2 * spectra_bins /* cosines, then sines */
};

/* What goes over from one window into the next: gains of colours, and of what is left out along rows. */
enum spectra_field { FIELD_BLUE, FIELD_RED, FIELD_PALE, spectra_field_count };

enum {
    spectra_rings = 4, /* of frequencies, by cycles a window */
    spectra_turns = 3, /* of a ring: upright strokes, slanting ones, level lines */
    spectra_groups = spectra_rings * spectra_turns, /* of frequencies that have a gain in common */
    spectra_gains = spectra_groups + spectra_field_count,
    spectra_lanes = 16, /* gains of a cell, and values of nothing */
    spectra_nodes = 4,
    spectra_tables = 3 /* of a weights file, one a strength */
};

/* Gains at nodes of a window's mean luma, of the root mean square of what hides in it, and of what was drawn.
 */
struct spectra_table {
    float cells[spectra_nodes][spectra_nodes][spectra_nodes][spectra_lanes];
};

/*
 * Cosines and sines of the frequencies under a half wave of a sine, orthonormal over
 * all windows together.  The second half of a window mirrors the first.
 */
struct spectra {
    float waves[spectra_waves][spectra_step];
    float just_seen[spectra_bins][spectra_bins];
    float shares[spectra_step]; /* of the second of two windows in each pixel of where they lie over one
                                   another */
    unsigned char groups[spectra_bins][spectra_bins];
    float light[spectra_nodes], hides[spectra_nodes],
        drawn[spectra_nodes]; /* nodes; logarithms but of light */
};

/* What a strength asks for. */
struct spectra_way {
    float level; /* how much is left of level lines */
    const struct spectra_table *table;
};

void spectra_init(struct spectra *spectra);

/*
 * Adds to sums what a row of windows makes of drawn over the luma of picture, 0..1.  All are
 * of spectra_side rows, stride values apart.  Where windows lie over one another on all
 * sides, the sum is whole.  fields: spectra_field_count values a window.
 */
void spectra_compand(const struct spectra *spectra, const float *drawn, const float *picture, size_t stride,
                     size_t windows, const struct spectra_way *way, float *sums, float *fields);

/*
 * The rows of pixels that two rows of windows lie over, planes of luma: what was drawn, the
 * picture, and the sum of what it becomes.  They go down a picture, spectra_step rows at a time.
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

/* The last spectra_side rows become the first; those after them are to be filled. */
void spectra_rows_advance(struct spectra_rows *rows);

/*
 * Adds the lower row of windows; the upper one, too, when it is_first, for then there is no
 * sum from the rows above.  The spectra_step rows in the middle are whole after it.
 */
void spectra_rows_compand(const struct spectra *spectra, struct spectra_rows *rows, size_t windows,
                          const struct spectra_way *way, bool is_first);

/*
 * The fields of one of the spectra_step rows of pixels in the middle, those of windows going over into one
 * another: from where the second window begins on, spectra_step values a window but the last; the next field
 * follows stride values on.
 */
void spectra_rows_fields(const struct spectra *spectra, const struct spectra_rows *rows, size_t windows,
                         unsigned row, float *fields);

#endif
