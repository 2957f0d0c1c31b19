#include "engine/protect_canvas.h"

#include <math.h>
#include <stdlib.h>

#include "engine/clones.h"
#include "engine/image.h"

/* tools/generator.py computes the same; its margin of 128 px makes its place 16 of the noise our place 0. */
enum { noise_margin = 16, hash_values = 8, grid_px = 8, grid_blocks = grid_px / canvas_block_px };

/* The mask of a block takes the roots of its neighbours. */
enum { root_margin = canvas_mask_margin + 1 };

static const uint64_t golden = 0x9E3779B97F4A7C15u;
static const float own_times = 2; /* a block's own spread, at most */
static const float luma_weights[canvas_colors] = {0.299f, 0.587f, 0.114f};

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
    canvas->left_px = (place & 3) * grid_px;
    canvas->top_px = (place >> 2 & 3) * grid_px;
    canvas->columns = (image->width_px + canvas->left_px + grid_px - 1) / grid_px * grid_blocks;
    canvas->rows = (image->height_px + canvas->top_px + grid_px - 1) / grid_px * grid_blocks;
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

/* 8-bit RGB, the usual case; what the table of levels says, for whole vectors. */
ENGINE_CLONES static void pixels_rgb8(const uint8_t *samples, size_t count, float *values)
{
    for (size_t i = 0; i < count * canvas_colors; i++)
        values[i] = (float)samples[i] / 255;
}

/* Pixels that all lie in the picture. */
static void pixels_inside(const struct canvas *canvas, const void *row, size_t x, size_t count, float *values)
{
    const struct image *image = canvas->image;
    if (image->depth_bits == 8 && image->channels == 3) {
        pixels_rgb8((const uint8_t *)row + x * canvas_colors, count, values);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (image->depth_bits == 8)
            pixel8(canvas, row, x + i, values + i * canvas_colors);
        else
            pixel16(canvas, row, x + i, values + i * canvas_colors);
    }
}

void canvas_pixels(const struct canvas *canvas, int64_t y_px, int64_t x_px, size_t count, float *values)
{
    const struct image *image = canvas->image;
    const int64_t width = image->width_px, x = x_px - canvas->left_px, pixels = (int64_t)count;
    const void *row = image_row(image, (uint32_t)clamped(y_px - canvas->top_px, image->height_px));
    const int64_t begin = x < 0 ? clamped(-x, pixels + 1) : 0;
    const int64_t end = x < width ? (width - x < pixels ? width - x : pixels) : 0;
    for (int64_t i = 0; i < begin; i++)
        pixels_inside(canvas, row, 0, 1, values + i * canvas_colors);
    if (begin < end)
        pixels_inside(canvas, row, (size_t)(x + begin), (size_t)(end - begin),
                      values + begin * canvas_colors);
    for (int64_t i = begin < end ? end : begin; i < pixels; i++)
        pixels_inside(canvas, row, (size_t)(width - 1), 1, values + i * canvas_colors);
}

void canvas_noise(const struct canvas *canvas, int64_t row, int64_t column, float values[canvas_noise_values])
{
    uint64_t place = (uint64_t)(row + noise_margin) << 32 | (uint64_t)(column + noise_margin);
    for (unsigned i = 0; i < canvas_noise_values; i++) {
        uint64_t number = place * (canvas_noise_values / hash_values) + i / hash_values;
        uint64_t hash = mixed(number * golden + canvas->noise_key);
        values[i] = ((float)(hash >> (8 * (i % hash_values)) & 255) - 127.5f) / 127.5f;
    }
}

ENGINE_CLONES static void pixels_luma(const float *pixels, size_t count, float *luma)
{
    for (size_t i = 0; i < count; i++)
        luma[i] = luma_weights[0] * pixels[3 * i] + luma_weights[1] * pixels[3 * i + 1] +
                  luma_weights[2] * pixels[3 * i + 2];
}

/* The spread of luma in each block of four rows of width_px pixels. */
ENGINE_CLONES static void blocks_spread(const float *luma, size_t width_px, float *spreads)
{
    for (size_t first = 0; first < width_px; first += canvas_block_px) {
        float sums[canvas_block_px] = {0}, squares[canvas_block_px] = {0};
        for (unsigned row = 0; row < canvas_block_px; row++)
            for (unsigned i = 0; i < canvas_block_px; i++)
                sums[i] += luma[row * width_px + first + i];
        float mean = (sums[0] + sums[1] + sums[2] + sums[3]) / (canvas_block_px * canvas_block_px);
        for (unsigned row = 0; row < canvas_block_px; row++) {
            for (unsigned i = 0; i < canvas_block_px; i++) {
                float apart = luma[row * width_px + first + i] - mean;
                squares[i] += apart * apart;
            }
        }
        spreads[first / canvas_block_px] =
            (squares[0] + squares[1] + squares[2] + squares[3]) / (canvas_block_px * canvas_block_px);
    }
}

/* The square roots of the spreads' square roots. */
ENGINE_CLONES static void spreads_root(float *spreads, size_t count)
{
    for (size_t i = 0; i < count; i++)
        spreads[i] = sqrtf(sqrtf(spreads[i] + 1e-8f));
}

