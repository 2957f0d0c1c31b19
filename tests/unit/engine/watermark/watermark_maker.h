/* Random numbers, a key, and a slow transform for the tests of the watermark. */
#ifndef UNIT_WATERMARK_MAKER_H
#define UNIT_WATERMARK_MAKER_H

#include <math.h>
#include <stdint.h>

#include "engine/watermark/spectrum.h"
#include "engine/watermark/watermark.h"
#include "runner.h"
#include "texture_maker.h"

static const uint8_t test_key[WATERMARK_KEY_BYTES] = {7, 1, 99, 4, 250, 3};

static inline uint64_t random_number(uint64_t *seed)
{
    return (uint64_t)(random_uniform(seed) * 4294967296.0) << 32 |
           (uint64_t)(random_uniform(seed) * 4294967296.0);
}

static inline struct value transform_slow(const float *samples, int width, int height, double fx, double fy)
{
    double real = 0, imaginary = 0;

    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            double turn = -2 * M_PI * (fx * (x + 0.5 - width / 2.0) + fy * (y + 0.5 - height / 2.0));

            real += (double)samples[y * width + x] * cos(turn);
            imaginary += (double)samples[y * width + x] * sin(turn);
        }
    return (struct value){(float)real, (float)imaginary};
}

#endif
