#include "engine/protect/protect_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/image.h"
#include "engine/watermark/clones.h"

enum {
    levels_16bit = 257, /* steps of 16 bits in one level of 8 bits */
    step_16bit = 64,    /* changes of 16-bit samples are multiples of it, about a quarter of a level */
};

/*
 * Below these shares of the intended change the client gets a note: of rendering, and after encoding.
 * Encoders remove much of a change that encoders of models would lose as well.
 */
static const double rendered_least = 0.5, encoded_least = 0.15;

static const char *const names[protect_strength_count] = {
    [PROTECT_LOW] = "low", [PROTECT_STANDARD] = "standard", [PROTECT_HIGH] = "high"};

const char *protect_strength_name(enum protect_strength strength)
{
    return names[strength];
}

bool protect_strength_by_name(const char *name, enum protect_strength *strength)
{
    for (unsigned i = 0; i < protect_strength_count; i++) {
        if (strcmp(name, names[i]) == 0) {
            *strength = (enum protect_strength)i;
            return true;
        }
    }
    return false;
}

enum iw_error protect_new(struct protect **protect, const void *weights, size_t size, const char **why)
{
    *why = "there is no memory for the weights";
    *protect = calloc(1, sizeof **protect);
    if (*protect == NULL)
        return IW_NO_MEMORY;
    enum iw_error error = net_init(&(*protect)->net, weights, size, why);
    if (error != IW_OK) {
        free(*protect);
        *protect = NULL;
    }
    return error;
}

void protect_free(struct protect *protect)
{
    if (protect == NULL)
        return;
    net_fini(&protect->net);
    free(protect);
}

static size_t blocks_of(uint32_t side_px, unsigned block_px)
{
    const size_t grid = ((size_t)side_px + canvas_grid_px - 1) / canvas_grid_px;
    return grid * (canvas_grid_px / block_px);
}

enum iw_error protect_plan_new(struct protect_plan **plan, const struct protect *protect,
                               const struct image *image, uint64_t seed)
{
    const unsigned colors = image_has_color(image) ? 3 : 1;
    const size_t columns = blocks_of(image->width_px, visibility_cell_px),
                 rows = blocks_of(image->height_px, visibility_cell_px),
                 row_units = columns * visibility_cell_px * colors;
    struct protect_plan *new = calloc(1, sizeof *new + (columns * rows + 3 * row_units) * sizeof(float) +
                                             rows *visibility_cell_px *row_units);
    if (new == NULL)
        return IW_NO_MEMORY;
    *new = (struct protect_plan){.weights = &protect->net.weights,
                                 .width_px = image->width_px,
                                 .height_px = image->height_px,
                                 .colors = colors,
                                 .depth_bits = image->depth_bits,
                                 .row_units = row_units,
                                 .shares = {(unsigned)columns, (unsigned)rows, (float *)(new + 1)}};
    new->lines = new->shares.values + columns *rows;
    new->units = (int8_t *)(new->lines + 3 * row_units);
    enum iw_error error = plan_fill(new, protect, image, seed);
    if (error != IW_OK) {
        free(new);
        return error;
    }
    *plan = new;
    return IW_OK;
}

void protect_plan_free(struct protect_plan *plan)
{
    free(plan);
}

/* ---- rows of samples without alpha */

/* The sample with index at of a row, of 8 or 16 bits. */
static unsigned sample_at(const struct image *image, const void *row, size_t at)
{
    return image->depth_bits == 8 ? ((const uint8_t *)row)[at] : ((const uint16_t *)row)[at];
}

static void sample_set(const struct image *image, void *row, size_t at, int value)
{
    if (image->depth_bits == 8)
        ((uint8_t *)row)[at] = (uint8_t)value;
    else
        ((uint16_t *)row)[at] = (uint16_t)value;
}

/* The smallest change of a sample, in its own steps; a level is 255 of its range. */
static int change_step(const struct protect_plan *plan)
{
    return plan->depth_bits == 8 ? 1 : step_16bit;
}

static double levels_of_change(const struct protect_plan *plan)
{
    return plan->depth_bits == 8 ? 1 : (double)step_16bit / levels_16bit;
}

