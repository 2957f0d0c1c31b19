#include "engine/protect/visibility.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clones.h"

enum {
    burt_taps = 5,
    burt_reach = 2,
    smooth_rows = 8, /* of a buffer: at least burt_taps */
    line_reach = 4,  /* samples on either side of a mean along a line */
    line_levels = 3,
    cell_level = 3, /* this level has a sample for each cell */
    line_samples = 2 * line_reach + 1,
    edge_samples = 16, /* on either side of a row, for repeated ends */
    step_rows = 64, /* rows of the finest buffer of the step, where a row waits for at most 50 later rows */
    seen_rows = 16, /* of all buffers of its visibility: at least line_samples + burt_reach */
    scratch_rows = 3,
    even_reach = 3 /* cells */
};

static const float coloured =
    1.5f / 255; /* mean difference of blue and red: JPEG and scanners alter grey by less */
static const float power_floor = 1e-20f, even_floor = 0.05f;
static const float even_window[2 * even_reach + 1] = {0.00443305f, 0.05400558f, 0.24203623f, 0.39905028f,
                                                      0.24203623f, 0.05400558f, 0.00443305f}; /* sigma 1 */

/*
 * A level of a pyramid: buffers of its last rows in each plane. A row has the picture until the rows below it
 * are known, and from then on the band.
 */
struct level {
    unsigned width, height, kept; /* kept is the number of rows of a buffer */
    unsigned added, split;        /* rows so far: of the picture, and of the band */
    size_t stride;
    float *rows[model_planes], *smooth[model_planes];
    float *sums, *most; /* a row each, over the rows of a block or of a cell */
};

struct visibility_run;
typedef void band_function(struct visibility_run *run, unsigned level, unsigned y);

struct pyramid {
    struct level levels[visibility_levels];
    unsigned planes;
    band_function *ready; /* called for each row of a band and of the residual, from the top */
};

/* A run over a picture: the pyramid of the picture or of the gradient, and that of the step. */
struct visibility_run {
    struct visibility *visibility;
    const struct visibility_ends *ends;
    struct pyramid first, step;
    unsigned rows;             /* given to visibility_run_row */
    float *low;                /* the low-passed luma of the band that is ready */
    float *line[scratch_rows]; /* rows of pixels */
    float *memory;
};

static unsigned row_clamped(int row, unsigned rows)
{
    return row < 0 ? 0 : row >= (int)rows ? rows - 1 : (unsigned)row;
}

/* ---- memory */

static float *piece_take(float *memory, size_t *size, size_t values)
{
    float *piece = memory == NULL ? NULL : memory + *size + edge_samples;
    *size += values + 2 * edge_samples;
    return piece;
}

static void pyramid_lay(struct pyramid *pyramid, const struct visibility *visibility, unsigned kept,
                        float *memory, size_t *size)
{
    for (unsigned i = 0; i < visibility_levels; i++) {
        struct level *level = &pyramid->levels[i];
        const unsigned rows = kept == step_rows && kept >> i > smooth_rows ? kept >> i : seen_rows;
        *level = (struct level){visibility->width_px >> i, visibility->height_px >> i, rows, .added = 0};
        level->stride = level->width + 2 * edge_samples;
        for (unsigned plane = 0; plane < model_planes; plane++) {
            level->rows[plane] = piece_take(memory, size, rows * level->stride);
            level->smooth[plane] = piece_take(memory, size, smooth_rows * level->stride);
        }
        level->sums = piece_take(memory, size, level->width);
        level->most = piece_take(memory, size, level->width);
    }
}

/* Lays out the buffers and returns their size. Without memory, only measures. */
static size_t run_lay(struct visibility_run *run, float *memory)
{
    const size_t width = run->visibility->width_px;
    size_t size = 0;
    pyramid_lay(&run->first, run->visibility, step_rows, memory, &size);
    pyramid_lay(&run->step, run->visibility, seen_rows, memory, &size);
    run->low = piece_take(memory, &size, width);
    for (unsigned i = 0; i < scratch_rows; i++)
        run->line[i] = piece_take(memory, &size, (i == 0 ? 3 : 1) * width);
    return size;
}

