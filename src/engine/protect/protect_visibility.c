#include "engine/protect/protect_visibility.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/watermark/clones.h"

enum {
    grid_px = canvas_grid_px,
    halo_px = 96, /* of a tile; a step and its visibility together reach 90 px */
    tile_columns_usual = 1024,
    tile_rows_usual = 512,
    line_reach = 4, /* samples on either side of a mean along a line */
    line_levels = 3,
    line_samples = 2 * line_reach + 1,
    even_reach = 3 /* cells */
};

static const float coloured =
    1.5f / 255; /* mean difference of blue and red: JPEG and scanners alter grey by less */
static const float power_floor = 1e-20f, even_floor = 0.05f;
static const float even_window[2 * even_reach + 1] = {0.00443305f, 0.05400558f, 0.24203623f, 0.39905028f,
                                                      0.24203623f, 0.05400558f, 0.00443305f}; /* sigma 1 */

/* A part of the picture with its surroundings, in px. */
struct tile {
    unsigned x, y, width, height;                     /* with surroundings */
    unsigned core_x, core_y, core_width, core_height; /* relative to it */
};

/* The bands of a tile and scratch. */
struct work {
    struct tile tile;
    float *bands[model_planes][visibility_levels];
    float *low;     /* a plane */
    float *padded;  /* a plane with line_reach more on either side */
    float *line[6]; /* rows */
    float *memory;
    double colors; /* sum of the blue and red differences of all cores */
};

/* ---- pyramid */

static unsigned tile_width(const struct tile *tile, unsigned level)
{
    return tile->width >> level;
}

static unsigned tile_height(const struct tile *tile, unsigned level)
{
    return tile->height >> level;
}

static unsigned row_clamped(int row, unsigned rows)
{
    return row < 0 ? 0 : row >= (int)rows ? rows - 1 : (unsigned)row;
}

ENGINE_CLONES static void row_blurred_down(const float *const rows[5], size_t count, float *values)
{
    const float *restrict a = rows[0], *restrict b = rows[1], *restrict c = rows[2], *restrict d = rows[3],
                          *restrict e = rows[4];
    for (size_t i = 0; i < count; i++)
        values[i] = (a[i] + e[i]) * (1.f / 16) + (b[i] + d[i]) * (4.f / 16) + c[i] * (6.f / 16);
}

/* values begins two samples before the first one. */
ENGINE_CLONES static void row_blurred_along(const float *restrict values, size_t count, float *restrict low)
{
    for (size_t i = 0; i < count; i++)
        low[i] = (values[i] + values[i + 4]) * (1.f / 16) + (values[i + 1] + values[i + 3]) * (4.f / 16) +
                 values[i + 2] * (6.f / 16);
}

ENGINE_CLONES static void row_subtracted(float *restrict values, const float *restrict low, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] -= low[i];
}

/* Repeats the ends of a row of count values, reach times on either side. */
static void row_extend(float *values, unsigned count, unsigned reach)
{
    for (unsigned i = 0; i < reach; i++) {
        values[-1 - (int)i] = values[0];
        values[count + i] = values[count - 1];
    }
}

/* The low-passed plane; the kernel is that of Burt and Adelson. */
static void plane_blur(const float *plane, unsigned width, unsigned height, float *line, float *low)
{
    for (unsigned y = 0; y < height; y++) {
        const float *rows[5];
        for (int i = 0; i < 5; i++)
            rows[i] = plane + (size_t)row_clamped((int)y + i - 2, height) * width;
        row_blurred_down(rows, width, line + 2);
        row_extend(line + 2, width, 2);
        row_blurred_along(line, width, low + (size_t)y * width);
    }
}

static void plane_halve(const float *low, unsigned width, unsigned height, float *half)
{
    for (unsigned y = 0; y < height; y += 2)
        for (unsigned x = 0; x < width; x += 2)
            *half++ = low[(size_t)y * width + x];
}

/* One level of a pyramid: the plane becomes its band, its low-passed half the next level. */
static void band_split(struct work *work, unsigned plane, unsigned level)
{
    const unsigned width = tile_width(&work->tile, level), height = tile_height(&work->tile, level);
    float *band = work->bands[plane][level];
    plane_blur(band, width, height, work->line[0], work->low);
    plane_halve(work->low, width, height, work->bands[plane][level + 1]);
    row_subtracted(band, work->low, (size_t)width * height);
}

