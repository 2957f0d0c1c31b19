#include "engine/protect/protect_measure.h"

#include <math.h>

#include <imgward/protect.h>

#include "engine/watermark/clones.h"
#include "engine/image.h"

double measure_psnr(double error)
{
    double psnr = error > 0 ? 10 * log10(255.0 * 255.0 / error) : 99;
    return psnr < 99 ? psnr : 99;
}

/* The sum of squared differences of at most 65,536 samples of 8 bits. */
ENGINE_CLONES static uint32_t samples_apart8(const uint8_t *left, const uint8_t *right, size_t count)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        int difference = left[i] - right[i];
        sum += (uint32_t)(difference * difference);
    }
    return sum;
}

static uint64_t row_apart8(const uint8_t *left, const uint8_t *right, size_t count)
{
    enum { most = 65536 };
    uint64_t sum = 0;
    for (size_t first = 0; first < count; first += most)
        sum += samples_apart8(left + first, right + first, count - first < most ? count - first : most);
    return sum;
}

static uint64_t row_apart(const struct image *left, const struct image *right, uint32_t y)
{
    const void *one = image_row(left, y), *other = image_row(right, y);
    unsigned colors = image_has_color(left) ? 3 : 1;
    uint64_t sum = 0;
    for (uint32_t x = 0; x < left->width_px; x++) {
        for (unsigned color = 0; color < colors; color++) {
            size_t at = (size_t)x * left->channels + color;
            int64_t difference = (int64_t)sample_at(left, one, at) - sample_at(right, other, at);
            sum += (uint64_t)(difference * difference);
        }
    }
    return sum;
}

double protect_psnr(const struct image *left, const struct image *right)
{
    unsigned colors = image_has_color(left) ? 3 : 1;
    double sum = 0, level = left->depth_bits == 8 ? 1 : levels_16bit;
    for (uint32_t y = 0; y < left->height_px; y++)
        sum += (double)(sample_is_plain8(left) ? row_apart8(image_row(left, y), image_row(right, y),
                                                            (size_t)left->width_px * colors)
                                               : row_apart(left, right, y));
    return measure_psnr(sum / (level * level) / ((double)left->width_px * left->height_px * colors));
}