static enum iw_error run_init(struct visibility_run *run, struct visibility *visibility, unsigned planes)
{
    *run = (struct visibility_run){.visibility = visibility, .first.planes = planes, .step.planes = planes};
    run->memory = calloc(run_lay(run, NULL), sizeof *run->memory);
    if (run->memory == NULL)
        return IW_NO_MEMORY;
    run_lay(run, run->memory);
    return IW_OK;
}

/* ---- pyramid */

static float *level_row(const struct level *level, unsigned plane, unsigned y)
{
    return level->rows[plane] + (size_t)(y % level->kept) * level->stride;
}

static float *smooth_row(const struct level *level, unsigned plane, unsigned y)
{
    return level->smooth[plane] + (size_t)(y % smooth_rows) * level->stride;
}

/* Repeats the ends of a row. */
static void row_extend(float *values, unsigned count, unsigned reach)
{
    for (unsigned i = 0; i < reach; i++) {
        values[-1 - (int)i] = values[0];
        values[count + i] = values[count - 1];
    }
}

/* Applies the kernel of Burt and Adelson. */
static inline float burt(float a, float b, float c, float d, float e)
{
    return (a + e) * (1.f / 16) + (b + d) * (4.f / 16) + c * (6.f / 16);
}

/* values begins two samples before the first one. */
ENGINE_CLONES static void row_smoothed(const float *restrict values, size_t count, float *restrict smooth)
{
    for (size_t i = 0; i < count; i++)
        smooth[i] = burt(values[i], values[i + 1], values[i + 2], values[i + 3], values[i + 4]);
}

/* Computes the low-passed row from five smoothed rows; the picture's row becomes the row of the band. */
ENGINE_CLONES static void row_split(const float *const rows[burt_taps], size_t count, float *restrict low,
                                    float *restrict band)
{
    const float *restrict a = rows[0], *restrict b = rows[1], *restrict c = rows[2], *restrict d = rows[3],
                          *restrict e = rows[4];
    for (size_t i = 0; i < count; i++) {
        low[i] = burt(a[i], b[i], c[i], d[i], e[i]);
        band[i] -= low[i];
    }
}

ENGINE_CLONES static void row_halved(const float *restrict low, size_t count, float *restrict half)
{
    for (size_t i = 0; i < count; i++)
        half[i] = low[2 * i];
}

/* Splits a row into band and low-passed row; every second low-passed row is a row of the next level. */
static void level_split(struct visibility_run *run, struct pyramid *pyramid, unsigned at, unsigned y)
{
    struct level *level = &pyramid->levels[at];
    for (unsigned plane = pyramid->planes; plane-- > 0;) {
        const float *rows[burt_taps];
        for (int i = 0; i < burt_taps; i++)
            rows[i] = smooth_row(level, plane, row_clamped((int)y + i - burt_reach, level->height));
        row_split(rows, level->width, run->low, level_row(level, plane, y));
        if (y % 2 == 0)
            row_halved(run->low, level->width / 2, level_row(level + 1, plane, y / 2));
    }
}

/* Takes the next row of a level; splits and passes on the rows of the band that are then known. */
static void pyramid_add(struct visibility_run *run, struct pyramid *pyramid, unsigned at)
{
    struct level *level = &pyramid->levels[at];
    const unsigned y = level->added++;
    if (at == model_levels) {
        pyramid->ready(run, at, y);
        return;
    }
    for (unsigned plane = 0; plane < pyramid->planes; plane++) {
        float *row = level_row(level, plane, y);
        row_extend(row, level->width, burt_reach);
        row_smoothed(row - burt_reach, level->width, smooth_row(level, plane, y));
    }
    const unsigned known = level->added == level->height ? level->height + burt_reach : level->added;
    const unsigned first = level->split;
    for (; level->split + burt_reach < known; level->split++) {
        level_split(run, pyramid, at, level->split);
        pyramid->ready(run, at, level->split);
    }
    for (unsigned row = first; row < level->split; row++)
        if (row % 2 == 0)
            pyramid_add(run, pyramid, at + 1);
}

