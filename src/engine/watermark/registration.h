/*
 * Finds the affine map from a suspect to the original, and resamples the original there. The map covers
 * crop, scale, rotation and mirroring.
 *
 * Refinement: B. D. Lucas and T. Kanade, "An Iterative Image Registration Technique", IJCAI
 * 1981.
 */
#ifndef ENGINE_WATERMARK_REGISTRATION_H
#define ENGINE_WATERMARK_REGISTRATION_H

#include <stdbool.h>

#include "engine/watermark/plane.h"
#include "engine/watermark/workspace.h"

/* original = matrix * suspect + offset, in pixels; the first pixel's centre is 0.5. */
struct affine_map {
    double matrix[4]; /* row by row */
    double offset[2];
};

enum registration_answer { REGISTRATION_DONE, REGISTRATION_NONE, REGISTRATION_NO_MEMORY };

/* Finds the map by keypoints that both pictures have. */
enum registration_answer registration_find(const struct plane *suspect, const struct plane *original,
                                           struct workspace *workspace, struct affine_map *registration);

/* Refines a map until the planes' grey levels agree best. */
void registration_refine(const struct plane *suspect, const struct plane *original,
                         struct affine_map *registration);

/*
 * Resamples the original's values (luma or Cb) at the suspect's pixels. inside is 1 where the
 * original covers the pixel, else 0.
 */
void registration_warp(const float *values, const struct plane *original,
                       const struct affine_map *registration, int width, int height, float *warped,
                       float *inside);

#endif