ENGINE_CLONES static void row_levels8(const uint8_t *restrict samples, size_t count, float *restrict levels)
{
    for (size_t i = 0; i < count; i++)
        levels[i] = samples[i];
}

/* The samples of a row in levels of 255, without alpha. */
static void row_levels(const struct image *image, const void *row, unsigned colors, float *levels)
{
    const float level = image->depth_bits == 8 ? 1 : levels_16bit;
    if (image->depth_bits == 8 && image->channels == colors) {
        row_levels8(row, (size_t)image->width_px * colors, levels);
        return;
    }
    for (uint32_t x = 0; x < image->width_px; x++)
        for (unsigned color = 0; color < colors; color++)
            *levels++ = (float)sample_at(image, row, (size_t)x * image->channels + color) / level;
}

/* Scratch rows of a plan. */
struct lines {
    float *wanted, *levels, *shares;
};

static struct lines lines_of(const struct protect_plan *plan)
{
    return (struct lines){plan->lines, plan->lines + plan->row_units, plan->lines + 2 * plan->row_units};
}

ENGINE_CLONES static void row_multiply1(float *restrict values, const float *restrict factors, size_t count)
{
    for (size_t x = 0; x < count; x++)
        values[x] *= factors[x];
}

ENGINE_CLONES static void row_multiply3(float *restrict values, const float *restrict factors, size_t count)
{
    for (size_t x = 0; x < count; x++) {
        values[3 * x] *= factors[x];
        values[3 * x + 1] *= factors[x];
        values[3 * x + 2] *= factors[x];
    }
}

/* The changes of a row in levels, before rounding: the units times their shares and the amplitude. */
static void row_wanted(const struct protect_plan *plan, uint32_t y, const struct lines *lines)
{
    const unsigned width = plan->shares.columns * visibility_cell_px;
    visibility_row(&plan->shares, visibility_cell_px, y, lines->shares);
    for (unsigned x = 0; x < width; x++)
        lines->shares[x] *= plan->amplitude;
    units_load(plan_row(plan, y), plan->floor_rank, plan->row_units, lines->wanted);
    (plan->colors == 1 ? row_multiply1 : row_multiply3)(lines->wanted, lines->shares, width);
}

/* The nearest change that a sample can have, in its steps. */
static inline int change_of(float wanted, float step)
{
    const float steps = wanted / step;
    return (int)(steps < 0 ? steps - .5f : steps + .5f);
}

/* The headroom of a sample for a change: of the nearer end and the slack, and of the range. */
static inline float room_of(float level, float change, float slack)
{
    const float above = 255 - level, near = (level < above ? level : above) + slack;
    const float range = change < 0 ? level : above;
    return near < range ? near : range;
}

/* Whether the change of any of count samples exceeds its headroom. */
ENGINE_CLONES static bool row_exceeds(const float *restrict wanted, const float *restrict levels, float step,
                                      float slack, size_t count)
{
    int exceeds = 0;
    for (size_t i = 0; i < count; i++) {
        const int change = change_of(wanted[i], step);
        exceeds |= step * (float)(change < 0 ? -change : change) > room_of(levels[i], wanted[i], slack);
    }
    return exceeds != 0;
}

/* Lowers the units of a few samples whose changes exceed the headroom. */
static void units_fit(const struct protect_plan *plan, int8_t *units, const struct lines *lines, size_t first,
                      size_t end)
{
    const float step = (float)levels_of_change(plan), slack = 255 * plan->weights->slack;
    for (size_t i = first; i < end; i++) {
        const float room = room_of(lines->levels[i], lines->wanted[i], slack);
        while (units[i] != 0 && step * (float)abs(change_of(lines->wanted[i], step)) > room) {
            float value;
            units[i] = (int8_t)(units[i] > 0 ? units[i] - 1 : units[i] + 1);
            units_load(units + i, plan->floor_rank, 1, &value);
            lines->wanted[i] = value * lines->shares[i / plan->colors];
        }
    }
}

