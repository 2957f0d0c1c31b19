/*
 * A picture on the network's grid of 16x16 pixels.  It is moved by a seeded offset and its edge pixels repeat
 * beyond its borders.  Any depth and number of channels is read as RGB 0..1, at full or half size.  The
 * canvas also holds the data that depend only on grid places: the seeded noise, one for each 16x16 px, and
 * the grain.
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
    canvas_reach_px = 256 /* extent of the noise left of the picture and above it */
};

struct canvas {
    const struct image *image; /* borrowed */
    unsigned left_px, top_px;  /* 0 or 16: the start of the picture */
    unsigned rows, columns;    /* in blocks; whole grid places */
    uint64_t noise_key, grain_key;
    float levels[256]; /* 8-bit samples as 0..1 */
};

/* The seed determines the grid's offset and the noise. */
void canvas_init(struct canvas *canvas, const struct image *image, uint64_t seed);

/* Reads count pixels of RGB 0..1 from grid place x_px, y_px; both may lie outside the picture. */
void canvas_pixels(const struct canvas *canvas, int64_t y_px, int64_t x_px, size_t count, float *values);

/* The same at half size: count means of 2x2 pixels from place y, x of a grid half as wide. */
void canvas_pixels_halved(const struct canvas *canvas, int64_t y, int64_t x, size_t count, float *values);

/* The same at a quarter of the size. */
void canvas_pixels_quartered(const struct canvas *canvas, int64_t y, int64_t x, size_t count, float *values);

/* The noise of a grid place: values of -1..1. */
void canvas_noise(const struct canvas *canvas, int64_t row, int64_t column,
                  float values[canvas_noise_values]);

/* The grain of count pixels of a row, three values each, from grid place x_px, y_px.  The place may lie
 * outside the picture within canvas_reach_px. */
void canvas_grain(const struct canvas *canvas, const struct grain *grain, int64_t y_px, int64_t x_px,
                  size_t count, float *values);

/* Clamps a value to 0..end - 1. */
static inline int64_t canvas_clamped(int64_t value, int64_t end)
{
    return value < 0 ? 0 : value >= end ? end - 1 : value;
}

#endif
