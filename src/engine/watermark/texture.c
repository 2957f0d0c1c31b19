#include "engine/watermark/texture.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "engine/clones.h"

enum {
    activity_radius = 4,
    activity_taps = 2 * activity_radius + 1,
    detail_margin = 2 * activity_radius, /* rows and columns of detail beyond the edges */
    taps_max = 2 * texture_blue_radius + 1
};

/*
 * The masking model: standard deviations of the pattern in grey levels, over
 * activity in grey levels.  `./dev bench watermark` measures visibility (PSNR,
 * CIEDE2000, SSIM) and robustness.
 */
static const float texture_floor = 0.8f; /* added to every activity, so flat areas get some pattern */
static const float luma_cap_flat = 0.75f;
static const float luma_cap_slope = 0.55f;
static const float luma_cap_most = 4.0f;
static const float blue_cap_flat = 0.45f;
static const float blue_cap_slope = 0.5f;
static const float blue_cap_most = 1.2f;
static const float headroom_levels = 6.0f; /* closer than this to black or white, the pattern fades */
static const float headroom_least = 0.25f;

/* Means use integers, so running sums are exact. The greatest sum, of 11^4 samples, fits 31 bits. */
static const float sample_most = 511.0f;
static const float sample_scale = 256.0f;
static const float root_scale = 4096.0f;

/* Two passes of a box filter: along the row directly, down the columns by running sums. */
struct smoother {
    int taps;
    int width; /* of the output */
    int turn;  /* rows received */
    int32_t *across;
    int32_t *sums;
    int32_t *sums_again;
    int32_t *rows; /* the last taps rows, and the last taps sums of rows */
    int32_t *rows_again;
};

/* State of measuring a plane's detail and activity. */
struct measurement {
    const float *plane;
    int width;
    int height;
    int radius;
    float *padded;     /* a row of the plane, mirrored beyond the ends */
    int32_t *numbers;  /* the same, or the roots, as integers */
    int32_t *smoothed; /* output row of a smoother */
    float *details;    /* line buffer: the last detail_margin + 1 rows of detail */
    float *activity;
    struct smoother mean;
    struct smoother root;
};

static bool smoother_init(struct smoother *smoother, int taps, int width, struct workspace *workspace)
{
    size_t count = (size_t)width;

    smoother->taps = taps;
    smoother->width = width;
    smoother->turn = 0;
    smoother->across = workspace_take(workspace, count + taps_max, sizeof(int32_t));
    smoother->sums = workspace_take(workspace, count, sizeof(int32_t));
    smoother->sums_again = workspace_take(workspace, count, sizeof(int32_t));
    smoother->rows = workspace_take(workspace, count * (size_t)taps, sizeof(int32_t));
    smoother->rows_again = workspace_take(workspace, count * (size_t)taps, sizeof(int32_t));
    return !workspace->failed;
}

/* Sums over 5, 9 and 11 neighbours. They are written out so that the compiler vectorises them. */
ENGINE_CLONES
static void row_sum_5(const int32_t *restrict from, int32_t *restrict to, int count)
{
    for (int x = 0; x < count; x++)
        to[x] = from[x] + from[x + 1] + from[x + 2] + from[x + 3] + from[x + 4];
}

ENGINE_CLONES
static void row_sum_9(const int32_t *restrict from, int32_t *restrict to, int count)
{
    for (int x = 0; x < count; x++)
        to[x] = from[x] + from[x + 1] + from[x + 2] + from[x + 3] + from[x + 4] + from[x + 5] + from[x + 6] +
                from[x + 7] + from[x + 8];
}

ENGINE_CLONES
static void row_sum_11(const int32_t *restrict from, int32_t *restrict to, int count)
{
    for (int x = 0; x < count; x++)
        to[x] = from[x] + from[x + 1] + from[x + 2] + from[x + 3] + from[x + 4] + from[x + 5] + from[x + 6] +
                from[x + 7] + from[x + 8] + from[x + 9] + from[x + 10];
}

static void row_sum(const int32_t *from, int32_t *to, int count, int taps)
{
    if (taps == 5)
        row_sum_5(from, to, count);
    else if (taps == 9)
        row_sum_9(from, to, count);
    else
        row_sum_11(from, to, count);
}

/* Running sums down the columns, and running sums of these. */
ENGINE_CLONES
static void smoother_slide(int32_t *restrict sums, int32_t *restrict sums_again, int32_t *restrict row,
                           int32_t *restrict row_again, int32_t *restrict numbers, int width)
{
    for (int x = 0; x < width; x++) {
        int32_t enters = numbers[x];
        int32_t sum = sums[x] + enters - row[x];
        int32_t again = sums_again[x] + sum - row_again[x];

        row[x] = enters;
        row_again[x] = sum;
        sums[x] = sum;
        sums_again[x] = again;
        numbers[x] = again;
    }
}

/*
 * Takes the next row of numbers, width + 2 * (taps - 1) of them. Returns true if numbers now holds the row
 * of sums of taps - 1 rows earlier.
 */