/* ---- tiles */

/* Memory for tiles of a visibility. */
static enum iw_error work_init(struct work *work, const struct visibility *visibility)
{
    enum { slack = 64 };
    const size_t width = visibility->tile_columns + 2 * halo_px, height = visibility->tile_rows + 2 * halo_px,
                 samples = width * height;
    size_t size = 0, at[model_planes][visibility_levels];
    for (unsigned plane = 0; plane < model_planes; plane++) {
        for (unsigned level = 0; level < visibility_levels; level++) {
            at[plane][level] = size;
            size += (samples >> 2 * level) + slack;
        }
    }
    const size_t low = size, padded = low + samples + slack;
    const size_t lines = padded + (width + 2 * line_reach) * height + slack, line = 3 * width + slack;
    work->memory = malloc((lines + 6 * line) * sizeof *work->memory);
    if (work->memory == NULL)
        return IW_NO_MEMORY;
    for (unsigned plane = 0; plane < model_planes; plane++)
        for (unsigned level = 0; level < visibility_levels; level++)
            work->bands[plane][level] = work->memory + at[plane][level];
    work->low = work->memory + low;
    work->padded = work->memory + padded;
    for (unsigned i = 0; i < 6; i++)
        work->line[i] = work->memory + lines + i * line;
    work->colors = 0;
    return IW_OK;
}

static void side_set(unsigned first, unsigned size, unsigned end, unsigned *begin, unsigned *whole,
                     unsigned *core, unsigned *core_size)
{
    *begin = first < halo_px ? 0 : first - halo_px;
    *core = first - *begin;
    *core_size = end - first < size ? end - first : size;
    const unsigned last = first + *core_size + halo_px;
    *whole = (last < end ? last : end) - *begin;
}

static void tile_set(const struct visibility *visibility, struct tile *tile, unsigned x, unsigned y)
{
    side_set(x, visibility->tile_columns, visibility->width_px, &tile->x, &tile->width, &tile->core_x,
             &tile->core_width);
    side_set(y, visibility->tile_rows, visibility->height_px, &tile->y, &tile->height, &tile->core_y,
             &tile->core_height);
}

/* Splits a row of RGB into rows of luma, blue and red difference. */
ENGINE_CLONES static void row_opponent(const float *restrict values, size_t count, float *restrict luma,
                                       float *restrict blue, float *restrict red)
{
    for (size_t i = 0; i < count; i++) {
        const float r = values[3 * i], g = values[3 * i + 1], b = values[3 * i + 2];
        luma[i] = 0.299f * r + 0.587f * g + 0.114f * b;
        blue[i] = -0.168736f * r - 0.331264f * g + 0.5f * b;
        red[i] = 0.5f * r - 0.418688f * g - 0.081312f * b;
    }
}

/* The reverse. */
ENGINE_CLONES static void row_rgb(const float *restrict luma, const float *restrict blue,
                                  const float *restrict red, size_t count, float *restrict values)
{
    for (size_t i = 0; i < count; i++) {
        values[3 * i] = luma[i] + 1.402f * red[i];
        values[3 * i + 1] = luma[i] - 0.344136f * blue[i] - 0.714136f * red[i];
        values[3 * i + 2] = luma[i] + 1.772f * blue[i];
    }
}

static void row_split(struct work *work, unsigned y, const float *values)
{
    const size_t width = work->tile.width, at = y * width;
    row_opponent(values, width, work->bands[0][0] + at, work->bands[1][0] + at, work->bands[2][0] + at);
}

/* ---- thresholds */

/* The block of a level at the core's corner, and the core's blocks. */
struct blocks {
    unsigned x, y, columns, rows;
};

static struct blocks blocks_of(const struct tile *tile, unsigned block_px)
{
    return (struct blocks){(tile->x + tile->core_x) / block_px, (tile->y + tile->core_y) / block_px,
                           tile->core_width / block_px, tile->core_height / block_px};
}

