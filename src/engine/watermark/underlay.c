#include "engine/watermark/underlay.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/watermark/cells.h"
#include "engine/watermark/color.h"
#include "engine/watermark/texture.h"
#include "engine/image.h"

enum { measured_px = 100000 }; /* enough pixels to measure the distortion */

/* The figures below have no published source; `./dev bench watermark --drawings N` measures the effect. */

/* A drawing's flat areas have less activity than this, even after JPEG; a sky without a cloud has more. */
static const float flat_activity = 0.1f;
static const double flat_share = 0.2; /* of the picture; from here on it counts as a drawing */
/*
 * Share of flat areas in Cb from which on a picture is almost without colour. Few of 350 pictures lie
 * between 0.45 and 0.8.
 */
static const double colorless_share = 0.5;

/* Standard deviations at a gain of 1, balanced by butteraugli. */
static const float blue_amplitude = 2.0f;
static const float red_amplitude = 1.5f;
static const double tone_share = 0.25; /* of the energy of Cb */

/* Mean squared errors of 48.1 and 43.4 dB. With the overlay, butteraugli's 3-norm is about 1.0 and 1.3. */
static const double error_aims[] = {[UNDERLAY_FAINT] = 1.0, [UNDERLAY_FULL] = 2.97};
/* An old underlay with a greater gain is a full underlay. The gains are about 0.6 (faint) and 1 (full). */
static const double full_gain_least = 0.8;
/* Removing an old word costs as much energy as the new word; the tones stay. */
static const double remark_error = 1.75;
static const double gain_most = 1.1;
/* Cells are less visible to butteraugli than smooth spots, so they have more energy (42.8 dB). */
static const double cells_error = 3.4;
static const double cells_gain_most = 1.7;

/* Returns the share of flat pixels in the visible pixels. */
static double flat_part(const struct plane *plane, const float *activity)
{
    size_t count = (size_t)plane->width * (size_t)plane->height;
    size_t seen = 0;
    size_t flat = 0;

    for (size_t i = 0; i < count; i++) {
        bool is_seen = plane->weight == NULL || plane->weight[i] > 0;

        seen += is_seen;
        flat += is_seen && activity[i] < flat_activity;
    }
    return seen > 0 ? (double)flat / (double)seen : 0;
}

enum underlay_level underlay_level(const struct image *image, const struct plane *plane,
                                   const float *activity, struct workspace *workspace)
{
    struct texture blue;

    if (!image_has_color(image))
        return UNDERLAY_NONE;
    if (flat_part(plane, activity) > flat_share)
        return UNDERLAY_FULL;
    size_t mark = workspace_mark(workspace);
    bool is_colorless =
        texture_measure(plane->blue, plane->width, plane->height, texture_blue_radius, workspace, &blue) &&
        flat_part(plane, blue.activity) > colorless_share;
    workspace_rewind(workspace, mark);
    return is_colorless ? UNDERLAY_FULL : UNDERLAY_FAINT;
}

/* Returns the side of a period in pixels, which is not a multiple of 8, the period of JPEG's grid. */
static int period_of(uint32_t width_px, uint32_t height_px)
{
    int side = 2 * reader_period_px(width_px, height_px);

    return side % 8 == 0 ? side + 1 : side;
}

bool underlay_open(struct reader *reader, const struct image *image, uint32_t height_px,
                   const uint8_t key[32], struct plane *plane)
{
    double step = (double)period_of(image->width_px, height_px) / lattice_period;

    return reader_init(reader, key, LATTICE_UNDERLAY, reader->workspace) &&
           plane_read(image, PLANE_COLOR, step, reader->workspace, plane);
}