/* Roots of one row of blocks, root_margin beyond the picture on each side; pixels: a row of them and four of
 * luma. */
static void roots_row(const struct canvas *canvas, int64_t row, float *pixels, float *roots)
{
    size_t blocks = canvas->columns + 2 * root_margin, width_px = blocks * canvas_block_px;
    float *luma = pixels + width_px * canvas_colors;
    for (unsigned i = 0; i < canvas_block_px; i++) {
        canvas_pixels(canvas, row * canvas_block_px + i, -root_margin * canvas_block_px, width_px, pixels);
        pixels_luma(pixels, width_px, luma + i * width_px);
    }
    blocks_spread(luma, width_px, roots);
    spreads_root(roots, blocks);
}

static inline float hidden(float floor, float knee, float grain, float spread)
{
    float texture = spread * spread / (spread + grain);
    return (texture + floor) / (texture + knee);
}

float canvas_hidden(const struct canvas_hiding *hiding, float spread)
{
    return hidden(hiding->floor, hiding->knee, hiding->grain, spread);
}

/*
 * The mean of roots over 3x3 blocks, squared: one edge beside a flat area does
 * not lift the mask there as a mean of spreads would.  No block takes more than
 * twice its own spread allows, so that a flat one beside an edge takes nothing.
 */
ENGINE_CLONES static void mask_row(const struct canvas_hiding *hiding, const float *const roots[3],
                                   size_t count, float *mask)
{
    const float floor = hiding->floor, knee = hiding->knee, grain = hiding->grain;
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (unsigned row = 0; row < 3; row++)
            sum += roots[row][i] + roots[row][i + 1] + roots[row][i + 2];
        float near = sum / 9 * (sum / 9), own = roots[1][i + 1] * roots[1][i + 1];
        near = near < own_times * own ? near : own_times * own;
        mask[i] = hidden(floor, knee, grain, near);
    }
}

size_t canvas_mask_columns(const struct canvas *canvas)
{
    return (size_t)canvas->columns + 2 * canvas_mask_margin;
}

size_t canvas_mask_rows(const struct canvas *canvas)
{
    return (size_t)canvas->rows + 2 * canvas_mask_margin;
}

float *canvas_mask(const struct canvas *canvas, const struct canvas_hiding *hiding)
{
    const size_t columns = canvas_mask_columns(canvas), rows = canvas_mask_rows(canvas), blocks = columns + 2;
    float *mask = malloc(sizeof(float) * rows * columns);
    float *pixels = malloc(sizeof(float) * blocks * canvas_block_px * (canvas_block_px + canvas_colors));
    float *ring = malloc(sizeof(float) * 3 * blocks);
    if (mask != NULL && pixels != NULL && ring != NULL) {
        for (size_t row = 0; row < rows + 2; row++) {
            roots_row(canvas, (int64_t)row - root_margin, pixels, ring + row % 3 * blocks);
            if (row < 2)
                continue;
            const float *const roots[3] = {ring + (row - 2) % 3 * blocks, ring + (row - 1) % 3 * blocks,
                                           ring + row % 3 * blocks};
            mask_row(hiding, roots, columns, mask + (row - 2) * columns);
        }
    } else {
        free(mask);
        mask = NULL;
    }
    free(pixels);
    free(ring);
    return mask;
}

/* A row of the mask; those further out are as the outermost. */
static const float *mask_at(const struct canvas *canvas, const float *mask, int64_t row)
{
    int64_t at = clamped(row + canvas_mask_margin, (int64_t)canvas_mask_rows(canvas));
    return mask + (size_t)at * canvas_mask_columns(canvas);
}

/* Blocks of a row that all have a mask of their own, between this row and the one above or below. */
ENGINE_CLONES static void line_between(const float *here, const float *there, float weight, size_t count,
                                       float *line)
{
    for (size_t i = 0; i < count; i++)
        line[i] = here[i] * weight + there[i] * (1 - weight);
}

void canvas_mask_line(const struct canvas *canvas, const float *mask, int64_t y_px, int64_t column,
                      size_t count, float *line)
{
    static const float weights[canvas_block_px] = {.625f, .875f, .875f, .625f};
    const unsigned down = (unsigned)y_px % canvas_block_px;
    const int64_t row = (y_px - down) / canvas_block_px, blocks = (int64_t)canvas_mask_columns(canvas);
    const float *here = mask_at(canvas, mask, row);
    const float *there = mask_at(canvas, mask, down < canvas_block_px / 2 ? row - 1 : row + 1);
    const int64_t first = column + canvas_mask_margin, end = first + (int64_t)count;
    const int64_t begin = first < 0 ? 0 : first, stop = end < blocks ? end : blocks;
    if (begin < stop)
        line_between(here + begin, there + begin, weights[down], (size_t)(stop - begin),
                     line + (begin - first));
    for (int64_t at = first; at < end; at++)
        if (at < 0 || at >= blocks)
            line_between(here + clamped(at, blocks), there + clamped(at, blocks), weights[down], 1,
                         line + (at - first));
}
