/*
 * Means over squares of blocks, row by row; beyond the first and the last of a row they repeat.
 */
#ifndef ENGINE_PROTECT_PROTECT_AROUND_H
#define ENGINE_PROTECT_PROTECT_AROUND_H

#include <stddef.h>

/*
 * The means of 2 * around + 1 blocks each way around count blocks, from as many rows, the middle one theirs.
 * sums: count + 2 * around values of room.
 */
void around_means(const float *const *rows, unsigned around, size_t count, float *sums, float *means);

#endif
