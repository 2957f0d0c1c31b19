#include "engine/image.h"

size_t image_pixel_bytes(const struct image *image)
{
    return (size_t)image->channels * (image->depth_bits / 8);
}

void *image_row(const struct image *image, uint32_t y)
{
    return (unsigned char *)image->pixels + (size_t)y * image->stride_bytes;
}
