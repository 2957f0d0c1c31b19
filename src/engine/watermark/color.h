/*
 * Conversion between RGB and YCbCr: ITU-R BT.601 with full range, as JFIF (ITU-T T.871) defines it.
 */
#ifndef ENGINE_WATERMARK_COLOR_H
#define ENGINE_WATERMARK_COLOR_H

static const float luma_red = 0.299f;
static const float luma_green = 0.587f;
static const float luma_blue = 0.114f;
static const float cb_scale = 0.564334f; /* Cb = cb_scale * (blue - luma) */
static const float cr_scale = 0.713267f; /* Cr = cr_scale * (red - luma) */

/* Change of a sample for one step of Cb or Cr at constant luma. */
static const float green_of_cb = -0.344136f;
static const float blue_of_cb = 1.772f;
static const float red_of_cr = 1.402f;
static const float green_of_cr = -0.714136f;

#endif