ENGINE_CLONES void visibility_opponent(const float *restrict values, size_t count, float *restrict luma,
                                       float *restrict blue, float *restrict red)
{
    for (size_t i = 0; i < count; i++) {
        const float r = values[3 * i], g = values[3 * i + 1], b = values[3 * i + 2];
        luma[i] = 0.299f * r + 0.587f * g + 0.114f * b;
        blue[i] = -0.168736f * r - 0.331264f * g + 0.5f * b;
        red[i] = 0.5f * r - 0.418688f * g - 0.081312f * b;
    }
}

/* Converts such rows back to a row of RGB. */
ENGINE_CLONES static void row_rgb(const float *restrict luma, const float *restrict blue,
                                  const float *restrict red, size_t count, float *restrict values)
{
    for (size_t i = 0; i < count; i++) {
        values[3 * i] = luma[i] + 1.402f * red[i];
        values[3 * i + 1] = luma[i] - 0.344136f * blue[i] - 0.714136f * red[i];
        values[3 * i + 2] = luma[i] + 1.772f * blue[i];
    }
}

/* Writes a row of RGB, of a picture or of a perturbation, to a pyramid's finest buffer. */
static void pixels_put(const struct pyramid *pyramid, unsigned y, const float *values)
{
    const struct level *level = &pyramid->levels[0];
    visibility_opponent(values, level->width, level_row(level, 0, y), level_row(level, 1, y),
                        level_row(level, 2, y));
}

/* ---- thresholds */

/*
 * Returns a power of a positive number, by two series, each to the precision of a float. The series of the
 * logarithm is that of the inverse hyperbolic tangent. The compiler computes several powers together.
 */
static inline float power_of(float number, float exponent)
{
    enum { root_half = 0x3f3504f3, mantissa_bits = 23, bias = 127 };
    int32_t bits, octave;
    float value;
    memcpy(&bits, &number, sizeof bits);
    octave = (bits - root_half) >> mantissa_bits;
    bits -= octave * (1 << mantissa_bits);
    memcpy(&value, &bits, sizeof value);
    const float t = (value - 1) / (value + 1), square = t * t;
    const float log2 =
        2.88539008f * t * (1 + square * (1.f / 3 + square * (1.f / 5 + square * (1.f / 7 + square / 9))));
    const float wanted = ((float)octave + log2) * exponent;
    octave = (int32_t)(wanted + bias + .5f);
    const float x = (wanted + bias - (float)octave) * 0.693147181f;
    bits = octave * (1 << mantissa_bits);
    memcpy(&value, &bits, sizeof value);
    return value * (1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6))))));
}

/* Replaces lights by the thresholds at these lights, relative to the threshold at the mean light. */
ENGINE_CLONES static void row_adapted(const struct net_model *model, float *lights, size_t count)
{
    const float dark = model->dark, least = 1 / (model->light + model->dark), exponent = model->adaptation;
    for (size_t i = 0; i < count; i++)
        lights[i] = power_of(((lights[i] > 0 ? lights[i] : 0) + dark) * least, exponent);
}

/*
 * Raises thresholds with the activity of their band, measured in thresholds, and replaces them by
 * reciprocals. The array roots has means of the roots of the band's samples.
 */
ENGINE_CLONES static void row_masked(const struct net_model *model, const float *restrict roots, size_t count,
                                     float *restrict limits)
{
    const float calm = model->calm, exponent = model->masking;
    for (size_t i = 0; i < count; i++) {
        const float activity = roots[i] * roots[i] / limits[i], square = activity * activity;
        limits[i] = 1 / (limits[i] * power_of(calm + square * square, exponent));
    }
}

ENGINE_CLONES static void row_added(float *restrict values, const float *restrict added, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] += added[i];
}

/* Computes sums of the roots of four rows. */
ENGINE_CLONES static void rows_roots(const float *const rows[visibility_block], size_t count,
                                     float *restrict sums)
{
    const float *restrict a = rows[0], *restrict b = rows[1], *restrict c = rows[2], *restrict d = rows[3];
    for (size_t i = 0; i < count; i++)
        sums[i] = sqrtf(fabsf(a[i])) + sqrtf(fabsf(b[i])) + sqrtf(fabsf(c[i])) + sqrtf(fabsf(d[i]));
}

