/*
 * Means over squares of blocks, row by row.  The first and last block of a row repeat beyond its ends.
 */
#ifndef ENGINE_PROTECT_PROTECT_AROUND_H
#define ENGINE_PROTECT_PROTECT_AROUND_H

#include <stddef.h>

/*
 * Computes the means of (2 * around + 1)² blocks around each of count blocks.  rows: as many rows, the
 * blocks' own row in the middle.  sums: scratch of count + 2 * around values.
 */
void around_means(const float *const *rows, unsigned around, size_t count, float *sums, float *means);

#endif