/* Sums of a block: luma of the low-passed plane, or roots of a band. */
ENGINE_CLONES static float block_luma(const float *low, size_t width)
{
    float sum = 0;
    for (unsigned y = 0; y < visibility_block; y++)
        for (unsigned x = 0; x < visibility_block; x++)
            sum += low[y * width + x];
    return sum / (visibility_block * visibility_block);
}

ENGINE_CLONES static float block_roots(const float *band, size_t width)
{
    float sum = 0;
    for (unsigned y = 0; y < visibility_block; y++)
        for (unsigned x = 0; x < visibility_block; x++)
            sum += sqrtf(fabsf(band[y * width + x]));
    return sum / (visibility_block * visibility_block);
}

/* The threshold at a light, relative to that at the mean light. */
static float adapted(const struct visibility_model *model, float luma)
{
    return powf((fmaxf(luma, 0) + model->dark) / (model->light + model->dark), model->adaptation);
}

/* The rise of a threshold by the activity of its band, in thresholds. */
static float masked(const struct visibility_model *model, float activity)
{
    const float square = activity * activity;
    return powf(model->calm + square * square, model->masking);
}

/* The light of the core's blocks goes to the first plane's thresholds; they are replaced by the thresholds of
 * luma at last. */
static void light_store(const struct visibility *visibility, const struct work *work, unsigned level)
{
    const struct visibility_map *map = &visibility->thresholds[level][0];
    const struct blocks core = blocks_of(&work->tile, visibility_block << level);
    const size_t width = tile_width(&work->tile, level);
    const float *low = work->low + (work->tile.core_y >> level) * width + (work->tile.core_x >> level);
    for (unsigned y = 0; y < core.rows; y++)
        for (unsigned x = 0; x < core.columns; x++)
            map->values[(size_t)(core.y + y) * map->columns + core.x + x] =
                adapted(visibility->model, block_luma(low + (y * width + x) * visibility_block, width));
}

static void thresholds_store(const struct visibility *visibility, const struct work *work, unsigned plane,
                             unsigned level)
{
    const struct visibility_model *model = visibility->model;
    const struct visibility_map *map = &visibility->thresholds[level][plane];
    const float *light = visibility->thresholds[level][0].values;
    const struct blocks core = blocks_of(&work->tile, visibility_block << level);
    const size_t width = tile_width(&work->tile, level);
    const float *band =
        work->bands[plane][level] + (work->tile.core_y >> level) * width + (work->tile.core_x >> level);
    for (unsigned y = 0; y < core.rows; y++) {
        for (unsigned x = 0; x < core.columns; x++) {
            const size_t at = (size_t)(core.y + y) * map->columns + core.x + x;
            const float limit = model->thresholds[level][plane] * light[at];
            const float root = block_roots(band + (y * width + x) * visibility_block, width);
            map->values[at] = limit * masked(model, root * root / limit);
        }
    }
}

/* What remains below all bands is masked by nothing. */
static void remainder_store(const struct visibility *visibility, const struct work *work)
{
    enum { level = model_levels };
    const struct blocks core = blocks_of(&work->tile, 1 << level);
    const size_t width = tile_width(&work->tile, level);
    const float *luma =
        work->bands[0][level] + (work->tile.core_y >> level) * width + (work->tile.core_x >> level);
    for (unsigned y = 0; y < core.rows; y++) {
        for (unsigned x = 0; x < core.columns; x++) {
            const float light = adapted(visibility->model, luma[y * width + x]);
            for (unsigned plane = 0; plane < model_planes; plane++) {
                const struct visibility_map *map = &visibility->thresholds[level][plane];
                map->values[(size_t)(core.y + y) * map->columns + core.x + x] =
                    visibility->model->thresholds[level][plane] * light;
            }
        }
    }
}

static void colors_add(struct work *work)
{
    const struct tile *tile = &work->tile;
    for (unsigned plane = 1; plane < model_planes; plane++) {
        for (unsigned y = 0; y < tile->core_height; y++) {
            const float *row =
                work->bands[plane][0] + (size_t)(tile->core_y + y) * tile->width + tile->core_x;
            double sum = 0;
            for (unsigned x = 0; x < tile->core_width; x++)
                sum += (double)fabsf(row[x]);
            work->colors += sum;
        }
    }
}

