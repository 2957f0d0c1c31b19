/* CMYK as sRGB, and changes applied to the inks. */
#ifndef CODEC_CMYK_H
#define CODEC_CMYK_H

#include <stddef.h>
#include <stdint.h>

struct cmyk_grid;

/*
 * Makes the grid of a CMYK profile, or of the plain product without one (NULL, or a profile of
 * other colours). NULL if there is no memory. The caller frees it.
 */
struct cmyk_grid *cmyk_grid_new(const void *icc, size_t size);

/* Converts count pixels to sRGB. */
void cmyk_to_rgb(const struct cmyk_grid *grid, const unsigned char *ink, uint32_t count, unsigned char *rgb);

/*
 * Computes the inks whose rendition is `rgb`, near `ink`. Pixels whose rendition is `rgb`
 * already keep their inks.
 */
void cmyk_carry(const struct cmyk_grid *grid, const unsigned char *ink, const unsigned char *rgb,
                uint32_t count, unsigned char *out);

#endif
