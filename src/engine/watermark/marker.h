/*
 * Lays the pattern over a picture: tiles times mask, rounded and clipped to the
 * picture's own samples.
 */
#ifndef ENGINE_WATERMARK_MARKER_H
#define ENGINE_WATERMARK_MARKER_H

#include <imgward/image.h>

#include "engine/watermark/texture.h"
#include "engine/watermark/underlay.h"

/* Where the pixels of a row lie on a smaller mask. */
struct marker_stretch {
    float *line;     /* scratch: a row of the mask, and one pixel more at both ends */
    int32_t *places; /* on that, for each pixel: the one before it, */
    float *ways;     /* and how far it is on the way to the next */
};

struct marker {
    const struct image *image;
    const struct texture_mask *texture; /* of the picture itself, at gain; */
    float gain;
    const float *luma_mask; /* or the masks of a smaller plane, to be stretched: */
    const float *blue_mask; /* standard deviations of the pattern, in grey levels of 255 */
    struct marker_stretch stretch;
    double step; /* picture pixels a mask pixel */
    int mask_width;
    int mask_height;
    int period_px; /* side of a tile */
    const float *luma_tile;
    const float *blue_tile;          /* NULL for a grey picture */
    float *luma_row;                 /* scratch: width of the picture */
    float *blue_row;                 /* twice that */
    float *red_row;                  /* the width */
    const struct underlay *underlay; /* or NULL */
    int16_t *changes;                /* channels times that */
};

/* Makes a marker with smaller masks ready.  False when there is no memory.  The workspace's. */
bool marker_stretch_init(struct marker *marker, struct workspace *workspace);

/* One marked row into to (which may be the picture's own); the sum of squared errors on the scale 0..255. */
double marker_row(const struct marker *marker, uint32_t y, void *to);

#endif
