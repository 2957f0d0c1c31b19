#include "engine/watermark/marker.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/watermark/color.h"
#include "engine/image.h"

enum { part_samples = 16384 }; /* the squared errors of so many samples fit 32 bits */

static int index_clamped(int value, int most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

ENGINE_CLONES
static void row_product(float *restrict row, const float *restrict tile, int width)
{
    for (int x = 0; x < width; x++)
        row[x] *= tile[x];
}

ENGINE_CLONES
static void line_between(const float *restrict upper, const float *restrict lower, float down,
                         float *restrict line, int width)
{
    for (int x = 0; x < width; x++)
        line[x] = upper[x] + down * (lower[x] - upper[x]);
}

/* Interpolates the mask for pictures that are larger than the mask: first down, then along the row. */
static void row_stretched(const struct marker *marker, const float *mask, uint32_t y, float *to)
{
    const struct marker_stretch *stretch = &marker->stretch;
    double row = (y + 0.5) / marker->step - 0.5;
    int top = (int)floor(row);
    int width = marker->mask_width;
    const float *upper = mask + (size_t)index_clamped(top, marker->mask_height - 1) * (size_t)width;
    const float *lower = mask + (size_t)index_clamped(top + 1, marker->mask_height - 1) * (size_t)width;
    float *line = stretch->line;

    line_between(upper, lower, (float)(row - top), line + 1, width);
    line[0] = line[1];
    line[width + 1] = line[width];
    for (uint32_t x = 0; x < marker->image->width_px; x++) {
        const float *at = line + stretch->places[x];

        to[x] = at[0] + stretch->ways[x] * (at[1] - at[0]);
    }
}

bool marker_stretch_init(struct marker *marker, struct workspace *workspace)
{
    struct marker_stretch *stretch = &marker->stretch;
    size_t width = marker->image->width_px;

    stretch->line = workspace_take_unset(workspace, (size_t)marker->mask_width + 2, sizeof(float));
    stretch->places = workspace_take_unset(workspace, width, sizeof *stretch->places);
    stretch->ways = workspace_take_unset(workspace, width, sizeof *stretch->ways);
    if (workspace->failed)
        return false;
    for (size_t x = 0; x < width; x++) {
        double column = ((double)x + 0.5) / marker->step + 0.5;

        stretch->places[x] = index_clamped((int)column, marker->mask_width);
        stretch->ways[x] = (float)(column - (int)column);
    }
    return true;
}

/* Computes the masks of a row, or interpolates them from the smaller masks. */
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

/* Multiplies the mask of a row by the tiles. */
static void row_pattern(const struct marker *marker, const float *tile, uint32_t y, float *row)
{
    int width = (int)marker->image->width_px;
    const float *line = tile + (size_t)(y % (uint32_t)marker->period_px) * (size_t)marker->period_px;

    for (int left = 0; left < width; left += marker->period_px)
        row_product(row + left, line, width - left < marker->period_px ? width - left : marker->period_px);
}

/* Repeats a line of the cells along the row, if the row lies in a stripe. */
static void row_cells(const struct marker *marker, uint32_t y, float *row)
{
    size_t side = (size_t)marker->cells_px;
    size_t width = marker->image->width_px;

    if (y % marker->stripes.step_px >= marker->stripes.high_px) {
        memset(row, 0, width * sizeof *row);
        return;
    }
    for (size_t left = 0; left < width; left += side)
        memcpy(row + left, marker->cells + y % side * side,
               (width - left < side ? width - left : side) * sizeof *row);
}

/* Computes the changes of luma and Cb of a row. */
static void row_changes(const struct marker *marker, uint32_t y, float *luma, float *blue)
{
    if (marker->cells != NULL) {
        row_cells(marker, y, luma);
        if (blue != NULL)
            memset(blue, 0, marker->image->width_px * sizeof *blue);
        return;
    }
    row_masks(marker, y, luma, blue);
    row_pattern(marker, marker->luma_tile, y, luma);
    if (blue != NULL)
        row_pattern(marker, marker->blue_tile, y, blue);
}

/* Rounds to the nearest integer, halves upwards. */
static inline int16_t rounded(float change)
{
    return (int16_t)((int)(change + 1024.5f) - 1024);
}

ENGINE_CLONES
static void changes_grey(const float *restrict luma, unsigned channels, uint32_t width, int16_t *restrict to)
{
    for (uint32_t x = 0; x < width; x++) {
        to[x * channels] = rounded(luma[x]);
        if (channels == 2)
            to[x * channels + 1] = 0;
    }
}

static inline void changes_mix(const float *restrict luma, const float *restrict blue,
                               const float *restrict red, unsigned channels, uint32_t width,
                               int16_t *restrict to)
{
    for (uint32_t x = 0; x < width; x++) {
        int16_t *pixel = to + (size_t)x * channels;

        pixel[0] = rounded(luma[x] + red_of_cr * red[x]);
        pixel[1] = rounded(luma[x] + green_of_cb * blue[x] + green_of_cr * red[x]);
        pixel[2] = rounded(luma[x] + blue_of_cb * blue[x]);
        if (channels == 4)
            pixel[3] = 0;
    }
}

/* The two channel counts are constants here, so that the loops unroll. */
ENGINE_CLONES
static void changes_color(const float *luma, const float *blue, const float *red, unsigned channels,
                          uint32_t width, int16_t *to)
{
    if (channels == 3)
        changes_mix(luma, blue, red, 3, width, to);
    else
        changes_mix(luma, blue, red, 4, width, to);
}

/* Adds changes to 8-bit samples. count is at most part_samples, so the sum of errors fits 32 bits. */
ENGINE_CLONES
static int32_t samples_add(const uint8_t *restrict from, const int16_t *restrict changes,
                           uint8_t *restrict to, uint32_t count)
{
    int32_t errors = 0;

    for (uint32_t i = 0; i < count; i++) {
        int16_t new = (int16_t)(from[i] + changes[i]);

        new = (int16_t)(new < 0 ? 0 : new > 255 ? 255 : new);
        int16_t error = (int16_t)(new - from[i]);
        errors += error * error;
        to[i] = (uint8_t) new;
    }
    return errors;
}

static double row_add_8(const struct marker *marker, const uint8_t *from, uint8_t *to)
{
    uint32_t count = marker->image->width_px * marker->image->channels;
    double sum = 0;

    for (uint32_t i = 0; i < count; i += part_samples)
        sum += samples_add(from + i, marker->changes + i, to + i,
                           count - i < part_samples ? count - i : part_samples);
    return sum;
}

static double channel_16(const uint16_t *from, uint16_t *to, unsigned channels, uint32_t width,
                         const float *change)
{
    double sum = 0;

    for (uint32_t x = 0; x < width; x++) {
        size_t at = (size_t)x * channels;
        int old = from[at];
        int new = index_clamped((int)((float)old + change[x] * 257.0f + 65536.5f) - 65536, 65535);

        sum += (double)(new - old) * (new - old) / (257.0 * 257.0);
        to[at] = (uint16_t) new;
    }
    return sum;
}

ENGINE_CLONES
static void change_mix(const float *luma, const float *blue, float factor, float *to, uint32_t width)
{
    for (uint32_t x = 0; x < width; x++)
        to[x] = luma[x] + factor * blue[x];
}

/* Clears the changes of fully transparent pixels, where the interpolated mask may not be 0. */
static void transparent_spare(const struct marker *marker, const void *from, float *luma, float *blue)
{
    const struct image *image = marker->image;

    for (uint32_t x = 0; x < image->width_px; x++) {
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

    for (size_t x = 1; image_has_alpha(image) && x <= image->width_px; x++)
        to[x * image->channels - 1] = from[x * image->channels - 1];
    if (blue == NULL)
        return channel_16(from, to, image->channels, image->width_px, luma);
    change_mix(luma, marker->red_row, red_of_cr, mixed, image->width_px);
    double sum = channel_16(from, to, image->channels, image->width_px, mixed);
    change_mix(luma, blue, green_of_cb, mixed, image->width_px);
    change_mix(mixed, marker->red_row, green_of_cr, mixed, image->width_px);
    sum += channel_16(from + 1, to + 1, image->channels, image->width_px, mixed);
    change_mix(luma, blue, blue_of_cb, mixed, image->width_px);
    return sum + channel_16(from + 2, to + 2, image->channels, image->width_px, mixed);
}

double marker_row(const struct marker *marker, uint32_t y, void *to)
{
    const struct image *image = marker->image;
    const void *from = image_row(image, y);
    float *blue = image_has_color(image) ? marker->blue_row : NULL;

    row_changes(marker, y, marker->luma_row, blue);
    if (blue != NULL)
        memset(marker->red_row, 0, image->width_px * sizeof *marker->red_row);
    if (marker->underlay != NULL)
        underlay_add(marker->underlay, y, blue, marker->red_row);
    if (image_has_alpha(image))
        transparent_spare(marker, from, marker->luma_row, blue);
    return image->depth_bits == 16 ? row_mark_16(marker, from, to, blue) : row_mark_8(marker, from, to, blue);
}
