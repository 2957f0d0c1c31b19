/*
 * Pictures as planes of luma and Cb, scale 0..255, and filters on planes. Planes are
 * area-reduced, so the later steps cost the same for every picture size.
 */
#ifndef ENGINE_WATERMARK_PLANE_H
#define ENGINE_WATERMARK_PLANE_H

#include "engine/image.h"
#include "engine/watermark/workspace.h"

struct plane {
    int width;
    int height;
    float *luma;
    float *blue;   /* Cb around 0; NULL for a grey picture */
    float *weight; /* opaque share of the pixel; NULL if all are opaque */
};

/* PLANE_LUMA: luma and Cb. PLANE_COLOR, for colour pictures: 128 + Cb in luma's place, Cr in Cb's. */
enum plane_kind { PLANE_LUMA, PLANE_COLOR };

/*
 * Reads a picture. Every plane pixel is the mean over a square of step pixels (step >= 1). Transparent
 * pixels are filled from their neighbourhood. The planes belong to the workspace. Returns false if memory is
 * short.
 */
bool plane_read(const struct image *image, enum plane_kind kind, double step, struct workspace *workspace,
                struct plane *plane);

/*
 * Blurs with a box of side 2 * radius + 1, which is smaller at the edges. scratch holds width * height
 * values.
 */
void plane_blur(const float *from, float *to, int width, int height, int radius, float *scratch);

#endif
