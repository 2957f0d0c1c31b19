#include "engine/watermark/underlay.h"

#include <math.h>
#include <string.h>

#include "engine/watermark/clones.h"
#include "engine/image.h"

#define FLAT_ACTIVITY  0.1f /* of luma: a drawing's areas, even after JPEG; a sky without a cloud has more */
#define FLAT_SHARE     0.2  /* of the picture, from which on it is a drawing */
#define BLUE_AMPLITUDE 2.0f /* standard deviations of Cb and Cr at a gain of 1: */
#define RED_AMPLITUDE  1.5f /* butteraugli sees Cb sooner */
#define TONE_SHARE     0.25 /* of the energy of Cb */
#define ERROR_AIM      2.97 /* 43.4 dB: with the overlay, butteraugli has a 3-norm of about 1.3 */
#define REMARK_ERROR                                                                                         \
    1.75 /* taking an old word away costs as much again as the new one, but not the tones                    \
          */
#define GAIN_MOST   1.1
#define MEASURED_PX 100000 /* pixels that are enough to measure the distortion */

/* What steps of Cb and Cr do to red, green and blue, at constant luma. */
#define GREEN_OF_CB (-0.344136f)
#define BLUE_OF_CB  1.772f
#define RED_OF_CR   1.402f
#define GREEN_OF_CR (-0.714136f)

bool underlay_is_for(const struct image *image, const struct plane *plane, const float *activity)
{
    size_t count = (size_t)plane->width * (size_t)plane->height;
    size_t seen = 0;
    size_t flat = 0;
    size_t i;

    if (!image_has_color(image))
        return false;
    for (i = 0; i < count; i++) {
        bool is_seen = plane->weight == NULL || plane->weight[i] > 0;

        seen += is_seen;
        flat += is_seen && activity[i] < FLAT_ACTIVITY;
    }
    return (double)flat > FLAT_SHARE * (double)seen;
}

/* The side of a period, in pixels: no multiple of 8, where JPEG has its grid. */
static int period_of(uint32_t width_px, uint32_t height_px)
{
    int side = 2 * reader_period_px(width_px, height_px);

    return side % 8 == 0 ? side + 1 : side;
}

bool underlay_open(struct reader *reader, const struct image *image, uint32_t height_px,
                   const uint8_t key[32], struct plane *plane)
{
    double step = (double)period_of(image->width_px, height_px) / LATTICE_PERIOD;

    return reader_init(reader, key, LATTICE_UNDERLAY, reader->workspace) &&
           plane_read(image, PLANE_COLOR, step, reader->workspace, plane);
}

/* The word of the number; over an old mark its difference to that one's, as the tones are there then. */
static bool word_make(struct reader *reader, const struct plane *plane, uint64_t number,
                      int8_t word[POLAR_LENGTH])
{
    bool is_marked = reader_read_untouched(reader, plane, NULL);
    int8_t old[POLAR_LENGTH];
    unsigned i;

    polar_encode(reader->polar, number ^ reader->lattice->number_mask, word);
    if (!is_marked)
        return false;
    polar_encode(reader->polar, reader->number ^ reader->lattice->number_mask, old);
    for (i = 0; i < POLAR_LENGTH; i++)
        word[i] = (int8_t)(word[i] - old[i]);
    return true;
}

static bool is_transparent(const struct image *image, const void *row, uint32_t x)
{
    size_t at = (size_t)(x + 1) * image->channels - 1;

    return image_has_alpha(image) &&
           (image->depth_bits == 16 ? ((const uint16_t *)row)[at] : ((const uint8_t *)row)[at]) == 0;
}

ENGINE_CLONES
static void line_add(float *restrict to, const float *restrict tile, float amplitude, size_t count)
{
    size_t x;

    for (x = 0; x < count; x++)
        to[x] += amplitude * tile[x];
}

