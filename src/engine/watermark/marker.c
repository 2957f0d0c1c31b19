#include "engine/watermark/marker.h"

#include <math.h>
#include <string.h>

#include "engine/watermark/clones.h"
#include "engine/image.h"

/* What a step of Cb does to green and to blue, at constant luma. */
#define BLUE_OF_CB  1.772f
#define GREEN_OF_CB (-0.344136f)

/* And a step of Cr to red and to green. */
#define RED_OF_CR   1.402f
#define GREEN_OF_CR (-0.714136f)

#define PART_SAMPLES 16384u

static int within(int value, int most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

ENGINE_CLONES
static void row_product(float *restrict row, const float *restrict tile, int width)
{
    int x;

    for (x = 0; x < width; x++)
        row[x] *= tile[x];
}

ENGINE_CLONES
static void line_between(const float *restrict upper, const float *restrict lower, float down,
                         float *restrict line, int width)
{
    int x;

    for (x = 0; x < width; x++)
        line[x] = upper[x] + down * (lower[x] - upper[x]);
}

/* The mask between its pixels, for pictures larger than it: first down, then along the row. */
static void row_stretched(const struct marker *marker, const float *mask, uint32_t y, float *to)
{
    const struct marker_stretch *stretch = &marker->stretch;
    double row = (y + 0.5) / marker->step - 0.5;
    int top = (int)floor(row);
    int width = marker->mask_width;
    const float *upper = mask + (size_t)within(top, marker->mask_height - 1) * (size_t)width;
    const float *lower = mask + (size_t)within(top + 1, marker->mask_height - 1) * (size_t)width;
    float *line = stretch->line;
    uint32_t x;

    line_between(upper, lower, (float)(row - top), line + 1, width);
    line[0] = line[1];
    line[width + 1] = line[width];
    for (x = 0; x < marker->image->width_px; x++) {
        const float *at = line + stretch->places[x];

        to[x] = at[0] + stretch->ways[x] * (at[1] - at[0]);
    }
}

bool marker_stretch_init(struct marker *marker, struct workspace *workspace)
{
    struct marker_stretch *stretch = &marker->stretch;
    size_t width = marker->image->width_px;
    size_t x;

    stretch->line = workspace_take_unset(workspace, (size_t)marker->mask_width + 2, sizeof(float));
    stretch->places = workspace_take_unset(workspace, width, sizeof *stretch->places);
    stretch->ways = workspace_take_unset(workspace, width, sizeof *stretch->ways);
    if (workspace->failed)
        return false;
    for (x = 0; x < width; x++) {
        double column = ((double)x + 0.5) / marker->step + 0.5;

        stretch->places[x] = within((int)column, marker->mask_width);
        stretch->ways[x] = (float)(column - (int)column);
    }
    return true;
}

/* The masks of a row: as they are made, or between the pixels of smaller ones. */
static void row_masks(const struct marker *marker, uint32_t y, float *luma, float *blue)
{
    size_t width = marker->image->width_px;

    if (marker->luma_mask == NULL) {
        texture_mask_row(marker->texture, y * width, width, marker->gain, luma, blue);
        return;
    }
    row_stretched(marker, marker->luma_mask, y, luma);
    if (blue != NULL)
        row_stretched(marker, marker->blue_mask, y, blue);
}

/* Lays the tiles of a row under its mask. */
static void row_pattern(const struct marker *marker, const float *tile, uint32_t y, float *row)
{
    int width = (int)marker->image->width_px;
    const float *line = tile + (size_t)(y % (uint32_t)marker->period_px) * (size_t)marker->period_px;
    int left;

    for (left = 0; left < width; left += marker->period_px)
        row_product(row + left, line, width - left < marker->period_px ? width - left : marker->period_px);
}

/* To the nearest whole, halves upwards. */
static inline int16_t rounded(float change)
{
    return (int16_t)((int)(change + 1024.5f) - 1024);
}

ENGINE_CLONES
static void changes_grey(const float *restrict luma, unsigned channels, uint32_t width, int16_t *restrict to)
{
    uint32_t x;

    for (x = 0; x < width; x++) {
        to[x * channels] = rounded(luma[x]);
        if (channels == 2)
            to[x * channels + 1] = 0;
    }
}

static inline void changes_mix(const float *restrict luma, const float *restrict blue,
                               const float *restrict red, unsigned channels, uint32_t width,
                               int16_t *restrict to)
{
    uint32_t x;

    for (x = 0; x < width; x++) {
        int16_t *pixel = to + (size_t)x * channels;

        pixel[0] = rounded(luma[x] + RED_OF_CR * red[x]);
        pixel[1] = rounded(luma[x] + GREEN_OF_CB * blue[x] + GREEN_OF_CR * red[x]);
        pixel[2] = rounded(luma[x] + BLUE_OF_CB * blue[x]);
        if (channels == 4)
            pixel[3] = 0;
    }
}

/* The numbers of channels there are, written out for the loops to be unrolled. */
ENGINE_CLONES
static void changes_color(const float *luma, const float *blue, const float *red, unsigned channels,
                          uint32_t width, int16_t *to)
{
    if (channels == 3)
        changes_mix(luma, blue, red, 3, width, to);
    else
        changes_mix(luma, blue, red, 4, width, to);
}

/* Adds changes to samples of 8 bits; so few that the errors' sum stays in 32 bits. */
ENGINE_CLONES
static int32_t samples_add(const uint8_t *restrict from, const int16_t *restrict changes,
                           uint8_t *restrict to, uint32_t count)
{
    int32_t errors = 0;
    uint32_t i;

    for (i = 0; i < count; i++) {
        int16_t new = (int16_t)(from[i] + changes[i]);
        int16_t error;

        new = (int16_t)(new < 0 ? 0 : new > 255 ? 255 : new);
        error = (int16_t)(new - from[i]);
        errors += error * error;
        to[i] = (uint8_t) new;
    }
    return errors;
}

static double row_add_8(const struct marker *marker, const uint8_t *from, uint8_t *to)
{
    uint32_t count = marker->image->width_px * marker->image->channels;
    double sum = 0;
    uint32_t i;

    for (i = 0; i < count; i += PART_SAMPLES)
        sum += samples_add(from + i, marker->changes + i, to + i,
                           count - i < PART_SAMPLES ? count - i : PART_SAMPLES);
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

/* The last channel, which is transparency, as it is. */
static void channel_copy(const uint16_t *from, uint16_t *to, unsigned channels, uint32_t width)
{
    uint32_t x;

    for (x = 1; x <= width; x++)
        to[(size_t)x * channels - 1] = from[(size_t)x * channels - 1];
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
            blue[x] = marker->red_row[x] = 0;
    }
}

static double row_mark_8(const struct marker *marker, const void *from, void *to, const float *blue)
{
    const struct image *image = marker->image;

    if (blue == NULL)
        changes_grey(marker->luma_row, image->channels, image->width_px, marker->changes);
    else
        changes_color(marker->luma_row, blue, marker->red_row, image->channels, image->width_px,
                      marker->changes);
    return row_add_8(marker, from, to);
}

static double row_mark_16(const struct marker *marker, const uint16_t *from, uint16_t *to, const float *blue)
{
    const struct image *image = marker->image;
    const float *luma = marker->luma_row;
    float *mixed = marker->blue_row + image->width_px;
    double sum;

    if (image_has_alpha(image))
        channel_copy(from, to, image->channels, image->width_px);
    if (blue == NULL)
        return channel_16(from, to, image->channels, image->width_px, luma);
    change_mix(luma, marker->red_row, RED_OF_CR, mixed, image->width_px);
    sum = channel_16(from, to, image->channels, image->width_px, mixed);
    change_mix(luma, blue, GREEN_OF_CB, mixed, image->width_px);
    change_mix(mixed, marker->red_row, GREEN_OF_CR, mixed, image->width_px);
    sum += channel_16(from + 1, to + 1, image->channels, image->width_px, mixed);
    change_mix(luma, blue, BLUE_OF_CB, mixed, image->width_px);
    return sum + channel_16(from + 2, to + 2, image->channels, image->width_px, mixed);
}

double marker_row(const struct marker *marker, uint32_t y, void *to)
{
    const struct image *image = marker->image;
    const void *from = image_row(image, y);
    float *blue = marker->blue_tile == NULL ? NULL : marker->blue_row;

    row_masks(marker, y, marker->luma_row, blue);
    row_pattern(marker, marker->luma_tile, y, marker->luma_row);
    if (blue != NULL)
        row_pattern(marker, marker->blue_tile, y, blue);
    if (blue != NULL)
        memset(marker->red_row, 0, image->width_px * sizeof *marker->red_row);
    if (marker->underlay != NULL)
        underlay_add(marker->underlay, y, blue, marker->red_row);
    if (image_has_alpha(image))
        transparent_spare(marker, from, marker->luma_row, blue);
    return image->depth_bits == 16 ? row_mark_16(marker, from, to, blue) : row_mark_8(marker, from, to, blue);
}
