/*
 * Rows of pixels between the layers of the anti-AI network.  The network's output is bounded, multiplied by
 * the mask, upsampled and added to a picture.  Rows, also those of the mask, have three values a pixel.
 * Their counts are counts of values.
 */
#ifndef ENGINE_PROTECT_PROTECT_DRAW_H
#define ENGINE_PROTECT_PROTECT_DRAW_H

#include <stddef.h>

enum { draw_colors = 3, draw_slack = 2 /* values that are written beyond the end of some rows */ };

/*
 * Unpacks one of the two rows of pixels of the last layer's places: the first six of each net_raw_row values.
 * Writes draw_slack more.
 */
void draw_unpacked(const float *raw, size_t places, float *values);

/* values * mask */
void draw_hidden(float *values, const float *mask, size_t count);

/* Bounds values of any size to -1..1: v / sqrt(1 + v²). */
void draw_softened(float *values, size_t count);

/* The luma of count pixels. */
void draw_luma(const float *pixels, size_t count, float *luma);

/* Replaces the luma of pixels and multiplies their blue and red chroma.  luma, blue and red have one value a
 * pixel.  count: values of pixels. */
void draw_recast(float *values, const float *luma, const float *luma_before, const float *blue,
                 const float *red, size_t count);

/*
 * Multiplies blue-yellow contrast, which is hardly visible, by blue where the mask is low and by 1 where it
 * is 1.  Luma stays.  Call it before draw_hidden.
 */
void draw_blued(float *values, const float *mask, float blue, size_t count);

enum { draw_paled_px = 8 };

/* The mean chroma (colour without luma) of blocks of draw_paled_px pixels of a row. */
void draw_colors_mean(const float *values, size_t blocks, float *means);

/* The largest chroma of a block, as the root of its squares. */
static const float draw_row_color = 0.3f;

/* Bounds the mean chroma of blocks: faint chroma stays nearly unchanged, strong chroma is limited. */
void draw_colors_bound(const float *means, size_t blocks, float *bounded);

/*
 * Removes the chroma that runs along a row: the block means, interpolated by a quadratic spline.  The share 1
 * - pale of the bounded chroma stays.  means, bounded: of blocks, from the one before the first to the one
 * after the last.  times: one factor of pale a pixel; the product is at most 1.  count: of values.
 */
void draw_paled(float *values, float pale, const float *times, const float *means, const float *bounded,
                size_t count);

/* values * (1 - calm) + grain_times * granted * grain. */
void draw_dithered(float *values, const float *calm, const float *granted, float grain_times,
                   const float *grain, size_t count);

/* Multiplies the chroma of pixels by color, 0..1; luma stays. */
void draw_tinted(float *values, float color, size_t count);

/* values + times * added */
void draw_added(float *values, const float *added, float times, size_t count);

/*
 * A row of twice the size, bilinear.  own has the weight three quarters; beside, the row above or below, one
 * quarter.  count: of values.  Both rows begin with the pixel before and end with the pixel after.  between
 * and values have room for count and draw_slack more.
 */
void draw_doubled(const float *own, const float *beside, size_t count, float *between, float *values);

/* A row of half the size, count values: the means of 2x2 pixels of two rows.  Overwrites the upper row. */
void draw_halved(float *upper, const float *lower, size_t count, float *values);

#endif
