#include "engine/protect_canvas.h"

#include <math.h>
#include <stdlib.h>

#include "engine/clones.h"
#include "engine/image.h"

/* tools/generator.py computes the same; its margin of 64 px makes its block 16 our block 0. */
enum { noise_margin_blocks = 16 };

static const uint64_t golden = 0x9E3779B97F4A7C15u;
static const float luma_weights[canvas_colors] = {0.299f, 0.587f, 0.114f};
static const float mask_floor = 0.01f, mask_knee = 0.05f;

/* The finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
static uint64_t mixed(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
}

void canvas_init(struct canvas *canvas, const struct image *image, uint64_t seed)
{
    uint64_t place = mixed(seed + 2 * golden);
    canvas->image = image;
    canvas->left_px = place & 31;
    canvas->top_px = place >> 5 & 31;
    canvas->columns = (image->width_px + canvas->left_px + canvas_block_px - 1) / canvas_block_px;
    canvas->rows = (image->height_px + canvas->top_px + canvas_block_px - 1) / canvas_block_px;
    canvas->noise_key = mixed(seed + golden);
    for (unsigned level = 0; level < 256; level++)
        canvas->levels[level] = (float)level / 255;
}

static int64_t clamped(int64_t value, int64_t end)
{
    return value < 0 ? 0 : value >= end ? end - 1 : value;
}

static void pixel8(const struct canvas *canvas, const uint8_t *row, size_t x, float *values)
{
    const uint8_t *pixel = row + x * canvas->image->channels;
    unsigned step = image_has_color(canvas->image) ? 1 : 0;
    for (unsigned color = 0; color < canvas_colors; color++)
        values[color] = canvas->levels[pixel[color * step]];
}

static void pixel16(const struct canvas *canvas, const uint16_t *row, size_t x, float *values)
{
    const uint16_t *pixel = row + x * canvas->image->channels;
    unsigned step = image_has_color(canvas->image) ? 1 : 0;
    for (unsigned color = 0; color < canvas_colors; color++)
        values[color] = (float)pixel[color * step] / 65535;
}

/* 8-bit RGB pixels that all lie in the picture, the usual case. */
ENGINE_CLONES static void pixels_rgb8(const uint8_t *samples, size_t count, float *values)
{
    for (size_t i = 0; i < count * canvas_colors; i++)
        values[i] = (float)samples[i] / 255;
}

void canvas_pixels(const struct canvas *canvas, int64_t y_px, int64_t x_px, size_t count, float *values)
{
    const struct image *image = canvas->image;
    int64_t x = x_px - canvas->left_px;
    const void *row = image_row(image, (uint32_t)clamped(y_px - canvas->top_px, image->height_px));
    if (image->depth_bits == 8 && image->channels == 3 && x >= 0 && x + (int64_t)count <= image->width_px) {
        pixels_rgb8((const uint8_t *)row + x * canvas_colors, count, values);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)clamped(x + (int64_t)i, image->width_px);
        if (image->depth_bits == 8)
            pixel8(canvas, row, at, values + i * canvas_colors);
        else
            pixel16(canvas, row, at, values + i * canvas_colors);
    }
}

void canvas_noise(const struct canvas *canvas, int64_t row, int64_t column, float values[8])
{
    uint64_t place = (uint64_t)(row + noise_margin_blocks) << 32 | (uint64_t)(column + noise_margin_blocks);
    uint64_t hash = mixed(place * golden + canvas->noise_key);
    for (unsigned i = 0; i < 8; i++)
        values[i] = ((float)(hash >> (8 * i) & 255) - 127.5f) / 127.5f;
}

/* The square root of the spread of luma in one block of four rows of pixels. */
static float block_root(const float *const rows[canvas_block_px], size_t first)
{
    float luma[canvas_block_px * canvas_block_px], mean = 0, spread = 0;
    for (unsigned i = 0; i < canvas_block_px * canvas_block_px; i++) {
        const float *pixel = rows[i / canvas_block_px] + (first + i % canvas_block_px) * canvas_colors;
        luma[i] = luma_weights[0] * pixel[0] + luma_weights[1] * pixel[1] + luma_weights[2] * pixel[2];
        mean += luma[i];
    }
    mean /= canvas_block_px * canvas_block_px;
    for (unsigned i = 0; i < canvas_block_px * canvas_block_px; i++)
        spread += (luma[i] - mean) * (luma[i] - mean);
    spread /= canvas_block_px * canvas_block_px;
    return sqrtf(sqrtf(spread + 1e-8f));
}

/* Roots of one row of blocks, two beyond the picture on each side. */
static void roots_row(const struct canvas *canvas, int64_t row, float *pixels, float *roots)
{
    size_t blocks = canvas->columns + 4, width_px = blocks * canvas_block_px;
    const float *rows[canvas_block_px];
    for (unsigned i = 0; i < canvas_block_px; i++) {
        float *values = pixels + i * width_px * canvas_colors;
        canvas_pixels(canvas, row * canvas_block_px + i, -2 * canvas_block_px, width_px, values);
        rows[i] = values;
    }
    for (size_t block = 0; block < blocks; block++)
        roots[block] = block_root(rows, block * canvas_block_px);
}

/*
 * The mean of roots over 3x3 blocks, squared: one edge beside a flat area does
 * not lift the mask there as a mean of spreads would.
 */
static void mask_row(const float *const roots[3], size_t count, float *mask)
{
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (unsigned row = 0; row < 3; row++)
            sum += roots[row][i] + roots[row][i + 1] + roots[row][i + 2];
        float near = sum / 9 * (sum / 9);
        mask[i] = (near + mask_floor) / (near + mask_knee);
    }
}

float *canvas_mask(const struct canvas *canvas)
{
    size_t blocks = canvas->columns + 4;
    float *mask = malloc(sizeof(float) * (canvas->rows + 2) * (canvas->columns + 2));
    float *pixels = malloc(sizeof(float) * blocks * canvas_block_px * canvas_block_px * canvas_colors);
    float *ring = malloc(sizeof(float) * 3 * blocks);
    if (mask != NULL && pixels != NULL && ring != NULL) {
        for (int64_t row = -2; row < (int64_t)canvas->rows + 2; row++) {
            roots_row(canvas, row, pixels, ring + (size_t)(row + 2) % 3 * blocks);
            if (row < 0)
                continue;
            const float *const roots[3] = {ring + (size_t)row % 3 * blocks,
                                           ring + (size_t)(row + 1) % 3 * blocks,
                                           ring + (size_t)(row + 2) % 3 * blocks};
            mask_row(roots, canvas->columns + 2, mask + (size_t)row * (canvas->columns + 2));
        }
    } else {
        free(mask);
        mask = NULL;
    }
    free(pixels);
    free(ring);
    return mask;
}