/* Returns the gain of an old underlay: the projection of the plane on the old pattern. */
static double old_gain(struct reader *reader, const struct plane *plane, const int8_t old[polar_length])
{
    struct workspace *workspace = reader->workspace;
    size_t mark = workspace_mark(workspace);
    struct lattice_content content = {.band = &reader->lattice->luma, .word = old, .band_weight = 1};
    const float *tile = lattice_tile(reader->lattice, &content, lattice_period, workspace);
    double sum = 0;
    double squares = 0;

    for (int y = 0; tile != NULL && y < plane->height; y++) {
        const float *line = tile + (size_t)(y % lattice_period) * lattice_period;
        const float *row = plane->luma + (size_t)y * (size_t)plane->width;

        for (int x = 0; x < plane->width; x++) {
            double sample = (double)line[x % lattice_period];

            sum += sample * ((double)row[x] - 128);
            squares += sample * sample;
        }
    }
    workspace_rewind(workspace, mark);
    return squares > 0 ? sum / squares / ((double)blue_amplitude * sqrt(1 - tone_share)) : 0;
}

/* Encodes the number, and the number of an old mark, if there is one. */
static void underlay_words(struct underlay *underlay, uint64_t number, int8_t word[polar_length],
                           int8_t old[polar_length])
{
    struct reader *reader = &underlay->reader;

    underlay->is_marked = reader_read_untouched(reader, &underlay->plane, NULL);
    polar_encode(reader->polar, number ^ reader->lattice->number_mask, word);
    if (!underlay->is_marked)
        return;
    polar_encode(reader->polar, reader->number ^ reader->lattice->number_mask, old);
    if (old_gain(reader, &underlay->plane, old) > full_gain_least)
        underlay->level = UNDERLAY_FULL;
}

/*
 * Makes the tiles. Over an old mark, the tiles are the difference to the old word, without the tones that
 * the picture already has.
 */
static void tiles_make(struct underlay *underlay, int8_t word[polar_length], const int8_t old[polar_length],
                       struct workspace *workspace)
{
    const struct lattice *lattice = underlay->reader.lattice;
    struct lattice_content content = {0};

    for (unsigned i = 0; underlay->is_marked && i < polar_length; i++)
        word[i] = (int8_t)(word[i] - old[i]);
    content = (struct lattice_content){.band = &lattice->luma,
                                       .word = word,
                                       .band_weight = (float)sqrt(1 - tone_share),
                                       .tone_weight = underlay->is_marked ? 0 : (float)sqrt(tone_share)};
    underlay->blue_tile = lattice_tile(lattice, &content, underlay->period_px, workspace);
    content = (struct lattice_content){.band = &lattice->chroma, .word = word, .band_weight = 1};
    underlay->red_tile = lattice_tile(lattice, &content, underlay->period_px, workspace);
}

static void cells_make(struct underlay *underlay, const int8_t *word, const int8_t *old,
                       struct workspace *workspace)
{
    const struct lattice *lattice = underlay->reader.lattice;
    const struct cells_words words = {word, underlay->is_marked ? old : NULL};

    underlay->blue_tile =
        cells_underlay(lattice, &lattice->luma, words, true, underlay->period_px, workspace);
    underlay->red_tile =
        cells_underlay(lattice, &lattice->chroma, words, false, underlay->period_px, workspace);
}

ENGINE_CLONES
static void tile_line(float *restrict to, const float *restrict tile, float amplitude, size_t count)
{
    for (size_t x = 0; x < count; x++)
        to[x] += amplitude * tile[x];
}

void underlay_add(const struct underlay *underlay, uint32_t y, float *blue, float *red)
{
    size_t side = (size_t)underlay->period_px;
    size_t width = underlay->image->width_px;
    const float *blues = underlay->blue_tile + y % side * side;
    const float *reds = underlay->red_tile + y % side * side;

    for (size_t left = 0; left < width; left += side) {
        size_t count = width - left < side ? width - left : side;

        tile_line(blue + left, blues, blue_amplitude * underlay->gain, count);
        tile_line(red + left, reds, red_amplitude * underlay->gain, count);
    }
}

/* Returns the squared error of a sample after clipping, on the scale 0..255. */
static double sample_error(const struct image *image, const void *row, size_t at, float change)
{
    int old = image->depth_bits == 16 ? ((const uint16_t *)row)[at] / 257 : ((const uint8_t *)row)[at];
    int new = old + (int)floorf(change + 0.5f);

    new = new < 0 ? 0 : new > 255 ? 255 : new;
    return (double)(new - old) * (new - old);
}

