/*
 * Lays the pattern over a picture: tiles times mask, rounded and clipped to the
 * picture's own samples.
 */
#ifndef ENGINE_MARKER_H
#define ENGINE_MARKER_H

#include <imgward/image.h>

#include "engine/texture.h"

struct marker {
    const struct image *image;
    double step; /* picture pixels a mask pixel */
    int mask_width;
    int mask_height;
    int period_px; /* side of a tile */
    const float *luma_tile;
    const float *blue_tile; /* NULL for a grey picture */
    const float *luma_mask; /* standard deviation of the pattern, in grey levels of 255 */
    const float *blue_mask;
    float *luma_row; /* scratch: width of the picture */
    float *blue_row;
};

/* One marked row into to (which may be the picture's own); the sum of squared errors on the scale 0..255. */
double marker_row(const struct marker *marker, uint32_t y, void *to);

#endif
