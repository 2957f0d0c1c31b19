/*
 * A picture laid under the network's grid of 16x16 pixels: moved by a seeded
 * offset, its edge pixels repeated beyond its borders, any depth and number of
 * channels read as RGB 0..1, at its own size or at half of it.  And what goes with places
 * of the grid alone: the seeded noise, one for each of 16x16 px, and the grain.
 */
#ifndef ENGINE_PROTECT_PROTECT_CANVAS_H
#define ENGINE_PROTECT_PROTECT_CANVAS_H

#include <stdbool.h>

#include <imgward/error.h>
#include <imgward/image.h>

#include "engine/protect/protect_grain.h"

enum {
    canvas_grid_px = 16,
    canvas_block_px = 4,
    canvas_colors = 3,
    canvas_noise_values = 32,
    canvas_reach_px = 256 /* how far left of the picture and above it there is noise */
};

struct canvas {
    const struct image *image; /* borrowed */
    unsigned left_px, top_px;  /* 0 or 16: where the picture begins */
    unsigned rows, columns;    /* in blocks; whole places of the grid */
    uint64_t noise_key, grain_key;
    float levels[256]; /* 8-bit samples as 0..1 */
};

/* The grid's offset and the noise come from the seed. */
void canvas_init(struct canvas *canvas, const struct image *image, uint64_t seed);

/* count pixels of RGB 0..1 from grid place x_px, y_px on; both may lie outside the picture. */
void canvas_pixels(const struct canvas *canvas, int64_t y_px, int64_t x_px, size_t count, float *values);

/* The same at half of the size: count means of 2x2 pixels from place y, x of a grid half as wide on. */
void canvas_pixels_halved(const struct canvas *canvas, int64_t y, int64_t x, size_t count, float *values);

/* And at a quarter. */
void canvas_pixels_quartered(const struct canvas *canvas, int64_t y, int64_t x, size_t count, float *values);

/* The noise of a place of the grid: values of -1..1. */
void canvas_noise(const struct canvas *canvas, int64_t row, int64_t column,
                  float values[canvas_noise_values]);

/* Grain of count pixels of a row, three values each, from grid place x_px, y_px on, which may lie outside the
 * picture within canvas_reach_px. */
void canvas_grain(const struct canvas *canvas, const struct grain *grain, int64_t y_px, int64_t x_px,
                  size_t count, float *values);

/* The place that is nearest to a value, from 0 on and before an end. */
static inline int64_t canvas_clamped(int64_t value, int64_t end)
{
    return value < 0 ? 0 : value >= end ? end - 1 : value;
}

#endif