static void tile_thresholds(const struct visibility *visibility, struct work *work,
                            const struct canvas *canvas)
{
    for (unsigned y = 0; y < work->tile.height; y++) {
        canvas_pixels(canvas, work->tile.y + y, work->tile.x, work->tile.width, work->line[1]);
        row_split(work, y, work->line[1]);
    }
    colors_add(work);
    for (unsigned level = 0; level < model_levels; level++) {
        band_split(work, 0, level);
        light_store(visibility, work, level);
        for (unsigned plane = 1; plane < model_planes; plane++) {
            band_split(work, plane, level);
            thresholds_store(visibility, work, plane, level);
        }
        thresholds_store(visibility, work, 0, level);
    }
    remainder_store(visibility, work);
}

/* Each threshold becomes the harmonic mean of 3x3: next to smooth blocks an edge does not mask. */
static void map_smooth(const struct visibility_map *map, float *lines)
{
    const unsigned columns = map->columns;
    float *before = lines, *here = lines + columns, *after = lines + 2 * columns, *sums = lines + 3 * columns;
    for (unsigned x = 0; x < columns; x++)
        before[x] = here[x] = 1 / map->values[x];
    for (unsigned y = 0; y < map->rows; y++) {
        float *row = map->values + (size_t)y * columns, *next = y + 1 < map->rows ? row + columns : row;
        for (unsigned x = 0; x < columns; x++) {
            after[x] = 1 / next[x];
            sums[x] = before[x] + here[x] + after[x];
        }
        for (unsigned x = 0; x < columns; x++)
            row[x] = 9 / (sums[x > 0 ? x - 1 : 0] + sums[x] + sums[x + 1 < columns ? x + 1 : x]);
        float *old = before;
        before = here;
        here = after;
        after = old;
    }
}

static struct visibility_map map_at(const struct visibility *visibility, unsigned block_px, size_t *size)
{
    struct visibility_map map = {visibility->width_px / block_px, visibility->height_px / block_px, NULL};
    map.values = visibility->memory != NULL ? visibility->memory + *size : NULL;
    *size += (size_t)map.columns * map.rows;
    return map;
}

/* Lays out all maps; returns their size.  Without memory it only measures. */
static size_t maps_lay(struct visibility *visibility)
{
    size_t size = 0;
    for (unsigned level = 0; level < visibility_levels; level++)
        for (unsigned plane = 0; plane < model_planes; plane++)
            visibility->thresholds[level][plane] =
                map_at(visibility, (level < model_levels ? visibility_block : 1U) << level, &size);
    visibility->means = map_at(visibility, visibility_cell_px, &size);
    visibility->peaks = map_at(visibility, visibility_cell_px, &size);
    return size;
}

static unsigned tile_side(unsigned usual, unsigned side)
{
    return side < usual ? side : usual;
}

static enum iw_error thresholds_fill(struct visibility *visibility, const struct canvas *canvas)
{
    struct work work;
    const size_t columns = visibility->thresholds[0][0].columns;
    float *lines = malloc(4 * columns * sizeof *lines);
    enum iw_error error = lines != NULL ? work_init(&work, visibility) : IW_NO_MEMORY;
    if (error != IW_OK) {
        free(lines);
        return error;
    }
    for (unsigned y = 0; y < visibility->height_px; y += visibility->tile_rows) {
        for (unsigned x = 0; x < visibility->width_px; x += visibility->tile_columns) {
            tile_set(visibility, &work.tile, x, y);
            tile_thresholds(visibility, &work, canvas);
        }
    }
    for (unsigned level = 0; level < model_levels; level++)
        for (unsigned plane = 0; plane < model_planes; plane++)
            map_smooth(&visibility->thresholds[level][plane], lines);
    const double samples = 2.0 * visibility->width_px * visibility->height_px;
    visibility->planes = work.colors / samples >= (double)coloured ? model_planes : 1;
    free(work.memory);
    free(lines);
    return IW_OK;
}

