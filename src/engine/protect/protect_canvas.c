#include "engine/protect/protect_canvas.h"

#include "engine/watermark/clones.h"
#include "engine/image.h"
#include "engine/protect/protect_draw.h"
#include "engine/protect/protect_hash.h"

/* tools/generator.py computes the same.  Its margin of repeated pixels is canvas_reach_px, so its first noise
 * place is the same as here. */
enum {
    noise_margin = canvas_reach_px / canvas_grid_px,
    hash_values = 8,
    grid_blocks = canvas_grid_px / canvas_block_px
};

/* Pixels of a row at half size that are computed together. */
enum { run_pixels = 64 };

void canvas_init(struct canvas *canvas, const struct image *image, uint64_t seed)
{
    enum { key_noise = 1, key_offset, key_grain };
    uint64_t place = hash_key(seed, key_offset);
    canvas->image = image;
    canvas->left_px = (place & 1) * canvas_grid_px;
    canvas->top_px = (place >> 1 & 1) * canvas_grid_px;
    canvas->columns = (image->width_px + canvas->left_px + canvas_grid_px - 1) / canvas_grid_px * grid_blocks;
    canvas->rows = (image->height_px + canvas->top_px + canvas_grid_px - 1) / canvas_grid_px * grid_blocks;
    canvas->noise_key = hash_key(seed, key_noise);
    canvas->grain_key = hash_key(seed, key_grain);
    for (unsigned level = 0; level < 256; level++)
        canvas->levels[level] = (float)level / 255;
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

/* 8-bit RGB, the usual case.  Computes the values of the level table in whole vectors. */
ENGINE_CLONES static void pixels_rgb8(const uint8_t *samples, size_t count, float *values)
{
    for (size_t i = 0; i < count * canvas_colors; i++)
        values[i] = (float)samples[i] / 255;
}

/* All pixels lie inside the picture. */
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

/*
 * Prefetches the pixels of the next rows: the hardware prefetcher does not follow steps between rows.
 */
static void pixels_fetch(const struct canvas *canvas, int64_t y, size_t x, size_t count)
{
    enum { rows_ahead = 3, line_bytes = 64 };
    const struct image *image = canvas->image;
    const size_t pixel_bytes = image->channels * image->depth_bits / 8, bytes = count * pixel_bytes;
    const unsigned char *row = image_row(image, (uint32_t)canvas_clamped(y + rows_ahead, image->height_px));
    for (size_t at = 0; at < bytes; at += line_bytes)
        __builtin_prefetch(row + x * pixel_bytes + at);
}

void canvas_pixels(const struct canvas *canvas, int64_t y_px, int64_t x_px, size_t count, float *values)
{
    const struct image *image = canvas->image;
    const int64_t width = image->width_px, x = x_px - canvas->left_px, pixels = (int64_t)count;
    const void *row = image_row(image, (uint32_t)canvas_clamped(y_px - canvas->top_px, image->height_px));
    const int64_t begin = x < 0 ? canvas_clamped(-x, pixels + 1) : 0;
    const int64_t end = x < width ? (width - x < pixels ? width - x : pixels) : 0;
    for (int64_t i = 0; i < begin; i++)
        pixels_inside(canvas, row, 0, 1, values + i * canvas_colors);
    if (begin < end) {
        pixels_fetch(canvas, y_px - canvas->top_px, (size_t)(x + begin), (size_t)(end - begin));
        pixels_inside(canvas, row, (size_t)(x + begin), (size_t)(end - begin),
                      values + begin * canvas_colors);
    }
    for (int64_t i = begin < end ? end : begin; i < pixels; i++)
        pixels_inside(canvas, row, (size_t)(width - 1), 1, values + i * canvas_colors);
}

typedef void (*pixels_function)(const struct canvas *canvas, int64_t y, int64_t x, size_t count,
                                float *values);

/* Means of 2x2 pixels that a function reads. */
static void pixels_halved(const struct canvas *canvas, pixels_function pixels_of, int64_t y, int64_t x,
                          size_t count, float *values)
{
    float rows[2][2 * run_pixels * canvas_colors];
    for (size_t first = 0; first < count; first += run_pixels) {
        const size_t here = count - first < run_pixels ? count - first : run_pixels;
        for (unsigned i = 0; i < 2; i++)
            pixels_of(canvas, 2 * y + i, 2 * (x + (int64_t)first), 2 * here, rows[i]);
        draw_halved(rows[0], rows[1], here * canvas_colors, values + first * canvas_colors);
    }
}

void canvas_pixels_halved(const struct canvas *canvas, int64_t y, int64_t x, size_t count, float *values)
{
    pixels_halved(canvas, canvas_pixels, y, x, count, values);
}

void canvas_pixels_quartered(const struct canvas *canvas, int64_t y, int64_t x, size_t count, float *values)
{
    pixels_halved(canvas, canvas_pixels_halved, y, x, count, values);
}

void canvas_noise(const struct canvas *canvas, int64_t row, int64_t column, float values[canvas_noise_values])
{
    uint64_t place = (uint64_t)(row + noise_margin) << 32 | (uint64_t)(column + noise_margin);
    for (unsigned i = 0; i < canvas_noise_values; i++) {
        uint64_t number = place * (canvas_noise_values / hash_values) + i / hash_values;
        uint64_t hash = hash_of(number, canvas->noise_key);
        values[i] = ((float)(hash >> (8 * (i % hash_values)) & 255) - 127.5f) / 127.5f;
    }
}

void canvas_grain(const struct canvas *canvas, const struct grain *grain, int64_t y_px, int64_t x_px,
                  size_t count, float *values)
{
    grain_line(grain, canvas->grain_key, (uint64_t)(y_px + canvas_reach_px),
               (uint64_t)(x_px + canvas_reach_px), count, values);
}
