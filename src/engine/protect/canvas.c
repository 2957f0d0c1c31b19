#include "engine/protect/canvas.h"

#include <string.h>

#include "engine/clones.h"
#include "engine/image.h"

/*
 * tools/train/followers.py computes the same canvas. It has a margin of canvas_reach_px repeated pixels, so
 * the first noise place is the same as here.
 */
enum { noise_margin = canvas_reach_px / canvas_noise_px, hash_values = 8 };

/* Pixels of a row at half size that are computed together. */
enum { run_pixels = 64 };

/* ---- noise: the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
 * generators, 2014) */

static const uint64_t hash_golden = 0x9E3779B97F4A7C15u;

static uint64_t hash_mixed(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
}

void canvas_noise(const struct canvas *canvas, int64_t row, int64_t column, float values[canvas_noise_values])
{
    uint64_t place = (uint64_t)(row + noise_margin) << 32 | (uint64_t)(column + noise_margin);
    for (unsigned i = 0; i < canvas_noise_values; i++) {
        uint64_t number = place * (canvas_noise_values / hash_values) + i / hash_values;
        uint64_t hash = hash_mixed(number * hash_golden + canvas->noise_key);
        values[i] = ((float)(hash >> (8 * (i % hash_values)) & 255) - 127.5f) / 127.5f;
    }
}

/* ---- pixels */

static unsigned padded(uint32_t side_px)
{
    return (side_px + canvas_grid_px - 1) / canvas_grid_px * canvas_grid_px;
}

void canvas_init(struct canvas *canvas, const struct image *image, uint64_t seed)
{
    *canvas = (struct canvas){.image = image,
                              .width_px = padded(image->width_px),
                              .height_px = padded(image->height_px),
                              .noise_key = hash_mixed(seed + hash_golden)};
}

/* Returns a value clamped to 0..end - 1. */
static int64_t clamped(int64_t value, int64_t end)
{
    return value < 0 ? 0 : value >= end ? end - 1 : value;
}

/* Reads 8-bit RGB, the usual case. */
ENGINE_CLONES static void pixels_rgb8(const uint8_t *restrict samples, float scale, size_t count,
                                      float *restrict values)
{
    for (size_t i = 0; i < count * canvas_colors; i++)
        values[i] = (float)samples[i] * scale;
}

/* Reads pixels that all lie inside the picture. */
static void pixels_inside(const struct canvas *canvas, const void *row, size_t x, size_t count, float *values)
{
    const struct image *image = canvas->image;
    const size_t step = image_has_color(image) ? 1 : 0;
    const float scale = image->depth_bits == 8 ? 1.f / 255 : 1.f / 65535;
    if (image->depth_bits == 8 && image->channels == canvas_colors) {
        pixels_rgb8((const uint8_t *)row + x * canvas_colors, scale, count, values);
        return;
    }
    for (size_t at = x * image->channels; count > 0; count--, at += image->channels)
        for (size_t color = 0; color < canvas_colors; color++)
            *values++ = (float)image_sample(image, row, at + color * step) * scale;
}

/* Repeats the nearest pixel inside the picture. */
static void pixels_beyond(const struct canvas *canvas, const void *row, size_t x, int64_t count,
                          float *values)
{
    float pixel[canvas_colors];
    if (count > 0)
        pixels_inside(canvas, row, x, 1, pixel);
    for (; count > 0; count--, values += canvas_colors)
        memcpy(values, pixel, sizeof pixel);
}

void canvas_pixels(const struct canvas *canvas, int64_t y_px, int64_t x_px, size_t count, float *values)
{
    const struct image *image = canvas->image;
    const int64_t width = image->width_px, x = x_px, pixels = (int64_t)count;
    const void *row = image_row(image, (uint32_t)clamped(y_px, image->height_px));
    const int64_t begin = x < 0 ? clamped(-x, pixels + 1) : 0;
    const int64_t end = x < width ? (width - x < pixels ? width - x : pixels) : 0;
    pixels_beyond(canvas, row, 0, begin, values);
    if (begin < end)
        pixels_inside(canvas, row, (size_t)(x + begin), (size_t)(end - begin),
                      values + begin * canvas_colors);
    const int64_t last = begin < end ? end : begin;
    pixels_beyond(canvas, row, (size_t)(width - 1), pixels - last, values + last * canvas_colors);
}

/*
 * Computes a row of half the size, count values: the means of 2x2 pixels of two rows. Overwrites the upper
 * row.
 */
ENGINE_CLONES static void row_halved(float *restrict upper, const float *restrict lower, size_t count,
                                     float *restrict values)
{
    for (size_t i = 0; i < 2 * count; i++)
        upper[i] += lower[i];
    for (size_t pixel = 0; pixel < count / canvas_colors; pixel++)
        for (unsigned color = 0; color < canvas_colors; color++)
            values[pixel * canvas_colors + color] = 0.25f * (upper[2 * pixel * canvas_colors + color] +
                                                             upper[(2 * pixel + 1) * canvas_colors + color]);
}

void canvas_pixels_halved(const struct canvas *canvas, int64_t y, int64_t x, size_t count, float *values)
{
    float rows[2][2 * run_pixels * canvas_colors];
    for (size_t first = 0; first < count; first += run_pixels) {
        const size_t here = count - first < run_pixels ? count - first : run_pixels;
        for (unsigned i = 0; i < 2; i++)
            canvas_pixels(canvas, 2 * y + i, 2 * (x + (int64_t)first), 2 * here, rows[i]);
        row_halved(rows[0], rows[1], here * canvas_colors, values + first * canvas_colors);
    }
}
