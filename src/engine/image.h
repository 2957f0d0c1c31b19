/* Accessors of pictures that both engines use. */
#ifndef ENGINE_IMAGE_H
#define ENGINE_IMAGE_H

#include <imgward/image.h>

/* Bytes of one pixel: channels * depth_bits / 8. */
size_t image_pixel_bytes(const struct image *image);

/* The address of row y (0 is the top). */
void *image_row(const struct image *image, uint32_t y);

/* The sample with an index in a row, of 8 or 16 bits. */
static inline unsigned image_sample(const struct image *image, const void *row, size_t at)
{
    return image->depth_bits == 8 ? ((const uint8_t *)row)[at] : ((const uint16_t *)row)[at];
}

#endif
