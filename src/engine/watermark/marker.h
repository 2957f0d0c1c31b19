/* Adds the pattern to a picture: tiles times mask, rounded and clipped to the range of the samples. */
#ifndef ENGINE_WATERMARK_MARKER_H
#define ENGINE_WATERMARK_MARKER_H

#include "engine/image.h"
#include "engine/watermark/cells.h"
#include "engine/watermark/texture.h"
#include "engine/watermark/underlay.h"

/* Position of a row's pixels on a smaller mask. */
struct marker_stretch {
    float *line;     /* scratch: a row of the mask and a pixel more at both ends */
    int32_t *places; /* per pixel: the mask pixel before it, index into line */
    float *ways;     /* per pixel: fraction of the way to the next mask pixel */
};

struct marker {
    const struct image *image;
    const struct texture_mask *texture; /* of the picture at gain, if luma_mask is NULL */
    float gain;
    const float *luma_mask; /* or masks of a smaller plane, which are interpolated; */
    const float *blue_mask; /* standard deviations of the pattern, grey levels of 255 */
    struct marker_stretch stretch;
    double step; /* picture pixels per mask pixel */
    int mask_width;
    int mask_height;
    int period_px; /* side of a tile */
    const float *luma_tile;
    const float
        *cells;   /* of a compact mark: the changes of luma, in place of masks, luma_tile and blue_tile; */
    int cells_px; /* side */
    struct cells_stripes stripes;
    const float *blue_tile;          /* NULL for a grey picture */
    float *luma_row;                 /* scratch: the picture's width */
    float *blue_row;                 /* scratch: twice the width */
    float *red_row;                  /* scratch: the width */
    const struct underlay *underlay; /* NULL if there is no underlay */
    int16_t *changes;                /* scratch: channels * width */
};

/* Prepares a marker with smaller masks. Memory belongs to the workspace. Returns false if memory is short. */
bool marker_stretch_init(struct marker *marker, struct workspace *workspace);

/*
 * Writes one marked row to `to`, which may be the picture's row. Returns the sum of squared errors on the
 * scale 0..255.
 */
double marker_row(const struct marker *marker, uint32_t y, void *to);

#endif
