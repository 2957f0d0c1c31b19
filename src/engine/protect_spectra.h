/*
 * Brings what was drawn nearer to the spectrum of what hides it.  A picture hides what
 * is of the size and height of its own texture: grain hides grain, but no row of equal
 * strokes.  So in windows of 16x16 pixels, every half of which another begins, luma is taken
 * apart into 8x8 frequencies, and of what was drawn every amplitude is taken to the
 * power of fifteen sixteenths; the rest is given by how much of that frequency the picture
 * has, and by what is just seen where it has none.  Of level lines less is left, and nowhere is
 * left much more than a strength's ceiling.
 */
#ifndef ENGINE_PROTECT_SPECTRA_H
#define ENGINE_PROTECT_SPECTRA_H

#include <stdbool.h>
#include <stddef.h>

enum {
    spectra_side = 16,               /* px of a window, each way */
    spectra_step = spectra_side / 2, /* from where one window begins to where the next does */
    spectra_bins = spectra_side / 2, /* frequencies, each way: (k + 1/2) / 16 cycles a pixel */
    spectra_waves = 2 * spectra_bins /* cosines, then sines */
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
};

/* What a strength asks for. */
struct spectra_way {
    float level;   /* how much is left of level lines */
    float ceiling; /* of the root mean square of what was drawn in a window, which is left with no more than
                      that; 9 is as good as none, for what is drawn is bounded by 1 */
};

void spectra_init(struct spectra *spectra);

/*
 * Adds to sums what a row of windows makes of drawn over the luma of picture, 0..1.  All are
 * of spectra_side rows, stride values apart.  Where windows lie over one another on all
 * sides, the sum is whole.  gains: what each window has to be multiplied by to stay under the ceiling.
 */
void spectra_compand(const struct spectra *spectra, const float *drawn, const float *picture, size_t stride,
                     size_t windows, const struct spectra_way *way, float *sums, float *gains);

/*
 * The rows of pixels that two rows of windows lie over, planes of luma: what was drawn, the
 * picture, and the sum of what it becomes.  They go down a picture, spectra_step rows at a time.
 */
enum { spectra_rows_count = spectra_side + spectra_step };

struct spectra_rows {
    float *drawn, *picture, *companded;
    float *upper, *lower; /* gains of the two rows of windows */
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
 * What the pixels of one of the spectra_step rows in the middle have to be multiplied by: the gains of
 * windows, one going over into the next.  From where the second window begins on, spectra_step gains a window
 * but the last.
 */
void spectra_rows_gains(const struct spectra *spectra, const struct spectra_rows *rows, size_t windows,
                        unsigned row, float *gains);

#endif