static void row_fit(const struct protect_plan *plan, int8_t *units, const struct lines *lines, size_t count)
{
    enum { run = 96 };
    const float step = (float)levels_of_change(plan), slack = 255 * plan->weights->slack;
    for (size_t first = 0; first < count; first += run) {
        const size_t end = first + run < count ? first + run : count;
        if (row_exceeds(lines->wanted + first, lines->levels + first, step, slack, end - first))
            units_fit(plan, units, lines, first, end);
    }
}

/* Pixels with alpha 0 keep their colour. */
static void row_clear_hidden(const struct protect_plan *plan, const struct image *image, const void *row,
                             int8_t *units, const struct lines *lines)
{
    const unsigned colors = plan->colors;
    for (uint32_t x = 0; image_has_alpha(image) && x < image->width_px; x++) {
        if (sample_at(image, row, (size_t)x * image->channels + colors) == 0) {
            memset(units + (size_t)x * colors, 0, colors);
            memset(lines->wanted + (size_t)x * colors, 0, colors * sizeof *lines->wanted);
        }
    }
}

ENGINE_CLONES static void row_move8(uint8_t *restrict samples, const float *restrict wanted, int sign,
                                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        samples[i] = (uint8_t)(samples[i] + sign * change_of(wanted[i], 1));
}

/* Adds the changes of a row, or subtracts them (sign -1). */
static void row_move(const struct protect_plan *plan, const struct image *image, void *row,
                     const float *wanted, int sign)
{
    const float step = (float)levels_of_change(plan);
    const int own = sign * change_step(plan);
    if (image->depth_bits == 8 && image->channels == plan->colors) {
        row_move8(row, wanted, sign, (size_t)image->width_px * plan->colors);
        return;
    }
    for (uint32_t x = 0; x < image->width_px; x++) {
        for (unsigned color = 0; color < plan->colors; color++) {
            const size_t at = (size_t)x * image->channels + color;
            sample_set(image, row, at, (int)sample_at(image, row, at) + own * change_of(*wanted++, step));
        }
    }
}

/* ---- rendering */

static double psnr_of(double error)
{
    const double psnr = error > 0 ? 10 * log10(255.0 * 255.0 / error) : 99;
    return psnr < 99 ? psnr : 99;
}

static void report_fill(struct protect_report *report, double reached, double error)
{
    report->reached = fmin(fmax(reached, 0), 1);
    report->psnr_db = psnr_of(error);
}

/* Sums that the compiler keeps in a vector. */
enum { sum_lanes = 8 };

static double sum_of(const float lanes[sum_lanes])
{
    double sum = 0;
    for (unsigned k = 0; k < sum_lanes; k++)
        sum += (double)lanes[k];
    return sum;
}

/* The sum of products of two rows. */
ENGINE_CLONES static double row_product(const float *restrict one, const float *restrict other, size_t count)
{
    float lanes[sum_lanes] = {0};
    for (size_t i = 0; i + sum_lanes <= count; i += sum_lanes)
        for (unsigned k = 0; k < sum_lanes; k++)
            lanes[k] += one[i + k] * other[i + k];
    for (size_t i = count / sum_lanes * sum_lanes; i < count; i++)
        lanes[0] += one[i] * other[i];
    return sum_of(lanes);
}

/* Rounds the changes of a row, in levels. */
ENGINE_CLONES static void row_rounded(const float *restrict wanted, float step, size_t count,
                                      float *restrict changes)
{
    for (size_t i = 0; i < count; i++)
        changes[i] = step * (float)change_of(wanted[i], step);
}

ENGINE_CLONES static void row_apart(const float *restrict after, size_t count, float *restrict levels)
{
    for (size_t i = 0; i < count; i++)
        levels[i] = after[i] - levels[i];
}

/* Intended changes squared, those times the real ones, and the real ones squared. */
struct sums {
    double intended, shared, changed;
};

