/*
 * Finds keypoints with descriptions that match across scale and rotation. After D. G. Lowe,
 * "Distinctive Image Features from Scale-Invariant Keypoints", IJCV 60(2), 2004.
 * Simplification: points are taken at every level of a pyramid.
 */
#ifndef ENGINE_WATERMARK_KEYPOINT_H
#define ENGINE_WATERMARK_KEYPOINT_H

#include <stdint.h>

#include "engine/watermark/workspace.h"

enum {
    keypoint_bytes = 128,     /* 4 * 4 cells of 8 directions */
    keypoint_level_max = 200, /* per level, the strongest */
    keypoints_max = 3000
};

struct keypoint {
    float x; /* pixels of the plane; the first pixel's centre is 0.5 */
    float y;
    float size;  /* pixels of the plane per pixel of the level */
    float angle; /* radians */
    float strength;
    uint8_t description[keypoint_bytes];
};

/* Finds at most keypoints_max points. Returns their count, or -1 if memory is short. */
int keypoint_find(const float *plane, int width, int height, struct workspace *workspace,
                  struct keypoint *points);

#endif
