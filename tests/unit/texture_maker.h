/* Pictures for the tests of the watermark: textures made from a seed, and small attacks. */
#ifndef TESTS_TEXTURE_MAKER_H
#define TESTS_TEXTURE_MAKER_H

#include <imgward/image.h>

/* A repeatable uniform number in 0..1, and a Gaussian one. */
double random_uniform(uint64_t *seed);
double random_gauss(uint64_t *seed);

/* An empty picture; free(image.pixels) is due. */
struct image image_make(uint32_t width_px, uint32_t height_px, uint32_t channels, uint32_t depth_bits);
struct image image_copy(const struct image *image);

/* A picture of one of several kinds: clouds, stripes, shapes, noise; opaque where it has alpha. */
struct image texture_make(uint32_t width_px, uint32_t height_px, uint32_t channels, uint32_t depth_bits,
                          uint64_t seed);

/* What a picture of width_px by height_px shows when its place p, from its middle, looks at matrix * p of the
 * source. */
struct image image_warp(const struct image *source, const double matrix[4], const double shift[2],
                        uint32_t width_px, uint32_t height_px);

/* The mean squared difference of the color samples, on the scale 0..255. */
double image_error(const struct image *a, const struct image *b);

#endif