/* Computes the means of blocks from the sums of their columns. */
ENGINE_CLONES static void blocks_mean(const float *restrict sums, size_t blocks, float *restrict means)
{
    for (size_t i = 0; i < blocks; i++)
        means[i] = (sums[4 * i] + sums[4 * i + 1] + sums[4 * i + 2] + sums[4 * i + 3]) *
                   (1.f / (visibility_block * visibility_block));
}

static float *map_row(const struct visibility_map *map, unsigned y)
{
    return map->values + (size_t)y * map->columns;
}

/*
 * Computes thresholds from blocks of four rows of the picture's bands. The residual below all bands has one
 * threshold for each sample, and nothing masks it.
 */
static void thresholds_ready(struct visibility_run *run, unsigned at, unsigned y)
{
    const struct level *level = &run->step.levels[at];
    const struct net_model *model = run->visibility->model;
    const bool is_band = at < model_levels;
    const unsigned block = is_band ? visibility_block : 1, blocks = level->width / block;
    float *lights = run->line[1], *roots = run->line[2];
    if (is_band && y % block == 0)
        memset(level->sums, 0, level->width * sizeof *level->sums);
    if (is_band)
        row_added(level->sums, run->low, level->width);
    if ((y + 1) % block != 0)
        return;
    if (is_band)
        blocks_mean(level->sums, blocks, lights);
    else
        memcpy(lights, level_row(level, 0, y), blocks * sizeof *lights);
    row_adapted(model, lights, blocks);
    for (unsigned plane = 0; plane < model_planes; plane++) {
        const float *rows[visibility_block];
        float *limits = map_row(&run->visibility->thresholds[at][plane], y / block);
        for (unsigned x = 0; x < blocks; x++)
            limits[x] = model->thresholds[at][plane] * lights[x];
        for (unsigned i = 0; i < visibility_block; i++)
            rows[i] = level_row(level, plane, y - i);
        if (is_band) {
            rows_roots(rows, level->width, level->most);
            blocks_mean(level->most, blocks, roots);
            row_masked(model, roots, blocks, limits);
        }
    }
}

/* Returns the sum of the sizes of two rows, in lanes that the compiler keeps in a vector. */
ENGINE_CLONES static double rows_size(const float *one, const float *other, size_t count)
{
    enum { lanes = 8 };
    float sums[lanes] = {0};
    double sum = 0;
    for (size_t i = 0; i < count; i += lanes)
        for (unsigned k = 0; k < lanes; k++)
            sums[k] += fabsf(one[i + k]) + fabsf(other[i + k]);
    for (unsigned k = 0; k < lanes; k++)
        sum += (double)sums[k];
    return sum;
}

/*
 * Replaces each threshold by the harmonic mean of 3x3 thresholds, because an edge next to smooth blocks does
 * not mask. The map has the reciprocals before. The array lines is scratch of two rows.
 */
static void map_smooth(const struct visibility_map *map, float *lines)
{
    const unsigned columns = map->columns;
    float *before = lines, *sums = lines + columns;
    memcpy(before, map->values, columns * sizeof *before);
    for (unsigned y = 0; y < map->rows; y++) {
        float *row = map_row(map, y), *next = map_row(map, row_clamped((int)y + 1, map->rows));
        for (unsigned x = 0; x < columns; x++)
            sums[x] = before[x] + row[x] + next[x];
        memcpy(before, row, columns * sizeof *before);
        for (unsigned x = 0; x < columns; x++)
            row[x] = 9 / (sums[x > 0 ? x - 1 : 0] + sums[x] + sums[x + 1 < columns ? x + 1 : x]);
    }
}

static struct visibility_map map_at(const struct visibility *visibility, unsigned block_px, size_t *size)
{
    struct visibility_map map = {visibility->width_px / block_px, visibility->height_px / block_px, NULL};
    map.values = visibility->memory != NULL ? visibility->memory + *size : NULL;
    *size += (size_t)map.columns * map.rows;
    return map;
}

