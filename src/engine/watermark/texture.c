#include "engine/watermark/texture.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "engine/watermark/clones.h"

#define ACTIVITY_RADIUS 4
#define ACTIVITY_TAPS   (2 * ACTIVITY_RADIUS + 1)
#define BEYOND          (2 * ACTIVITY_RADIUS) /* detail wanted beyond the edges */
#define TAPS_MAX        (2 * TEXTURE_BLUE_RADIUS + 1)
#define FLOOR           0.8f  /* texture that even flat areas are taken to have */
#define LUMA_CAP_FLAT   0.75f /* standard deviation, grey levels */
#define LUMA_CAP_SLOPE  0.55f
#define LUMA_CAP_MOST   4.0f
#define BLUE_CAP_FLAT   0.45f
#define BLUE_CAP_SLOPE  0.5f
#define BLUE_CAP_MOST   1.2f
#define HEADROOM        6.0f /* grey levels from black or white under which the strength fades */
#define HEADROOM_LEAST  0.25f

/*
 * Means are taken over whole numbers, which running sums add without loss.  The
 * greatest sum, of 11^4 samples, stays within 31 bits.
 */
#define SAMPLE_MOST  511.0f
#define SAMPLE_SCALE 256.0f
#define ROOT_SCALE   4096.0f

/* A mean over a square, taken twice: along the row at once, down the columns by running sums. */
struct smoother {
    int taps;
    int width; /* of what comes out */
    int turn;  /* rows seen */
    int32_t *across;
    int32_t *sums;
    int32_t *sums_again;
    int32_t *rows; /* the last taps rows, and the last taps sums of them */
    int32_t *rows_again;
};

/* A plane on its way to detail and activity. */
struct measurement {
    const float *plane;
    int width;
    int height;
    int radius;
    float *padded;     /* a row of the plane, mirrored beyond its ends */
    int32_t *numbers;  /* the same, or the roots, as whole numbers */
    int32_t *smoothed; /* a row that comes out of a smoother */
    float *details;    /* the last rows of detail, BEYOND + 1 of them */
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
    smoother->across = workspace_take(workspace, count + TAPS_MAX, sizeof(int32_t));
    smoother->sums = workspace_take(workspace, count, sizeof(int32_t));
    smoother->sums_again = workspace_take(workspace, count, sizeof(int32_t));
    smoother->rows = workspace_take(workspace, count * (size_t)taps, sizeof(int32_t));
    smoother->rows_again = workspace_take(workspace, count * (size_t)taps, sizeof(int32_t));
    return !workspace->failed;
}

/* The sums over 5, 9 and 11 neighbours, the numbers of taps in use, written out: so the loops vectorise. */
ENGINE_CLONES
static void row_sum_5(const int32_t *restrict from, int32_t *restrict to, int count)
{
    int x;

    for (x = 0; x < count; x++)
        to[x] = from[x] + from[x + 1] + from[x + 2] + from[x + 3] + from[x + 4];
}

ENGINE_CLONES
static void row_sum_9(const int32_t *restrict from, int32_t *restrict to, int count)
{
    int x;

    for (x = 0; x < count; x++)
        to[x] = from[x] + from[x + 1] + from[x + 2] + from[x + 3] + from[x + 4] + from[x + 5] + from[x + 6] +
                from[x + 7] + from[x + 8];
}