enum iw_error visibility_init(struct visibility *visibility, const struct visibility_model *model,
                              const struct canvas *canvas)
{
    *visibility = (struct visibility){.model = model,
                                      .width_px = canvas->width_px,
                                      .height_px = canvas->height_px,
                                      .tile_columns = tile_side(tile_columns_usual, canvas->width_px),
                                      .tile_rows = tile_side(tile_rows_usual, canvas->height_px)};
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

ENGINE_CLONES static void row_between(const float *restrict upper, const float *restrict lower, float share,
                                      size_t count, float *restrict values)
{
    for (size_t i = 0; i < count; i++)
        values[i] = upper[i] * (1 - share) + lower[i] * share;
}

/* values: from one before the first. */
ENGINE_CLONES static void row_enlarged4(const float *restrict values, size_t count, float *restrict wide)
{
    for (size_t i = 0; i < count; i++) {
        const float before = values[i], here = values[i + 1], after = values[i + 2];
        wide[4 * i] = .375f * before + .625f * here;
        wide[4 * i + 1] = .125f * before + .875f * here;
        wide[4 * i + 2] = .875f * here + .125f * after;
        wide[4 * i + 3] = .625f * here + .375f * after;
    }
}

static void row_enlarged(const float *values, unsigned factor, size_t count, float *wide)
{
    for (size_t i = 0; i < count; i++, wide += factor) {
        for (unsigned k = 0; k < factor; k++) {
            const float place = ((float)k + .5f) / (float)factor - .5f;
            const float beside = place < 0 ? values[i] : values[i + 2], share = fabsf(place);
            wide[k] = (1 - share) * values[i + 1] + share * beside;
        }
    }
}

void visibility_row(const struct visibility_map *map, unsigned factor, unsigned y, unsigned x, unsigned count,
                    float *values)
{
    enum { run = 64 };
    const float place = ((float)y + .5f) / (float)factor - .5f;
    const int row = (int)floorf(place);
    const float *upper = map->values + (size_t)row_clamped(row, map->rows) * map->columns,
                *lower = map->values + (size_t)row_clamped(row + 1, map->rows) * map->columns;
    for (unsigned first = x / factor, end = (x + count) / factor; first < end; first += run) {
        float line[run + 2];
        const unsigned here = end - first < run ? end - first : run;
        const unsigned left = first > 0 ? 1 : 0, right = first + here < map->columns ? 1 : 0;
        row_between(upper + first - left, lower + first - left, place - (float)row, here + left + right,
                    line + 1 - left);
        if (left == 0)
            line[0] = line[1];
        if (right == 0)
            line[here + 1] = line[here];
        if (factor == 4)
            row_enlarged4(line, here, values);
        else
            row_enlarged(line, factor, here, values);
        values += (size_t)here * factor;
    }
}

/* The thresholds of a row of a tile's band. */
static void tile_thresholds_row(const struct visibility *visibility, const struct tile *tile, unsigned plane,
                                unsigned level, unsigned y, float *values)
{
    const struct visibility_map *map = &visibility->thresholds[level][plane];
    const unsigned row = (tile->y >> level) + y, first = tile->x >> level, count = tile_width(tile, level);
    if (level < model_levels)
        visibility_row(map, visibility_block, row, first, count, values);
    else
        memcpy(values, map->values + (size_t)row * map->columns + first, count * sizeof *values);
}

/* ---- the step */

ENGINE_CLONES static void row_stepped(float *restrict band, const float *restrict limits, float share,
                                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        band[i] *= limits[i] * limits[i] * share;
}

/* Adds a row at twice the size: samples at even places stay, others are means. */
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

/* The bands become the step, from the coarsest to the finest. */
static void tile_step(const struct visibility *visibility, struct work *work, unsigned plane)
{
    const struct tile *tile = &work->tile;
    for (unsigned level = 0; level < model_levels; level++)
        band_split(work, plane, level);
    for (int level = model_levels - 1; level >= 0; level--) {
        const unsigned width = tile_width(tile, (unsigned)level), height = tile_height(tile, (unsigned)level);
        for (unsigned y = 0; y < height; y++) {
            float *row = work->bands[plane][level] + (size_t)y * width;
            tile_thresholds_row(visibility, tile, plane, (unsigned)level, y, work->line[0]);
            row_stepped(row, work->line[0], visibility->model->shares[level][plane], width);
            if (level == model_levels - 1)
                continue;
            const float *coarse = work->bands[plane][level + 1];
            const unsigned half = width / 2, upper = y / 2, lower = (y + 1) / 2;
            row_doubled_add(coarse + (size_t)upper * half,
                            coarse + (size_t)(lower < height / 2 ? lower : upper) * half, half, row);
        }
    }
}

/* ---- the visibility of the step */

ENGINE_CLONES static void row_divided(float *restrict values, const float *restrict limits, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] /= limits[i];
}