/* Lays out all maps and returns their size. Without memory, only measures. */
static size_t maps_lay(struct visibility *visibility)
{
    size_t size = 0;
    for (unsigned level = 0; level < visibility_levels; level++)
        for (unsigned plane = 0; plane < model_planes; plane++)
            visibility->thresholds[level][plane] =
                map_at(visibility, (level < model_levels ? visibility_block : 1U) << level, &size);
    visibility->means = map_at(visibility, visibility_cell_px, &size);
    visibility->peaks = map_at(visibility, visibility_cell_px, &size);
    visibility->line = visibility->memory != NULL ? visibility->memory + size : NULL;
    return size + visibility->means.columns + visibility->means.rows;
}

static enum iw_error thresholds_fill(struct visibility *visibility, const struct canvas *canvas)
{
    struct visibility_run run;
    double colors = 0;
    enum iw_error error = run_init(&run, visibility, model_planes);
    if (error != IW_OK)
        return error;
    const struct level *level = &run.step.levels[0];
    run.step.ready = thresholds_ready;
    for (unsigned y = 0; y < visibility->height_px; y++) {
        canvas_pixels(canvas, y, 0, visibility->width_px, run.line[0]);
        pixels_put(&run.step, y, run.line[0]);
        colors += rows_size(level_row(level, 1, y), level_row(level, 2, y), level->width);
        pyramid_add(&run, &run.step, 0);
    }
    for (unsigned at = 0; at < model_levels; at++)
        for (unsigned plane = 0; plane < model_planes; plane++)
            map_smooth(&visibility->thresholds[at][plane], run.memory);
    const double samples = 2.0 * visibility->width_px * visibility->height_px;
    visibility->planes = colors / samples >= (double)coloured ? model_planes : 1;
    free(run.memory);
    return IW_OK;
}

enum iw_error visibility_init(struct visibility *visibility, const struct net_model *model,
                              const struct canvas *canvas)
{
    *visibility =
        (struct visibility){.model = model, .width_px = canvas->width_px, .height_px = canvas->height_px};
    visibility->memory = malloc(maps_lay(visibility) * sizeof *visibility->memory);
    if (visibility->memory == NULL)
        return IW_NO_MEMORY;
    maps_lay(visibility);
    enum iw_error error = thresholds_fill(visibility, canvas);
    if (error != IW_OK)
        visibility_fini(visibility);
    return error;
}

void visibility_fini(struct visibility *visibility)
{
    free(visibility->memory);
    visibility->memory = NULL;
}

/* ---- rows of maps */

ENGINE_CLONES static void row_between(const float *restrict upper, const float *restrict lower, float share,
                                      size_t count, float *restrict values)
{
    for (size_t i = 0; i < count; i++)
        values[i] = upper[i] * (1 - share) + lower[i] * share;
}

/* The array values begins one before the first value. The compiler knows the factor. */
static inline void values_enlarge(const float *restrict values, const unsigned factor, size_t count,
                                  float *restrict wide)
{
    for (size_t i = 0; i < count; i++) {
        for (unsigned k = 0; k < factor / 2; k++) {
            const float share = .5f - ((float)k + .5f) / (float)factor;
            wide[factor * i + k] = share * values[i] + (1 - share) * values[i + 1];
            wide[factor * i + factor - 1 - k] = (1 - share) * values[i + 1] + share * values[i + 2];
        }
    }
}

ENGINE_CLONES static void row_enlarged(const float *values, unsigned factor, size_t count, float *wide)
{
    if (factor == visibility_block)
        values_enlarge(values, visibility_block, count, wide);
    else
        values_enlarge(values, visibility_cell_px, count, wide);
}

void visibility_row(const struct visibility_map *map, unsigned factor, unsigned y, float *line, float *values)
{
    const unsigned columns = map->columns, at = y + factor / 2; /* from the middle of the row above */
    const float *upper = map_row(map, row_clamped((int)(at / factor) - 1, map->rows)),
                *lower = map_row(map, row_clamped((int)(at / factor), map->rows));
    row_between(upper, lower, ((float)(at % factor) + .5f) / (float)factor, columns, line + 1);
    row_extend(line + 1, columns, 1);
    row_enlarged(line, factor, columns, values);
}

