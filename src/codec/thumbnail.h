/* Small versions of a picture. */
#ifndef CODEC_THUMBNAIL_H
#define CODEC_THUMBNAIL_H

#include "codec/bytes.h"
#include "codec/picture.h"

/* Makes a WebP of at most side_px on its longer side, upright (orientation applied), in sRGB. */
enum iw_error thumbnail_webp(struct context *context, const struct codec_picture *picture, uint32_t side_px,
                             struct codec_bytes *bytes) IW_MUST_USE;

/*
 * Scales the picture to sRGB on white, 3 bytes a pixel, in stored orientation. The caller frees
 * it. NULL if there is no memory.
 */
unsigned char *thumbnail_rgb(const struct codec_picture *picture, uint32_t width_px, uint32_t height_px);

#endif