static bool smoother_row(struct smoother *smoother, int32_t *numbers)
{
    size_t place = (size_t)(smoother->turn % smoother->taps) * (size_t)smoother->width;

    row_sum(numbers, smoother->across, smoother->width + smoother->taps - 1, smoother->taps);
    row_sum(smoother->across, numbers, smoother->width, smoother->taps);
    smoother_slide(smoother->sums, smoother->sums_again, smoother->rows + place, smoother->rows_again + place,
                   numbers, smoother->width);
    return ++smoother->turn >= 2 * smoother->taps - 1;
}

/* Mirrors a place at the ends of a line. The place is at most length beyond the line. */
static int mirrored(int place, int length)
{
    place = place < 0 ? -1 - place : place;
    place = place >= length ? 2 * length - 1 - place : place;
    return place < 0 ? 0 : place;
}

/* Copies row y of the plane with `beyond` mirrored samples at both ends. */
static void row_pad(const struct measurement *measurement, int y, int beyond, float *to)
{
    int width = measurement->width;
    const float *from = measurement->plane + (size_t)mirrored(y, measurement->height) * (size_t)width;

    for (int x = 0; x < beyond; x++) {
        to[x] = from[mirrored(x - beyond, width)];
        to[beyond + width + x] = from[mirrored(width + x, width)];
    }
    memcpy(to + beyond, from, (size_t)width * sizeof *to);
}

ENGINE_CLONES
static void numbers_take(const float *restrict from, int32_t *restrict to, int count)
{
    for (int x = 0; x < count; x++) {
        float value = from[x];

        value = value > sample_most ? sample_most : value < -sample_most ? -sample_most : value;
        to[x] = (int32_t)(value * sample_scale);
    }
}

/* Computes detail from samples and the sums around them, and the roots of the detail's magnitude. */
ENGINE_CLONES
static void detail_take(const float *restrict samples, int32_t *restrict numbers, float *restrict detail,
                        float factor, int count)
{
    for (int x = 0; x < count; x++) {
        float difference = samples[x] - (float)numbers[x] * factor;
        float size = fabsf(difference);

        size = size > 2 * sample_most ? 2 * sample_most : size;
        detail[x] = difference;
        numbers[x] = (int32_t)(sqrtf(size) * root_scale);
    }
}

ENGINE_CLONES
static void activity_take(const int32_t *restrict numbers, float *restrict activity, float factor, int count)
{
    for (int x = 0; x < count; x++) {
        float root = (float)numbers[x] * factor;

        activity[x] = root * root;
    }
}

static bool measurement_init(struct measurement *measurement, struct workspace *workspace)
{
    size_t widest = (size_t)measurement->width + 2 * (2 * texture_blue_radius + detail_margin);
    size_t detailed = (size_t)measurement->width + 2 * detail_margin;

    measurement->padded = workspace_take(workspace, widest, sizeof(float));
    measurement->numbers = workspace_take(workspace, widest, sizeof(int32_t));
    measurement->details = workspace_take(workspace, detailed * (detail_margin + 1), sizeof(float));
    measurement->activity = workspace_take(workspace, (size_t)measurement->width, sizeof(float));
    return smoother_init(&measurement->mean, 2 * measurement->radius + 1, (int)detailed, workspace) &&
           smoother_init(&measurement->root, activity_taps, measurement->width, workspace);
}

static float smoother_factor(const struct smoother *smoother, float scale)
{
    float square = (float)(smoother->taps * smoother->taps);

    return 1 / (square * square * scale);
}

/* Takes row y of the mirrored plane. Returns the row of detail that this completes, or NULL. */
static float *detail_row(struct measurement *measurement, int y)
{
    int reach = 2 * measurement->radius;
    int detailed = measurement->mean.width;
    int made = y - reach;

    row_pad(measurement, y, reach + detail_margin, measurement->padded);
    numbers_take(measurement->padded, measurement->numbers, detailed + 2 * reach);
    if (!smoother_row(&measurement->mean, measurement->numbers))
        return NULL;
    row_pad(measurement, made, detail_margin, measurement->padded);
    float *detail = measurement->details +
                    (size_t)((made + 2 * detail_margin + 2) % (detail_margin + 1)) * (size_t)detailed;
    detail_take(measurement->padded, measurement->numbers, detail,
                smoother_factor(&measurement->mean, sample_scale), detailed);
    return detail;
}

bool texture_rows(const float *plane, int width, int height, int radius, struct workspace *workspace,
                  texture_sink *sink, void *closure)
{
    struct measurement measurement = {.plane = plane, .width = width, .height = height, .radius = radius};
    int reach = 2 * radius + detail_margin;
    size_t mark = workspace_mark(workspace);

    if (!measurement_init(&measurement, workspace))
        return false;
    float factor = smoother_factor(&measurement.root, root_scale);
    for (int y = -reach; y < height + reach; y++) {
        int done = y - reach;

        if (detail_row(&measurement, y) == NULL || !smoother_row(&measurement.root, measurement.numbers))
            continue;
        float *detail = measurement.details + (size_t)((done + 2 * detail_margin + 2) % (detail_margin + 1)) *
                                                  (size_t)measurement.mean.width;
        activity_take(measurement.numbers, measurement.activity, factor, width);
        sink(closure, done, detail + detail_margin, measurement.activity);
    }
    workspace_rewind(workspace, mark);
    return true;
}