/* Computes the thresholds of a row of a band. */
static const float *thresholds_row(const struct visibility_run *run, unsigned plane, unsigned at, unsigned y)
{
    const struct visibility_map *map = &run->visibility->thresholds[at][plane];
    if (at == model_levels)
        return map_row(map, y);
    visibility_row(map, visibility_block, y, run->line[2], run->line[1]);
    return run->line[1];
}

/* ---- the step */

ENGINE_CLONES static void row_stepped(float *restrict band, const float *restrict limits, float share,
                                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        band[i] *= limits[i] * limits[i] * share;
}

/* Adds a row at twice the size: samples at even places are copied, the others are means. */
ENGINE_CLONES static void row_doubled_add(const float *restrict upper, const float *restrict lower,
                                          size_t count, float *restrict values)
{
    for (size_t i = 0; i + 1 < count; i++) {
        const float here = (upper[i] + lower[i]) * .5f, after = (upper[i + 1] + lower[i + 1]) * .5f;
        values[2 * i] += here;
        values[2 * i + 1] += (here + after) * .5f;
    }
    const float last = (upper[count - 1] + lower[count - 1]) * .5f;
    values[2 * count - 2] += last;
    values[2 * count - 1] += last;
}

/*
 * Passes a finished row of the step to the caller and to the other pyramid. Planes of a picture without
 * colour stay 0.
 */
static void step_finish(struct visibility_run *run, unsigned y)
{
    const struct level *from = &run->first.levels[0], *to = &run->step.levels[0];
    for (unsigned plane = 0; plane < run->first.planes; plane++)
        memcpy(level_row(to, plane, y), level_row(from, plane, y), from->width * sizeof(float));
    row_rgb(level_row(to, 0, y), level_row(to, 1, y), level_row(to, 2, y), from->width, run->line[0]);
    run->ends->put(run->ends->data, y, run->line[0]);
    pyramid_add(run, &run->step, 0);
}

/* Turns a row of a band into a row of the step, then the rows of the finer level that waited for it. */
static void step_row(struct visibility_run *run, unsigned at, unsigned y)
{
    const struct level *level = &run->first.levels[at], *coarse = level + 1;
    assert(level->added <= y + level->kept);
    for (unsigned plane = 0; plane < run->first.planes; plane++) {
        float *row = level_row(level, plane, y);
        row_stepped(row, thresholds_row(run, plane, at, y), run->visibility->model->shares[at][plane],
                    level->width);
        if (at + 1 < model_levels)
            row_doubled_add(level_row(coarse, plane, y / 2),
                            level_row(coarse, plane, row_clamped((int)(y + 1) / 2, coarse->height)),
                            coarse->width, row);
    }
    if (at == 0) {
        step_finish(run, y);
        return;
    }
    const unsigned end = y + 1 < level->height ? 2 * y + 1 : 2 * y + 2;
    for (unsigned fine = y > 0 ? 2 * y - 1 : 0; fine < end; fine++)
        step_row(run, at - 1, fine);
}

static void gradient_ready(struct visibility_run *run, unsigned at, unsigned y)
{
    if (at == model_levels - 1)
        step_row(run, at, y);
}

/* ---- the visibility of the step */

ENGINE_CLONES static void row_divided(float *restrict values, const float *restrict limits, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] /= limits[i];
}

ENGINE_CLONES static void powers_add(float *restrict powers, const float *restrict values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float square = values[i] * values[i];
        powers[i] += square * square;
    }
}

/*
 * Adds the fourth powers of the means along a line through nine rows. Successive samples of the line are step
 * columns apart. The compiler knows the step.
 */
static inline void line_add(float *powers, const float *const rows[line_samples], const long step,
                            float factor, size_t count)
{
    const float *const r[line_samples] = {
        rows[0] - 4 * step, rows[1] - 3 * step, rows[2] - 2 * step, rows[3] - step,    rows[4],
        rows[5] + step,     rows[6] + 2 * step, rows[7] + 3 * step, rows[8] + 4 * step};
#pragma GCC ivdep
    for (size_t i = 0; i < count; i++) {
        const float sum =
            r[0][i] + r[1][i] + r[2][i] + r[3][i] + r[4][i] + r[5][i] + r[6][i] + r[7][i] + r[8][i];
        const float square = sum * sum * (factor * factor);
        powers[i] += square * square;
    }
}

