/*
 * Pictures as planes of luma and of blueness (Cb), on the scale 0..255, reduced
 * by areas so that the later steps cost the same for every size of picture; and
 * the filters on planes.
 */
#ifndef ENGINE_WATERMARK_PLANE_H
#define ENGINE_WATERMARK_PLANE_H

#include <imgward/image.h>

#include "engine/watermark/workspace.h"

struct plane {
    int width;
    int height;
    float *luma;
    float *blue;   /* Cb around 0; NULL for a grey picture */
    float *weight; /* which share of the pixel is not transparent; NULL when all are opaque */
};

/* What a plane shows: luma and Cb, or, of a colored picture, 128 + Cb in luma's place and Cr in Cb's. */
enum plane_kind { PLANE_LUMA, PLANE_COLOR };

/*
 * Reads a picture, every plane pixel the mean over a square of step pixels
 * (step >= 1); transparent pixels are filled in from around them.  False when
 * there is no memory.  The planes are the workspace's.
 */
bool plane_read(const struct image *image, enum plane_kind kind, double step, struct workspace *workspace,
                struct plane *plane);

/* A mean over squares of side 2 * radius + 1, shrunk at the edges. scratch: width * height. */
void plane_blur(const float *from, float *to, int width, int height, int radius, float *scratch);

#endif