static double row_error(const struct underlay *underlay, uint32_t y, float *blue, float *red)
{
    const struct image *image = underlay->image;
    const void *row = image_row(image, y);
    bool has_alpha = image_has_alpha(image);
    double sum = 0;

    memset(blue, 0, image->width_px * sizeof *blue);
    memset(red, 0, image->width_px * sizeof *red);
    underlay_add(underlay, y, blue, red);
    for (uint32_t x = 0; x < image->width_px; x++) {
        size_t at = (size_t)x * image->channels, last = at + image->channels - 1;
        bool is_seen = !has_alpha || (image->depth_bits == 16 ? ((const uint16_t *)row)[last]
                                                              : ((const uint8_t *)row)[last]) != 0;

        if (!is_seen)
            continue;
        sum += sample_error(image, row, at, red_of_cr * red[x]);
        sum += sample_error(image, row, at + 1, green_of_cb * blue[x] + green_of_cr * red[x]);
        sum += sample_error(image, row, at + 2, blue_of_cb * blue[x]);
    }
    return sum;
}

/* Returns the mean squared error of a sample at the gain, measured on evenly spread rows. */
static double error_measure(const struct underlay *underlay, float *blue, float *red)
{
    const struct image *image = underlay->image;
    uint64_t pixels = (uint64_t)image->width_px * image->height_px;
    uint32_t every = (uint32_t)(pixels / measured_px) + 1;
    double sum = 0;
    double samples = 0;

    for (uint32_t y = every / 2; y < image->height_px; y += every) {
        sum += row_error(underlay, y, blue, red);
        samples += 3.0 * image->width_px;
    }
    return sum / samples;
}

static void smooth_gain(struct underlay *underlay, double aim, float *blue, float *red)
{
    underlay->gain = 1;
    for (unsigned round = 0; round < 2; round++) {
        double error = error_measure(underlay, blue, red);

        if (error > 0)
            underlay->gain = (float)fmin((double)underlay->gain * sqrt(aim / error), gain_most);
    }
}

/* Finds the gain by bisection, because the error grows in steps: few levels are rounded alike. */
static void cells_gain(struct underlay *underlay, double aim, float *blue, float *red)
{
    double low = 0.3;
    double high = cells_gain_most;
    double nearest = INFINITY;
    float best = 0;

    for (unsigned round = 0; round < 7; round++) {
        underlay->gain = (float)sqrt(low * high);
        double error = error_measure(underlay, blue, red);
        double distance = error > 0 ? fabs(log(error / aim)) : INFINITY;

        if (distance < nearest)
            best = underlay->gain;
        nearest = fmin(distance, nearest);
        *(error < aim ? &low : &high) = (double)underlay->gain;
    }
    underlay->gain = best;
}

/*
 * Black and white clip half of the pattern, which may therefore be stronger there at the same visibility. So
 * the error after clipping determines the gain.
 */
static bool gain_choose(struct underlay *underlay, struct workspace *workspace)
{
    uint32_t width = underlay->image->width_px;
    float *blue = workspace_take_unset(workspace, width, sizeof *blue);
    float *red = workspace_take_unset(workspace, width, sizeof *red);
    double aim = underlay->is_compact ? cells_error : error_aims[underlay->level];

    if (workspace->failed)
        return false;
    if (underlay->is_marked)
        aim *= remark_error;
    if (underlay->is_compact)
        cells_gain(underlay, aim, blue, red);
    else
        smooth_gain(underlay, aim, blue, red);
    return true;
}

bool underlay_prepare(struct underlay *underlay, const uint8_t key[32], uint64_t number,
                      struct workspace *workspace)
{
    const struct image *image = underlay->image;
    struct reader *reader = &underlay->reader;
    int8_t word[polar_length];
    int8_t old[polar_length];

    reader->workspace = workspace;
    if (!underlay_open(reader, image, image->height_px, key, &underlay->plane))
        return false;
    underlay_words(underlay, number, word, old);
    underlay->period_px = period_of(image->width_px, image->height_px);
    if (underlay->is_compact)
        cells_make(underlay, word, old, workspace);
    else
        tiles_make(underlay, word, old, workspace);
    return !workspace->failed && gain_choose(underlay, workspace);
}

void underlay_fini(struct underlay *underlay)
{
    reader_fini(&underlay->reader);
}