/* Adds the lines of four directions through the middle of nine rows. */
ENGINE_CLONES static void lines_add(float *powers, const float *const rows[line_samples], float factor,
                                    size_t count)
{
    const float *const along[line_samples] = {rows[4], rows[4], rows[4], rows[4], rows[4],
                                              rows[4], rows[4], rows[4], rows[4]};
    line_add(powers, along, 1, factor, count);
    for (long step = -1; step <= 1; step++)
        line_add(powers, rows, step, factor, count);
}

ENGINE_CLONES static void powers_gather(const float *restrict powers, size_t count, float *restrict sums,
                                        float *restrict most)
{
    for (size_t i = 0; i < count; i++) {
        sums[i] += powers[i];
        most[i] = powers[i] > most[i] ? powers[i] : most[i];
    }
}

/* Adds a level to a row of cells: the mean and the largest power, from sums and maxima of rows of powers. */
static void cells_add(const struct visibility *visibility, const struct level *level, unsigned at,
                      unsigned row)
{
    const unsigned cell = at < cell_level ? (unsigned)visibility_cell_px >> at : 1;
    float *means = map_row(&visibility->means, row), *peaks = map_row(&visibility->peaks, row);
    for (unsigned i = 0; i < visibility->means.columns; i++) {
        const unsigned first = i * visibility_cell_px >> at;
        float sum = 0, most = 0;
        for (unsigned x = first; x < first + cell; x++) {
            sum += level->sums[x];
            most = level->most[x] > most ? level->most[x] : most;
        }
        means[i] += sum / (float)(cell * cell);
        peaks[i] += most;
    }
}

/* Adds the powers of a row of responses to the cells.  A sample of the coarsest level has 2x2 cells. */
static void powers_row(struct visibility_run *run, unsigned at, unsigned y)
{
    const struct level *level = &run->step.levels[at];
    float *powers = run->line[1];
    memset(powers, 0, level->width * sizeof *powers);
    for (unsigned plane = 0; plane < run->step.planes; plane++)
        powers_add(powers, level_row(level, plane, y), level->width);
    if (at < line_levels) {
        const float *rows[line_samples];
        for (int k = 0; k < line_samples; k++)
            rows[k] = level_row(level, 0, row_clamped((int)y + k - line_reach, level->height));
        lines_add(powers, rows, run->visibility->model->line / line_samples, level->width);
    }
    if ((y << at) % visibility_cell_px == 0) {
        memset(level->sums, 0, level->width * sizeof *level->sums);
        memset(level->most, 0, level->width * sizeof *level->most);
    }
    powers_gather(powers, level->width, level->sums, level->most);
    for (unsigned row = (y << at) / visibility_cell_px; row < ((y + 1) << at) / visibility_cell_px; row++)
        cells_add(run->visibility, level, at, row);
}

/* Turns bands into responses. Lines also need the rows below. */
static void response_ready(struct visibility_run *run, unsigned at, unsigned y)
{
    const struct level *level = &run->step.levels[at];
    for (unsigned plane = 0; plane < run->step.planes; plane++)
        row_divided(level_row(level, plane, y), thresholds_row(run, plane, at, y), level->width);
    row_extend(level_row(level, 0, y), level->width, line_reach);
    const unsigned reach = at < line_levels ? line_reach : 0;
    const unsigned end = y + 1 < level->height ? y + 1 : level->height + reach;
    for (unsigned row = y; row < end; row++)
        if (row >= reach)
            powers_row(run, at, row - reach);
}

static void cells_clear(struct visibility *visibility)
{
    const size_t cells = (size_t)visibility->means.columns * visibility->means.rows;
    memset(visibility->means.values, 0, cells * sizeof(float));
    memset(visibility->peaks.values, 0, cells * sizeof(float));
}

