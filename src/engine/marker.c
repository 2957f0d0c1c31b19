#include "engine/marker.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/image.h"

/* What a step of Cb does to green and to blue, at constant luma. */
#define BLUE_OF_CB  1.772f
#define GREEN_OF_CB (-0.344136f)

#define PART_PX 4096u

static int within(int value, int most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

ENGINE_CLONES
static void row_product(const float *mask, const float *tile, int width, float *to)
{
    int x;

    for (x = 0; x < width; x++)
        to[x] = mask[x] * tile[x];
}

/* The mask between its pixels, for pictures larger than it. */
static void row_stretched(const struct marker *marker, const float *mask, uint32_t y, float *to)
{
    double row = (y + 0.5) / marker->step - 0.5;
    int top = (int)floor(row);
    float down = (float)(row - top);
    const float *upper = mask + (size_t)within(top, marker->mask_height - 1) * (size_t)marker->mask_width;
    const float *lower = mask + (size_t)within(top + 1, marker->mask_height - 1) * (size_t)marker->mask_width;
    float scale = (float)(1 / marker->step);
    uint32_t x;

    for (x = 0; x < marker->image->width_px; x++) {
        float column = ((float)x + 0.5f) * scale - 0.5f;
        int left = (int)(column + 1) - 1;
        float way = column - (float)left;
        int a = within(left, marker->mask_width - 1);
        int b = within(left + 1, marker->mask_width - 1);

        to[x] = (upper[a] + way * (upper[b] - upper[a])) * (1 - down) +
                (lower[a] + way * (lower[b] - lower[a])) * down;
    }
}

static void row_pattern(const struct marker *marker, const float *mask, const float *tile, uint32_t y,
                        float *to)
{
    int width = (int)marker->image->width_px;
    const float *line = tile + (size_t)(y % (uint32_t)marker->period_px) * (size_t)marker->period_px;
    bool is_stretched = marker->mask_width != width;
    int left;

    if (is_stretched)
        row_stretched(marker, mask, y, to);
    else
        memcpy(to, mask + (size_t)y * (size_t)width, (size_t)width * sizeof *to);
    for (left = 0; left < width; left += marker->period_px)
        row_product(to + left, line, width - left < marker->period_px ? width - left : marker->period_px,
                    to + left);
}

/* Adds a row of changes to one channel of 8 bits; so few that the errors' sum stays in 32 bits. */
ENGINE_CLONES
static int32_t channel_part_8(const uint8_t *from, uint8_t *to, unsigned channels, uint32_t width,
                              const float *change)
{
    int32_t errors = 0;
    uint32_t x;

    for (x = 0; x < width; x++) {
        int old = from[x * channels];
        int new = within((int)((float)old + change[x] + 256.5f) - 256, 255);

        errors += (new - old) * (new - old);
        to[x * channels] = (uint8_t) new;
    }
    return errors;
}

static double channel_8(const uint8_t *from, uint8_t *to, unsigned channels, uint32_t width,
                        const float *change)
{
    double sum = 0;
    uint32_t x;

    for (x = 0; x < width; x += PART_PX) {
        uint32_t count = width - x < PART_PX ? width - x : PART_PX;

        sum += channel_part_8(from + (size_t)x * channels, to + (size_t)x * channels, channels, count,
                              change + x);
    }
    return sum;
}

static double channel_16(const uint16_t *from, uint16_t *to, unsigned channels, uint32_t width,
                         const float *change)
{
    double sum = 0;
    uint32_t x;

    for (x = 0; x < width; x++) {
        size_t at = (size_t)x * channels;
        int old = from[at];
        int new = within((int)((float)old + change[x] * 257.0f + 65536.5f) - 65536, 65535);

        sum += (double)(new - old) * (new - old) / (257.0 * 257.0);
        to[at] = (uint16_t) new;
    }
    return sum;
}

static double channel_mark(const struct marker *marker, const void *from, void *to, unsigned channel,
                           const float *change)
{
    const struct image *image = marker->image;

    if (image->depth_bits == 16)
        return channel_16((const uint16_t *)from + channel, (uint16_t *)to + channel, image->channels,
                          image->width_px, change);
    return channel_8((const uint8_t *)from + channel, (uint8_t *)to + channel, image->channels,
                     image->width_px, change);
}

ENGINE_CLONES
static void change_mix(const float *luma, const float *blue, float factor, float *to, uint32_t width)
{
    uint32_t x;

    for (x = 0; x < width; x++)
        to[x] = luma[x] + factor * blue[x];
}

/* Fully transparent pixels keep every bit, whatever the stretched mask says there. */
static void transparent_spare(const struct marker *marker, const void *from, float *luma, float *blue)
{
    const struct image *image = marker->image;
    uint32_t x;

    for (x = 0; x < image->width_px; x++) {
        size_t at = (size_t)(x + 1) * image->channels - 1;

        if (image->depth_bits == 16 ? ((const uint16_t *)from)[at] != 0 : ((const uint8_t *)from)[at] != 0)
            continue;
        luma[x] = 0;
        if (blue != NULL)
            blue[x] = 0;
    }
}

double marker_row(const struct marker *marker, uint32_t y, void *to)
{
    const struct image *image = marker->image;
    const void *from = image_row(image, y);
    float *luma = marker->luma_row;
    float *blue = marker->blue_tile == NULL ? NULL : marker->blue_row;
    float *mixed = marker->blue_row + image->width_px;
    double sum;

    if (to != from)
        memcpy(to, from, image->width_px * image_pixel_bytes(image));
    row_pattern(marker, marker->luma_mask, marker->luma_tile, y, luma);
    if (blue != NULL)
        row_pattern(marker, marker->blue_mask, marker->blue_tile, y, blue);
    if (image_has_alpha(image))
        transparent_spare(marker, from, luma, blue);
    sum = channel_mark(marker, from, to, 0, luma);
    if (blue == NULL)
        return sum;
    change_mix(luma, blue, GREEN_OF_CB, mixed, image->width_px);
    sum += channel_mark(marker, from, to, 1, mixed);
    change_mix(luma, blue, BLUE_OF_CB, mixed, image->width_px);
    return sum + channel_mark(marker, from, to, 2, mixed);
}