void protect_render(struct protect_plan *plan, struct image *image, enum protect_strength strength,
                    double scale, struct protect_report *report)
{
    const size_t samples = (size_t)plan->width_px * plan->colors;
    const double budget = (double)plan->weights->budgets[strength];
    const struct lines lines = lines_of(plan);
    struct sums sums = {0, 0, 0};
    plan->amplitude = (float)(255 * scale * budget / (plan->total + 1e-12));
    for (uint32_t y = 0; y < plan->height_px; y++) {
        void *row = image_row(image, y);
        row_wanted(plan, y, &lines);
        row_levels(image, row, plan->colors, lines.levels);
        sums.intended += row_product(lines.wanted, lines.wanted, samples);
        row_fit(plan, plan_row(plan, y), &lines, samples);
        row_clear_hidden(plan, image, row, plan_row(plan, y), &lines);
        row_move(plan, image, row, lines.wanted, 1);
        row_rounded(lines.wanted, (float)levels_of_change(plan), samples, lines.levels);
        sums.shared += row_product(lines.wanted, lines.levels, samples);
        sums.changed += row_product(lines.levels, lines.levels, samples);
    }
    report->visibility = budget;
    report_fill(report, sums.intended > 0 ? sums.shared / sums.intended : 0,
                sums.changed / ((double)samples * plan->height_px));
    report->is_limited = report->reached < rendered_least;
}

void protect_undo(const struct protect_plan *plan, struct image *image)
{
    const struct lines lines = lines_of(plan);
    for (uint32_t y = 0; y < plan->height_px; y++) {
        row_wanted(plan, y, &lines);
        row_move(plan, image, image_row(image, y), lines.wanted, -1);
    }
}

enum iw_error protect_apply(const struct protect *protect, struct image *image,
                            enum protect_strength strength, uint64_t seed, struct protect_report *report)
{
    struct protect_plan *plan = NULL;
    enum iw_error error = protect_plan_new(&plan, protect, image, seed);
    if (error != IW_OK)
        return error;
    protect_render(plan, image, strength, 1, report);
    protect_plan_free(plan);
    return IW_OK;
}

/* ---- comparison */

void protect_compare(const struct protect_plan *plan, const struct image *image, uint32_t first_row_px,
                     const struct image *rows, struct protect_sums *sums)
{
    const size_t samples = (size_t)image->width_px * plan->colors;
    const struct lines lines = lines_of(plan);
    for (uint32_t y = 0; y < rows->height_px; y++) {
        row_wanted(plan, first_row_px + y, &lines);
        row_levels(image, image_row(image, first_row_px + y), plan->colors, lines.levels);
        row_levels(rows, image_row(rows, y), plan->colors, lines.shares);
        row_apart(lines.shares, samples, lines.levels);
        row_rounded(lines.wanted, (float)levels_of_change(plan), samples, lines.shares);
        sums->squares += row_product(lines.levels, lines.levels, samples);
        sums->shared += row_product(lines.levels, lines.shares, samples);
        sums->changes += row_product(lines.shares, lines.shares, samples);
        sums->samples += (double)samples;
    }
}

void protect_report_compared(const struct protect_sums *sums, double scale, struct protect_report *report)
{
    const double kept = sums->changes > 0 ? scale * sums->shared / sums->changes : 0;
    report_fill(report, report->reached * kept, sums->squares / sums->samples);
    report->is_limited = report->is_limited || report->reached < encoded_least;
}

double protect_psnr(const struct image *left, const struct image *right)
{
    const unsigned colors = image_has_color(left) ? 3 : 1;
    const double level = left->depth_bits == 8 ? 1 : levels_16bit;
    double sum = 0;
    for (uint32_t y = 0; y < left->height_px; y++) {
        const void *one = image_row(left, y), *other = image_row(right, y);
        uint64_t squares = 0;
        for (uint32_t x = 0; x < left->width_px; x++) {
            for (unsigned color = 0; color < colors; color++) {
                const size_t at = (size_t)x * left->channels + color;
                const int64_t apart = (int64_t)sample_at(left, one, at) - sample_at(right, other, at);
                squares += (uint64_t)(apart * apart);
            }
        }
        sum += (double)squares;
    }
    return psnr_of(sum / (level * level) / ((double)left->width_px * left->height_px * colors));
}