enum iw_error visibility_step(struct visibility *visibility, const struct visibility_ends *ends)
{
    struct visibility_run run;
    enum iw_error error = run_init(&run, visibility, visibility->planes);
    if (error != IW_OK)
        return error;
    run.ends = ends;
    run.first.ready = gradient_ready;
    run.step.ready = response_ready;
    cells_clear(visibility);
    for (unsigned y = 0; y < visibility->height_px; y++) {
        ends->get(ends->data, y, run.line[0]);
        pixels_put(&run.first, y, run.line[0]);
        pyramid_add(&run, &run.first, 0);
    }
    free(run.memory);
    return IW_OK;
}

/* ---- the visibility of any perturbation */

enum iw_error visibility_run_new(struct visibility_run **run, struct visibility *visibility)
{
    struct visibility_run *new = malloc(sizeof *new);
    enum iw_error error = new != NULL ? run_init(new, visibility, visibility->planes) : IW_NO_MEMORY;
    if (error != IW_OK) {
        free(new);
        return error;
    }
    new->step.ready = response_ready;
    cells_clear(visibility);
    *run = new;
    return IW_OK;
}

void visibility_run_free(struct visibility_run *run)
{
    if (run != NULL)
        free(run->memory);
    free(run);
}

void visibility_run_row(struct visibility_run *run, const float *levels, unsigned width_px, unsigned colors)
{
    float *values = run->line[0];
    const unsigned whole = run->visibility->width_px;
    for (size_t x = 0; x < width_px; x++)
        for (size_t color = 0; color < model_planes; color++)
            values[model_planes * x + color] = levels[colors == 1 ? x : model_planes * x + color] / 255;
    memset(values + (size_t)model_planes * width_px, 0, sizeof *values * model_planes * (whole - width_px));
    pixels_put(&run->step, run->rows++, values);
    pyramid_add(run, &run->step, 0);
}

double visibility_run_end(struct visibility_run *run)
{
    while (run->rows < run->visibility->height_px)
        visibility_run_row(run, NULL, 0, 1);
    return visibility_total(run->visibility);
}

/* ---- even visibility */

/* Computes a mean over a window of cells; edges repeat. The parameter step is the distance of neighbours. */
static void cells_blur(const float *values, unsigned count, size_t step, float *blurred)
{
    for (unsigned i = 0; i < count; i++) {
        float sum = 0;
        for (int k = -even_reach; k <= even_reach; k++)
            sum += even_window[k + even_reach] * values[row_clamped((int)i + k, count) * step];
        blurred[i] = sum;
    }
}

static void map_blur(const struct visibility_map *map, float *line)
{
    for (unsigned y = 0; y < map->rows; y++) {
        float *row = map->values + (size_t)y * map->columns;
        cells_blur(row, map->columns, 1, line);
        memcpy(row, line, map->columns * sizeof *row);
    }
    for (unsigned x = 0; x < map->columns; x++) {
        cells_blur(map->values + x, map->rows, map->columns, line);
        for (unsigned y = 0; y < map->rows; y++)
            map->values[(size_t)y * map->columns + x] = line[y];
    }
}

double visibility_total(const struct visibility *visibility)
{
    const struct visibility_map *map = &visibility->means;
    const size_t cells = (size_t)map->columns * map->rows;
    double sum = 0;
    for (size_t i = 0; i < cells; i++)
        sum += (double)map->values[i] / (double)cells;
    return sqrt(sqrt(sum));
}

double visibility_even(struct visibility *visibility)
{
    const struct visibility_map *map = &visibility->peaks;
    const size_t cells = (size_t)map->columns * map->rows;
    double mean = 0, total = 0;
    for (size_t i = 0; i < cells; i++)
        map->values[i] = sqrtf(sqrtf(map->values[i] + power_floor));
    map_blur(map, visibility->line);
    for (size_t i = 0; i < cells; i++)
        mean += (double)map->values[i] / (double)cells;
    for (size_t i = 0; i < cells; i++) {
        const float share = 1 / (map->values[i] + even_floor * (float)mean + 1e-12f);
        map->values[i] = share;
        total += (double)visibility->means.values[i] * pow((double)share, 4) / (double)cells;
    }
    return sqrt(sqrt(total));
}