ENGINE_CLONES
static void row_sum_11(const int32_t *restrict from, int32_t *restrict to, int count)
{
    int x;

    for (x = 0; x < count; x++)
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

/* Sums down the columns, and sums of these: what enters is added, what left so many rows ago taken away. */
ENGINE_CLONES
static void sums_slide(int32_t *restrict sums, int32_t *restrict sums_again, int32_t *restrict row,
                       int32_t *restrict row_again, int32_t *restrict numbers, int width)
{
    int x;

    for (x = 0; x < width; x++) {
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
 * Takes the next row of numbers, of width + 2 * (taps - 1); true when numbers
 * has become a row of sums, that of taps - 1 rows before.
 */
static bool smoother_row(struct smoother *smoother, int32_t *numbers)
{
    size_t place = (size_t)(smoother->turn % smoother->taps) * (size_t)smoother->width;

    row_sum(numbers, smoother->across, smoother->width + smoother->taps - 1, smoother->taps);
    row_sum(smoother->across, numbers, smoother->width, smoother->taps);
    sums_slide(smoother->sums, smoother->sums_again, smoother->rows + place, smoother->rows_again + place,
               numbers, smoother->width);
    return ++smoother->turn >= 2 * smoother->taps - 1;
}

/* A place on a line that is mirrored at its ends; no further beyond them than it is long. */
static int mirrored(int place, int length)
{
    place = place < 0 ? -1 - place : place;
    place = place >= length ? 2 * length - 1 - place : place;
    return place < 0 ? 0 : place;
}

/* Row y of the plane with so many samples beyond both ends. */
static void row_pad(const struct measurement *measurement, int y, int beyond, float *to)
{
    int width = measurement->width;
    const float *from = measurement->plane + (size_t)mirrored(y, measurement->height) * (size_t)width;
    int x;

    for (x = 0; x < beyond; x++) {
        to[x] = from[mirrored(x - beyond, width)];
        to[beyond + width + x] = from[mirrored(width + x, width)];
    }
    memcpy(to + beyond, from, (size_t)width * sizeof *to);
}

ENGINE_CLONES
static void numbers_take(const float *restrict from, int32_t *restrict to, int count)
{
    int x;

    for (x = 0; x < count; x++) {
        float value = from[x];

        value = value > SAMPLE_MOST ? SAMPLE_MOST : value < -SAMPLE_MOST ? -SAMPLE_MOST : value;
        to[x] = (int32_t)(value * SAMPLE_SCALE);
    }
}

/* From samples and the sums around them to detail, and to the roots of its size. */
ENGINE_CLONES
static void detail_take(const float *restrict samples, int32_t *restrict numbers, float *restrict detail,
                        float factor, int count)
{
    int x;

    for (x = 0; x < count; x++) {
        float difference = samples[x] - (float)numbers[x] * factor;
        float size = fabsf(difference);

        size = size > 2 * SAMPLE_MOST ? 2 * SAMPLE_MOST : size;
        detail[x] = difference;
        numbers[x] = (int32_t)(sqrtf(size) * ROOT_SCALE);
    }
}

ENGINE_CLONES
static void activity_take(const int32_t *restrict numbers, float *restrict activity, float factor, int count)
{
    int x;

    for (x = 0; x < count; x++) {
        float root = (float)numbers[x] * factor;

        activity[x] = root * root;
    }
}

static bool measurement_init(struct measurement *measurement, struct workspace *workspace)
{
    size_t widest = (size_t)measurement->width + 2 * (2 * TEXTURE_BLUE_RADIUS + BEYOND);
    size_t detailed = (size_t)measurement->width + 2 * BEYOND;

    measurement->padded = workspace_take(workspace, widest, sizeof(float));
    measurement->numbers = workspace_take(workspace, widest, sizeof(int32_t));
    measurement->details = workspace_take(workspace, detailed * (BEYOND + 1), sizeof(float));
    measurement->activity = workspace_take(workspace, (size_t)measurement->width, sizeof(float));
    return smoother_init(&measurement->mean, 2 * measurement->radius + 1, (int)detailed, workspace) &&
           smoother_init(&measurement->root, ACTIVITY_TAPS, measurement->width, workspace);
}

static float smoother_factor(const struct smoother *smoother, float scale)
{
    float square = (float)(smoother->taps * smoother->taps);

    return 1 / (square * square * scale);
}

/* Takes row y of the mirrored plane in; the row of detail that this completes, or NULL. */
static float *detail_row(struct measurement *measurement, int y)
{
    int reach = 2 * measurement->radius;
    int detailed = measurement->mean.width;
    int made = y - reach;
    float *detail;

    row_pad(measurement, y, reach + BEYOND, measurement->padded);
    numbers_take(measurement->padded, measurement->numbers, detailed + 2 * reach);
    if (!smoother_row(&measurement->mean, measurement->numbers))
        return NULL;
    row_pad(measurement, made, BEYOND, measurement->padded);
    detail = measurement->details + (size_t)((made + 2 * BEYOND + 2) % (BEYOND + 1)) * (size_t)detailed;
    detail_take(measurement->padded, measurement->numbers, detail,
                smoother_factor(&measurement->mean, SAMPLE_SCALE), detailed);
    return detail;
}

bool texture_rows(const float *plane, int width, int height, int radius, struct workspace *workspace,
                  texture_sink *sink, void *closure)
{
    struct measurement measurement = {.plane = plane, .width = width, .height = height, .radius = radius};
    int reach = 2 * radius + BEYOND;
    size_t mark = workspace_mark(workspace);
    float factor;
    int y;

    if (!measurement_init(&measurement, workspace))
        return false;
    factor = smoother_factor(&measurement.root, ROOT_SCALE);
    for (y = -reach; y < height + reach; y++) {
        int done = y - reach;
        float *detail;

        if (detail_row(&measurement, y) == NULL || !smoother_row(&measurement.root, measurement.numbers))
            continue;
        detail = measurement.details +
                 (size_t)((done + 2 * BEYOND + 2) % (BEYOND + 1)) * (size_t)measurement.mean.width;
        activity_take(measurement.numbers, measurement.activity, factor, width);
        sink(closure, done, detail + BEYOND, measurement.activity);
    }
    workspace_rewind(workspace, mark);
    return true;
}

struct measured {
    struct texture *texture;
    size_t width;
};

static void row_keep(void *closure, int y, float *detail, const float *activity)
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
    return !workspace->failed && texture_rows(plane, width, height, radius, workspace, row_keep, &measured);
}

/* Near black and near white the pattern would be clipped on one side. */
static inline float headroom(float luma)
{
    float room = (luma < 255.0f - luma ? luma : 255.0f - luma) * (1 / HEADROOM);

    return room >= 1 ? 1.0f : room > HEADROOM_LEAST ? room : HEADROOM_LEAST;
}

/* The pattern grows with the square root of the texture. */
static inline float strength(float activity)
{
    return sqrtf(activity + FLOOR);
}

/* The cap in flat places: over them all, and as much where there is headroom as where there is none. */
struct flat_cap {
    float usual;
    float at_least_headroom;
};

static struct flat_cap flat_cap(float flat, bool has_underlay)
{
    return has_underlay ? (struct flat_cap){0, flat * HEADROOM_LEAST} : (struct flat_cap){flat, 0};
}

/* What a gain makes of the strength, under a cap that grows with the texture. */
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
    size_t i;

    for (i = 0; i < count; i++) {
        float room = headroom(luma[i]);

        mask[i] = room * capped(gain * strength(activity[i]), activity[i],
                                flat.usual + flat.at_least_headroom / room, LUMA_CAP_SLOPE, LUMA_CAP_MOST);
    }
}

ENGINE_CLONES
static void mask_fill_blue(const float *restrict activity, const float *restrict luma, float gain,
                           struct flat_cap flat, float *restrict mask, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        float room = headroom(luma[i]);

        mask[i] = room * capped(gain * strength(activity[i]), activity[i],
                                flat.usual + flat.at_least_headroom / room, BLUE_CAP_SLOPE, BLUE_CAP_MOST);
    }
}