void underlay_add(const struct underlay *underlay, uint32_t y, float *blue, float *red)
{
    size_t side = (size_t)underlay->period_px;
    size_t width = underlay->image->width_px;
    const float *blues = underlay->blue_tile + y % side * side;
    const float *reds = underlay->red_tile + y % side * side;
    size_t left;

    for (left = 0; left < width; left += side) {
        size_t count = width - left < side ? width - left : side;

        line_add(blue + left, blues, BLUE_AMPLITUDE * underlay->gain, count);
        line_add(red + left, reds, RED_AMPLITUDE * underlay->gain, count);
    }
}

/* What a change leaves of itself in one sample when black and white have clipped it: the squared error on
 * 0..255. */
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
    double sum = 0;
    uint32_t x;

    memset(blue, 0, image->width_px * sizeof *blue);
    memset(red, 0, image->width_px * sizeof *red);
    underlay_add(underlay, y, blue, red);
    for (x = 0; x < image->width_px; x++) {
        size_t at = (size_t)x * image->channels;

        if (is_transparent(image, row, x))
            continue;
        sum += sample_error(image, row, at, RED_OF_CR * red[x]);
        sum += sample_error(image, row, at + 1, GREEN_OF_CB * blue[x] + GREEN_OF_CR * red[x]);
        sum += sample_error(image, row, at + 2, BLUE_OF_CB * blue[x]);
    }
    return sum;
}

/*
 * Black and white clip half of the pattern, so that more of it is as visible as
 * less of it is on other colours: the error that is left counts.
 */
static bool gain_choose(struct underlay *underlay, struct workspace *workspace)
{
    const struct image *image = underlay->image;
    uint64_t pixels = (uint64_t)image->width_px * image->height_px;
    uint32_t every = (uint32_t)(pixels / MEASURED_PX) + 1;
    float *blue = workspace_take_unset(workspace, image->width_px, sizeof *blue);
    float *red = workspace_take_unset(workspace, image->width_px, sizeof *red);
    double aim = ERROR_AIM;
    unsigned round;

    if (workspace->failed)
        return false;
    if (underlay->is_marked)
        aim *= REMARK_ERROR;
    underlay->gain = 1;
    for (round = 0; round < 2; round++) {
        double sum = 0;
        double samples = 0;
        uint32_t y;

        for (y = every / 2; y < image->height_px; y += every) {
            sum += row_error(underlay, y, blue, red);
            samples += 3.0 * image->width_px;
        }
        if (sum > 0)
            underlay->gain = (float)fmin((double)underlay->gain * sqrt(aim * samples / sum), GAIN_MOST);
    }
    return true;
}

bool underlay_prepare(struct underlay *underlay, const uint8_t key[32], uint64_t number,
                      struct workspace *workspace)
{
    const struct image *image = underlay->image;
    struct reader *reader = &underlay->reader;
    struct lattice_content content = {0};
    int8_t word[POLAR_LENGTH];

    reader->workspace = workspace;
    if (!underlay_open(reader, image, image->height_px, key, &underlay->plane))
        return false;
    underlay->is_marked = word_make(reader, &underlay->plane, number, word);
    underlay->period_px = period_of(image->width_px, image->height_px);
    content = (struct lattice_content){.band = &reader->lattice->luma,
                                       .word = word,
                                       .band_weight = (float)sqrt(1 - TONE_SHARE),
                                       .tone_weight = underlay->is_marked ? 0 : (float)sqrt(TONE_SHARE)};
    underlay->blue_tile = lattice_tile(reader->lattice, &content, underlay->period_px, workspace);
    content = (struct lattice_content){.band = &reader->lattice->chroma, .word = word, .band_weight = 1};
    underlay->red_tile = lattice_tile(reader->lattice, &content, underlay->period_px, workspace);
    return !workspace->failed && gain_choose(underlay, workspace);
}

void underlay_fini(struct underlay *underlay)
{
    reader_fini(&underlay->reader);
}
