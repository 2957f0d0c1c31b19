#include "engine/protect/protect_around.h"

#include "engine/watermark/clones.h"

ENGINE_CLONES void around_means(const float *const *rows, unsigned around, size_t count, float *sums,
                                float *means)
{
    const unsigned side = 2 * around + 1;
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (unsigned row = 0; row < side; row++)
            sum += rows[row][i];
        sums[around + i] = sum;
    }
    for (unsigned i = 0; i < around; i++) {
        sums[i] = sums[around];
        sums[around + count + i] = sums[around + count - 1];
    }
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (unsigned column = 0; column < side; column++)
            sum += sums[i + column];
        means[i] = sum / (float)(side * side);
    }
}