struct measured {
    struct texture *texture;
    size_t width;
};

static void measured_row(void *closure, int y, float *detail, const float *activity)
{
    struct measured *measured = closure;
    size_t first = (size_t)y * measured->width;

    memcpy(measured->texture->detail + first, detail, measured->width * sizeof *detail);
    memcpy(measured->texture->activity + first, activity, measured->width * sizeof *activity);
}

bool texture_measure(const float *plane, int width, int height, int radius, struct workspace *workspace,
                     struct texture *texture)
{
    size_t count = (size_t)width * (size_t)height;
    struct measured measured = {texture, (size_t)width};

    texture->detail = workspace_take_unset(workspace, count, sizeof(float));
    texture->activity = workspace_take_unset(workspace, count, sizeof(float));
    return !workspace->failed &&
           texture_rows(plane, width, height, radius, workspace, measured_row, &measured);
}

/* Returns the factor that fades the pattern near black and white, where it would clip on one side. */
static inline float headroom(float luma)
{
    float room = (luma < 255.0f - luma ? luma : 255.0f - luma) * (1 / headroom_levels);

    return room >= 1 ? 1.0f : room > headroom_least ? room : headroom_least;
}

/* The pattern is proportional to the square root of the texture (masking). */
static inline float strength(float activity)
{
    return sqrtf(activity + texture_floor);
}

/* Cap in flat places: an amount that is always added, and an amount that does not depend on the headroom. */
struct flat_cap {
    float usual;
    float at_least_headroom;
};

static struct flat_cap flat_cap(float flat, bool caps_flat)
{
    return caps_flat ? (struct flat_cap){0, flat * headroom_least} : (struct flat_cap){flat, 0};
}

/* Limits the wanted strength by a cap that grows with the texture. */
static inline float capped(float wanted, float activity, float flat, float slope, float most)
{
    float bound = flat + slope * activity;

    bound = bound < most ? bound : most;
    return wanted < bound ? wanted : bound;
}

ENGINE_CLONES
static void mask_fill(const float *restrict activity, const float *restrict luma, float gain,
                      struct flat_cap flat, float *restrict mask, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float room = headroom(luma[i]);

        mask[i] = room * capped(gain * strength(activity[i]), activity[i],
                                flat.usual + flat.at_least_headroom / room, luma_cap_slope, luma_cap_most);
    }
}

ENGINE_CLONES
static void mask_fill_blue(const float *restrict activity, const float *restrict luma, float gain,
                           struct flat_cap flat, float *restrict mask, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float room = headroom(luma[i]);

        mask[i] = room * capped(gain * strength(activity[i]), activity[i],
                                flat.usual + flat.at_least_headroom / room, blue_cap_slope, blue_cap_most);
    }
}

ENGINE_CLONES
static void weight_apply(float *restrict values, const float *restrict weight, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] *= weight[i];
}

void texture_mask_row(const struct texture_mask *mask, size_t first, size_t count, float gain, float *luma,
                      float *blue)
{
    const struct plane *plane = mask->plane;

    mask_fill(mask->activity + first, plane->luma + first, gain, flat_cap(luma_cap_flat, mask->caps_flat),
              luma, count);
    if (plane->weight != NULL)
        weight_apply(luma, plane->weight + first, count);
    if (blue == NULL)
        return;
    mask_fill_blue(mask->activity + first, plane->luma + first, gain * mask->blue_share,
                   flat_cap(blue_cap_flat, mask->caps_flat), blue, count);
    if (plane->weight != NULL)
        weight_apply(blue, plane->weight + first, count);
}

static inline float clamped(float value, float most)
{
    return value > most ? most : value < -most ? -most : value;
}

ENGINE_CLONES
static void whiten(float *restrict detail, const float *restrict activity, const float *restrict luma,
                   float noise, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float a = activity[i];
        float weight = headroom(luma[i]) * strength(a) / (a * a + noise);

        detail[i] = clamped(detail[i], 3.0f * (a + 1.0f)) * weight;
    }
}

void texture_whiten_row(float *detail, const float *activity, const float *luma, const float *weight,
                        int width, bool is_blue)
{
    whiten(detail, activity, luma, is_blue ? 1.0f : 3.0f, (size_t)width);
    if (weight != NULL)
        weight_apply(detail, weight, (size_t)width);
}

void texture_whiten_residual(struct texture *damage, const struct texture *host,
                             const struct texture *suspect, const struct plane *plane, const float *inside)
{
    size_t count = (size_t)plane->width * (size_t)plane->height;

    for (size_t i = 0; i < count; i++) {
        float a = damage->activity[i];
        float kept = fminf((suspect->activity[i] + 0.1f) / (host->activity[i] + 0.5f), 1.0f);
        float weight = kept * kept * strength(host->activity[i]) / (a * a + 6.0f);
        float most = 3.0f * (a + 1.0f);

        damage->detail[i] = clamped(damage->detail[i], most) * weight * inside[i] *
                            (plane->weight == NULL ? 1.0f : plane->weight[i]);
    }
}
