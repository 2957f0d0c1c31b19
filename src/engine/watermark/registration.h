/*
 * Lays one picture over another: finds the affine map from a suspect to the
 * original that it was made from, whatever crop, scale, rotation or mirroring
 * lies between, and takes the original away from it.
 *
 * The last refinement is that of B. D. Lucas and T. Kanade, "An Iterative Image
 * Registration Technique", IJCAI 1981.
 */
#ifndef ENGINE_WATERMARK_REGISTRATION_H
#define ENGINE_WATERMARK_REGISTRATION_H

#include <stdbool.h>

#include "engine/watermark/plane.h"
#include "engine/watermark/workspace.h"

/* original = matrix * suspect + offset, in pixels, the first pixel's middle at 0.5. */
struct registration {
    double matrix[4]; /* row by row */
    double offset[2];
};

enum registration_answer { REGISTRATION_DONE, REGISTRATION_NONE, REGISTRATION_NO_MEMORY };

/* Finds the map by points that both pictures have. */
enum registration_answer registration_find(const struct plane *suspect, const struct plane *original,
                                           struct workspace *workspace, struct registration *registration);

/* Improves a map until the planes' grey levels agree best. */
void registration_refine(const struct plane *suspect, const struct plane *original,
                         struct registration *registration);

/* The original's values (luma or Cb) at the places of the suspect's pixels; inside tells where there are any.
 */
void registration_warp(const float *values, const struct plane *original,
                       const struct registration *registration, int width, int height, float *warped,
                       float *inside);

#endif