ENGINE_CLONES static void powers_add(float *restrict powers, const float *restrict values, float factor,
                                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float value = values[i] * factor, square = value * value;
        powers[i] += square * square;
    }
}

/* The powers of the means along a line whose samples are step apart. */
ENGINE_CLONES static void line_powers_add(float *restrict powers, const float *const rows[line_samples],
                                          int step, float factor, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (int k = 0; k < line_samples; k++)
            sum += rows[k][(int)i + (k - line_reach) * step];
        sum *= factor / line_samples;
        powers[i] += sum * sum * sum * sum;
    }
}

/* Luma responses of a band go to the padded plane. */
static void lines_prepare(struct work *work, unsigned level)
{
    const unsigned width = tile_width(&work->tile, level), height = tile_height(&work->tile, level);
    const size_t stride = width + 2 * line_reach;
    for (unsigned y = 0; y < height; y++) {
        float *row = work->padded + y * stride + line_reach;
        memcpy(row, work->bands[0][level] + (size_t)y * width, width * sizeof *row);
        row_extend(row, width, line_reach);
    }
}

/* Adds the powers of the lines of four directions to a row of the core. */
static void lines_add(const struct work *work, unsigned level, unsigned y, float factor, float *powers)
{
    const unsigned width = tile_width(&work->tile, level), height = tile_height(&work->tile, level);
    const size_t stride = width + 2 * line_reach, first = line_reach + (work->tile.core_x >> level);
    const unsigned count = work->tile.core_width >> level;
    const float *down[line_samples], *along[line_samples];
    for (int k = 0; k < line_samples; k++) {
        down[k] = work->padded + row_clamped((int)y + k - line_reach, height) * stride + first;
        along[k] = work->padded + y * stride + first;
    }
    line_powers_add(powers, along, 1, factor, count);
    line_powers_add(powers, down, 0, factor, count);
    line_powers_add(powers, down, 1, factor, count);
    line_powers_add(powers, down, -1, factor, count);
}

/* Adds the mean power of each cell, and its largest. */
static void cells_add(const float *powers, unsigned cell, unsigned cells, float *means, float *peaks)
{
    for (unsigned i = 0; i < cells; i++) {
        for (unsigned x = 0; x < cell; x++) {
            const float power = powers[i * cell + x];
            means[i] += power / (float)(cell * cell);
            peaks[i] = power > peaks[i] ? power : peaks[i];
        }
    }
}

/* The coarsest level has one sample for 2x2 cells. */
static void cells_add_wide(const float *powers, unsigned cells, float *means, float *peaks)
{
    for (unsigned i = 0; i < cells; i++) {
        means[i] += powers[i / 2];
        peaks[i] = powers[i / 2];
    }
}

/* The powers of a row of the core in all planes. */
static void powers_row(const struct visibility *visibility, struct work *work, unsigned level, unsigned y,
                       float *powers)
{
    const struct tile *tile = &work->tile;
    const unsigned width = tile_width(tile, level), count = tile->core_width >> level;
    memset(powers, 0, count * sizeof *powers);
    for (unsigned plane = 0; plane < visibility->planes; plane++)
        powers_add(powers, work->bands[plane][level] + (size_t)y * width + (tile->core_x >> level), 1, count);
    if (level < line_levels)
        lines_add(work, level, y, visibility->model->line, powers);
}

