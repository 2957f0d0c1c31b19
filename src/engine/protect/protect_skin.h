/*
 * What the colours of a picture tell: whether it has any, for in what is grey violet and green are seen
 * first; and where it has skin, or what is coloured like it: wood, sand, an evening sky.  There strokes are
 * seen soonest, and they give way to grain.  tools/generator.py has the same.
 */
#ifndef ENGINE_PROTECT_PROTECT_SKIN_H
#define ENGINE_PROTECT_PROTECT_SKIN_H

#include <stddef.h>

enum { skin_around = 2 /* blocks on each side of one that are looked at as well */ };
enum { skin_rows = 2 * skin_around + 1 };

/* How far the mean colours of count blocks, RGB 0..1, are skin's, 0..1: warm, between red and yellow, neither
 * grey nor bright red, and not too dark. */
void skin_colors(const float *means, size_t count, float *warm);

/* How far the mean colours of count blocks are from grey, summed: roots of squares of colour differences. */
double skin_colorfulness(const float *means, size_t count);

/*
 * How far count blocks are skin, 0..1, from skin_rows rows of what skin_colors told of them and of those
 * around them, and of the first and the last again beyond them; spread: how far luma lies from planes near
 * each, for what is busy is none.  sums: count + 2 * skin_around values of room.
 */
void skin_row(const float *const warm[skin_rows], const float *spread, size_t count, float *sums,
              float *skin);

#endif
