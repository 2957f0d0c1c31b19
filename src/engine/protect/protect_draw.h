/*
 * Rows of pixels between the layers of the anti-AI network: what was drawn is
 * bounded, hidden under the mask, brought to twice the size and laid over a picture.
 * Rows are three values a pixel, those of the mask as well, and their counts are of values.
 */
#ifndef ENGINE_PROTECT_PROTECT_DRAW_H
#define ENGINE_PROTECT_PROTECT_DRAW_H

#include <stddef.h>

enum { draw_colors = 3, draw_slack = 2 /* values that are written beyond the last one of some rows */ };

/*
 * One of the two rows of pixels that places of the last layer are: each the first six of
 * net_raw_row values.  draw_slack more are written.
 */
void draw_unpacked(const float *raw, size_t places, float *values);

/* values * mask */
void draw_hidden(float *values, const float *mask, size_t count);

/* Values of any size to -1..1: v / sqrt(1 + v²). */
void draw_softened(float *values, size_t count);

/* The luma of count pixels. */
void draw_luma(const float *pixels, size_t count, float *luma);

/* Pixels whose luma becomes another one, and of whose colour blue and red are multiplied: luma, blue and red
 * one value a pixel, count values of pixels. */
void draw_recast(float *values, const float *luma, const float *luma_before, const float *blue,
                 const float *red, size_t count);

/*
 * Blue against yellow, which is hardly seen, blue times as much where the mask is low and no more than before
 * where it is 1; luma stays.  To be called before draw_hidden.
 */
void draw_blued(float *values, const float *mask, float blue, size_t count);

enum { draw_paled_px = 8 };

/* The mean colour, what is not luma, of blocks of draw_paled_px pixels of a row. */
void draw_colors_mean(const float *values, size_t blocks, float *means);

/* How strong the colour of a block may be, at most, as the root of its squares. */
static const float draw_row_color = 0.3f;

/* Of blocks' mean colours what is bounded: nearly all of faint ones, no more than that of strong ones. */
void draw_colors_bound(const float *means, size_t blocks, float *bounded);

/*
 * A row of pixels without the colour that runs along it, what blocks have on the average, between them a
 * quadratic spline, but for a share of what is bounded, 1 - pale.  means, bounded: of blocks, from the one
 * before the first to the one after the last.  times: one value a pixel that pale is multiplied by, to 1 at
 * most.  count: of values.
 */
void draw_paled(float *values, float pale, const float *times, const float *means, const float *bounded,
                size_t count);

/* values * (1 - calm) + grain * granted * its times. */
void draw_dithered(float *values, const float *calm, const float *granted, float grain_times,
                   const float *grain, size_t count);

/* Pixels that keep so much of their colour, 0..1, and all of their luma. */
void draw_tinted(float *values, float color, size_t count);

/* values + times * added */
void draw_added(float *values, const float *added, float times, size_t count);

/*
 * A row of twice the size, bilinear: own lies at three quarters of it, beside, the row
 * above or below, at a quarter.  count: of values; both rows begin with the pixel before
 * and end with the one after; between has room for as much and draw_slack more, as values has.
 */
void draw_doubled(const float *own, const float *beside, size_t count, float *between, float *values);

/* A row of half the size, count values: the means of 2x2 pixels of two rows.  The upper one is lost. */
void draw_halved(float *upper, const float *lower, size_t count, float *values);

#endif
