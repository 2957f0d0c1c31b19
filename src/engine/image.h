/* Accessors of pictures that both engines use. */
#ifndef ENGINE_IMAGE_H
#define ENGINE_IMAGE_H

#include <imgward/image.h>

/* Bytes of one pixel: channels * depth_bits / 8. */
size_t image_pixel_bytes(const struct image *image);

/* The address of row y (0 is the top). */
void *image_row(const struct image *image, uint32_t y);

#endif
