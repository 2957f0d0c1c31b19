/*
 * A picture on the network's grid. The edge pixels repeat beyond the borders. Any depth and number of
 * channels is read as RGB 0..1, at full or half size. The canvas also has the seeded noise, with one place
 * for each 16x16 px.
 */
#ifndef ENGINE_PROTECT_CANVAS_H
#define ENGINE_PROTECT_CANVAS_H

#include <stdbool.h>

#include "base/error.h"
#include "engine/image.h"

enum {
    canvas_grid_px = 32, /* of network and pyramid; rows and columns are padded to multiples */
    canvas_noise_px = 16,
    canvas_colors = 3,
    canvas_noise_values = 32,
    canvas_reach_px = 256 /* extent of the noise left of the picture and above it */
};

struct canvas {
    const struct image *image;    /* borrowed */
    unsigned width_px, height_px; /* padded */
    uint64_t noise_key;
};

void canvas_init(struct canvas *canvas, const struct image *image, uint64_t seed);

/* Reads count pixels of RGB 0..1 from place x_px, y_px; both may lie outside the picture. */
void canvas_pixels(const struct canvas *canvas, int64_t y_px, int64_t x_px, size_t count, float *values);

/* Reads the same at half size: count means of 2x2 pixels from place y, x of a grid half as wide. */
void canvas_pixels_halved(const struct canvas *canvas, int64_t y, int64_t x, size_t count, float *values);

/* Returns the noise of a place: values of -1..1. */
void canvas_noise(const struct canvas *canvas, int64_t row, int64_t column,
                  float values[canvas_noise_values]);

#endif