ENGINE_CLONES
static void weight_apply(float *restrict values, const float *restrict weight, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        values[i] *= weight[i];
}

void texture_mask_row(const struct texture_mask *mask, size_t first, size_t count, float gain, float *luma,
                      float *blue)
{
    const struct plane *plane = mask->plane;

    mask_fill(mask->activity + first, plane->luma + first, gain, flat_cap(LUMA_CAP_FLAT, mask->has_underlay),
              luma, count);
    if (plane->weight != NULL)
        weight_apply(luma, plane->weight + first, count);
    if (blue == NULL)
        return;
    mask_fill_blue(mask->activity + first, plane->luma + first, gain * mask->blue_share,
                   flat_cap(BLUE_CAP_FLAT, mask->has_underlay), blue, count);
    if (plane->weight != NULL)
        weight_apply(blue, plane->weight + first, count);
}

static inline float within(float value, float most)
{
    return value > most ? most : value < -most ? -most : value;
}

ENGINE_CLONES
static void whiten(float *restrict detail, const float *restrict activity, const float *restrict luma,
                   float noise, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        float a = activity[i];
        float weight = headroom(luma[i]) * strength(a) / (a * a + noise);

        detail[i] = within(detail[i], 3.0f * (a + 1.0f)) * weight;
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
    size_t i;

    for (i = 0; i < count; i++) {
        float a = damage->activity[i];
        float kept = fminf((suspect->activity[i] + 0.1f) / (host->activity[i] + 0.5f), 1.0f);
        float weight = kept * kept * strength(host->activity[i]) / (a * a + 6.0f);
        float most = 3.0f * (a + 1.0f);

        damage->detail[i] = within(damage->detail[i], most) * weight * inside[i] *
                            (plane->weight == NULL ? 1.0f : plane->weight[i]);
    }
}