/* Adds a level to the cells of the core: the means, and the largest power of each cell. */
static void level_add(const struct visibility *visibility, struct work *work, unsigned level)
{
    const struct tile *tile = &work->tile;
    const struct blocks core = blocks_of(tile, visibility_cell_px);
    const unsigned cell = visibility_cell_px >> level, columns = visibility->means.columns;
    float *powers = work->line[1], *most = work->line[2];
    for (unsigned row = 0; row < core.rows; row++) {
        const size_t at = (size_t)(core.y + row) * columns + core.x;
        float *means = visibility->means.values + at, *peaks = visibility->peaks.values + at;
        memset(most, 0, core.columns * sizeof *most);
        for (unsigned y = 0; y < (cell > 0 ? cell : 1); y++) {
            const unsigned sample = cell > 0 ? row * cell + y : row / 2;
            powers_row(visibility, work, level, (tile->core_y >> level) + sample, powers);
            if (cell > 0)
                cells_add(powers, cell, core.columns, means, most);
            else
                cells_add_wide(powers, core.columns, means, most);
        }
        for (unsigned i = 0; i < core.columns; i++)
            peaks[i] += most[i];
    }
}

static void tile_visibility(const struct visibility *visibility, struct work *work)
{
    for (unsigned level = 0; level < visibility_levels; level++) {
        const unsigned width = tile_width(&work->tile, level), height = tile_height(&work->tile, level);
        for (unsigned plane = 0; plane < visibility->planes; plane++) {
            if (level < model_levels)
                band_split(work, plane, level);
            for (unsigned y = 0; y < height; y++) {
                tile_thresholds_row(visibility, &work->tile, plane, level, y, work->line[0]);
                row_divided(work->bands[plane][level] + (size_t)y * width, work->line[0], width);
            }
        }
        if (level < line_levels)
            lines_prepare(work, level);
        level_add(visibility, work, level);
    }
}

static void tile_write(const struct work *work, const struct visibility_ends *ends)
{
    const struct tile *tile = &work->tile;
    for (unsigned y = 0; y < tile->core_height; y++) {
        const size_t at = (size_t)(tile->core_y + y) * tile->width + tile->core_x;
        row_rgb(work->bands[0][0] + at, work->bands[1][0] + at, work->bands[2][0] + at, tile->core_width,
                work->line[1]);
        ends->put(ends->data, tile->y + tile->core_y + y, tile->x + tile->core_x, tile->core_width,
                  work->line[1]);
    }
}

static void tile_run(const struct visibility *visibility, struct work *work,
                     const struct visibility_ends *ends)
{
    const struct tile *tile = &work->tile;
    for (unsigned y = 0; y < tile->height; y++) {
        ends->get(ends->data, tile->y + y, tile->x, tile->width, work->line[1]);
        row_split(work, y, work->line[1]);
    }
    for (unsigned plane = 0; ends->put != NULL && plane < visibility->planes; plane++)
        tile_step(visibility, work, plane);
    for (unsigned plane = visibility->planes; plane < model_planes; plane++)
        memset(work->bands[plane][0], 0, (size_t)tile->width * tile->height * sizeof(float));
    if (ends->put != NULL)
        tile_write(work, ends);
    tile_visibility(visibility, work);
}

enum iw_error visibility_step(struct visibility *visibility, const struct visibility_ends *ends)
{
    struct work work;
    const size_t cells = (size_t)visibility->means.columns * visibility->means.rows;
    enum iw_error error = work_init(&work, visibility);
    if (error != IW_OK)
        return error;
    memset(visibility->means.values, 0, cells * sizeof(float));
    memset(visibility->peaks.values, 0, cells * sizeof(float));
    for (unsigned y = 0; y < visibility->height_px; y += visibility->tile_rows) {
        for (unsigned x = 0; x < visibility->width_px; x += visibility->tile_columns) {
            tile_set(visibility, &work.tile, x, y);
            tile_run(visibility, &work, ends);
        }
        if (ends->put != NULL)
            ends->release(ends->data, y);
    }
    if (ends->put != NULL)
        ends->release(ends->data, visibility->height_px);
    free(work.memory);
    return IW_OK;
}

/* ---- even visibility */

/* A mean over a window of cells; edges repeat.  step: distance of neighbours. */
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
    map_blur(map, visibility->thresholds[0][0].values); /* no longer needed */
    for (size_t i = 0; i < cells; i++)
        mean += (double)map->values[i] / (double)cells;
    for (size_t i = 0; i < cells; i++) {
        const float share = 1 / (map->values[i] + even_floor * (float)mean + 1e-12f);
        map->values[i] = share;
        total += (double)visibility->means.values[i] * pow((double)share, 4) / (double)cells;
    }
    return sqrt(sqrt(total));
}
