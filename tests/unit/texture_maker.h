/* Pictures for the watermark's tests: textures from a seed, and simple attacks. */
#ifndef TESTS_TEXTURE_MAKER_H
#define TESTS_TEXTURE_MAKER_H

#include "engine/image.h"

/* Return reproducible random numbers: uniform in 0..1, and Gaussian. */
double random_uniform(uint64_t *seed);
double random_gauss(uint64_t *seed);

/* An empty picture. The caller frees image.pixels. */
struct image image_make(uint32_t width_px, uint32_t height_px, uint32_t channels, uint32_t depth_bits);
struct image image_copy(const struct image *image);

/* Makes a picture of some kind: clouds, stripes, shapes, noise. It is opaque if it has alpha. */
struct image texture_make(uint32_t width_px, uint32_t height_px, uint32_t channels, uint32_t depth_bits,
                          uint64_t seed);

/* Resamples the source: place p, from the centre, shows the source at matrix * p. */
struct image image_warp(const struct image *source, const double matrix[4], const double shift[2],
                        uint32_t width_px, uint32_t height_px);

/* Resamples in perspective: place p shows the source at p / (1 + slant . p), both from the centre. */
struct image image_slant(const struct image *source, const double slant[2], uint32_t width_px,
                         uint32_t height_px);

/* Returns the mean squared difference of the colour samples, scale 0..255. */
double image_error(const struct image *a, const struct image *b);

#endif
