/*
 * A decoded picture, as engines and codecs exchange it.
 *
 * Samples are interleaved, row by row from the top, as grey, grey and alpha, RGB, or RGBA.
 * 8-bit samples are uint8_t. 16-bit samples are uint16_t in native byte order with the full
 * range 0..65535. Alpha is not premultiplied. EXIF orientation is not applied.
 */
#ifndef ENGINE_IMAGE_H
#define ENGINE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

struct image {
    uint32_t width_px;
    uint32_t height_px;
    uint32_t channels;   /* 1 grey, 2 grey+alpha, 3 RGB, 4 RGBA */
    uint32_t depth_bits; /* 8 or 16 */
    size_t stride_bytes; /* from one row to the next */
    void *pixels;        /* height_px * stride_bytes bytes */
};

/* True for 2 and 4 channels. */
static inline int image_has_alpha(const struct image *image)
{
    return image->channels == 2 || image->channels == 4;
}

/* True for 3 and 4 channels. */
static inline int image_has_color(const struct image *image)
{
    return image->channels >= 3;
}

/* Returns the bytes of one pixel: channels * depth_bits / 8. */
size_t image_pixel_bytes(const struct image *image);

/* Returns the address of row y (0 is the top). */
void *image_row(const struct image *image, uint32_t y);

/* Returns the sample with an index in a row, of 8 or 16 bits. */
static inline unsigned image_sample(const struct image *image, const void *row, size_t at)
{
    return image->depth_bits == 8 ? ((const uint8_t *)row)[at] : ((const uint16_t *)row)[at];
}

/* A picture of a part of the rows of another one: of each `every` stripes it has the middle one. */
struct image_stripes {
    uint32_t every;     /* 0 for all rows */
    uint32_t height_px; /* of all these stripes */
};

enum { image_stripe_px = 128 };

/* Returns the row of the picture that is row y of the stripes. */
static inline uint32_t image_stripes_row(const struct image_stripes *stripes, uint32_t y)
{
    const uint32_t stripe = y / image_stripe_px;
    return stripes->every == 0
               ? y
               : (stripe * stripes->every + stripes->every / 2) * image_stripe_px + y % image_stripe_px;
}

#endif
