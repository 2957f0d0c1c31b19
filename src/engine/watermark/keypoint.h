/*
 * Points of a plane that can be found again in another picture of the same
 * thing, whatever its size and rotation, each with a description.  After D. G.
 * Lowe, "Distinctive Image Features from Scale-Invariant Keypoints", IJCV 60(2),
 * 2004, made simpler: points are taken at every level of a pyramid.
 */
#ifndef ENGINE_WATERMARK_KEYPOINT_H
#define ENGINE_WATERMARK_KEYPOINT_H

#include <stdint.h>

#include "engine/watermark/workspace.h"

#define KEYPOINT_BYTES     128
#define KEYPOINT_LEVEL_MAX 200 /* points a level, the strongest */
#define KEYPOINTS_MAX      3000

struct keypoint {
    float x; /* pixels of the plane, the first pixel's middle at 0.5 */
    float y;
    float size;  /* pixels of the plane a pixel of the level */
    float angle; /* radians */
    float strength;
    uint8_t description[KEYPOINT_BYTES];
};

/* Finds at most KEYPOINTS_MAX points; how many, or -1 when there is no memory. */
int keypoint_find(const float *plane, int width, int height, struct workspace *workspace,
                  struct keypoint *points);

#endif
