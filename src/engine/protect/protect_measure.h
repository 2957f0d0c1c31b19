/* Access to samples of any depth, and the distance between pictures; protect.c computes with the same
 * measure. */
#ifndef ENGINE_PROTECT_PROTECT_MEASURE_H
#define ENGINE_PROTECT_PROTECT_MEASURE_H

#include <stdbool.h>

#include <imgward/image.h>

enum { levels_16bit = 257 /* steps of 16 bits in one level of 8 bits */ };

/* The sample with index at of a row, of 8 or 16 bits. */
static inline unsigned sample_at(const struct image *image, const void *row, size_t at)
{
    return image->depth_bits == 8 ? ((const uint8_t *)row)[at] : ((const uint16_t *)row)[at];
}

/* True for 8 bits without alpha, the usual case, which has vector code. */
static inline bool sample_is_plain8(const struct image *image)
{
    return image->depth_bits == 8 && !image_has_alpha(image);
}

/* The PSNR in dB of a mean square error in levels of 255; at most 99. */
double measure_psnr(double error);

#endif
