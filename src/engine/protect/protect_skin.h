/*
 * Colour features of a picture: whether it has colour, and where it has skin.  In grey pictures violet and
 * green are the most visible.  Wood, sand and an evening sky count as skin because of their colour.  Strokes
 * are the most visible on skin, so grain replaces them.  tools/generator.py has the same.
 */
#ifndef ENGINE_PROTECT_PROTECT_SKIN_H
#define ENGINE_PROTECT_PROTECT_SKIN_H

#include <stddef.h>

enum { skin_around = 2 /* blocks on each side of a block that are read as well */ };
enum { skin_rows = 2 * skin_around + 1 };

/* How close the mean colours of count blocks, RGB 0..1, are to skin's, 0..1.  Skin is warm, between red and
 * yellow, neither grey nor bright red, and not too dark. */
void skin_colors(const float *means, size_t count, float *warm);

/* The sum over count blocks of their mean colour's distance from grey, the root of squared colour
 * differences. */
double skin_colorfulness(const float *means, size_t count);

/*
 * The skin weight of count blocks, 0..1.  warm: skin_rows rows of the results of skin_colors; the first and
 * last block repeat beyond the ends.  spread: the distance of luma from planes near each block; textured
 * blocks are not skin.  sums: scratch of count + 2 * skin_around values.
 */
void skin_row(const float *const warm[skin_rows], const float *spread, size_t count, float *sums,
              float *skin);

#endif
