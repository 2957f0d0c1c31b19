#include "engine/protect/change.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/protect/plan.h"

enum {
    levels_16bit = 257, /* steps of 16 bits in one level of 8 bits */
    step_16bit = 64,    /* changes of 16-bit samples are multiples of this step, about a quarter of a level */
    sum_lanes = 8       /* of sums that the compiler keeps in a vector */
};

/* ---- units */

/*
 * The rank of a value consists of the exponent and the upper three bits of the mantissa, counted from a value
 * far below any perturbation. Unit 1 has the rank that follows the rank of unit 0 in the same octave.
 */
enum {
    float_bits = 23,
    float_bias = 127,
    rank_bits = 20,
    rank_octave = -64, /* of rank 0 */
    rank_zero = (float_bias + rank_octave) << float_bits,
    rank_half = 1 << (rank_bits - 1),
    octave_ranks = 1 << (float_bits - rank_bits)
};

/* Returns the bits of a float without the sign; they increase with the size. */
static inline int32_t float_size_bits(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & INT32_MAX;
}

/* Returns the unit for the size of a value, 0..unit_peak. */
static inline int unit_size(float value, int floor_rank)
{
    const int size = ((float_size_bits(value) - rank_zero) >> rank_bits) - floor_rank;
    return size < 0 ? 0 : size < unit_peak ? size : unit_peak;
}

static inline float unit_value(int unit, int floor_rank)
{
    const int size = unit < 0 ? -unit : unit;
    const int32_t above = rank_zero + rank_half + (floor_rank + size) * (1 << rank_bits);
    const int32_t bits = unit == 0 ? 0 : above | (unit < 0 ? INT32_MIN : 0);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

ENGINE_CLONES static int values_peak(const float *values, size_t count)
{
    int32_t most = 0;
    for (size_t i = 0; i < count; i++) {
        const int32_t bits = float_size_bits(values[i]);
        most = bits > most ? bits : most;
    }
    return (most - rank_zero) >> rank_bits;
}

ENGINE_CLONES static void run_store(const float *values, size_t count, int floor_rank, int8_t *units)
{
    for (size_t i = 0; i < count; i++) {
        const int size = unit_size(values[i], floor_rank);
        units[i] = (int8_t)(values[i] < 0 ? -size : size);
    }
}

uint8_t change_units_store(const float *values, size_t count, int8_t *units)
{
    const int above = values_peak(values, count) - unit_peak;
    const int octave = above > 0 ? (above + octave_ranks - 1) / octave_ranks : 0;
    run_store(values, count, octave * octave_ranks, units);
    return (uint8_t)octave;
}

ENGINE_CLONES void change_units_load(const int8_t *units, uint8_t octave, size_t count, float *values)
{
    for (size_t i = 0; i < count; i++)
        values[i] = unit_value(units[i], octave * octave_ranks);
}

/* ---- rows of samples without alpha */

/* Returns the steps of a sample's change in one level of 255. */
static float level_steps(const struct protect_plan *plan)
{
    return plan->depth_bits == 8 ? 1 : (float)levels_16bit / step_16bit;
}

ENGINE_CLONES static void row_levels8(const uint8_t *restrict samples, size_t count, float *restrict levels)
{
    for (size_t i = 0; i < count; i++)
        levels[i] = samples[i];
}

/* Reads the samples of a row in levels of 255, without alpha. */
static void row_levels(const struct image *image, const void *row, unsigned colors, float *levels)
{
    const float level = image->depth_bits == 8 ? 1 : levels_16bit;
    if (image->depth_bits == 8 && image->channels == colors) {
        row_levels8(row, (size_t)image->width_px * colors, levels);
        return;
    }
    for (uint32_t x = 0; x < image->width_px; x++)
        for (unsigned color = 0; color < colors; color++)
            *levels++ = (float)image_sample(image, row, (size_t)x * image->channels + color) / level;
}

ENGINE_CLONES static void row_move8(uint8_t *restrict samples, const float *restrict changes, int sign,
                                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        samples[i] = (uint8_t)(samples[i] + sign * (int)changes[i]);
}

/* Adds the changes of a row, in steps, or subtracts them (sign -1). */
static void row_move(const struct protect_plan *plan, const struct image *image, void *row,
                     const float *changes, int sign)
{
    if (image->depth_bits == 8 && image->channels == plan->colors) {
        row_move8(row, changes, sign, (size_t)image->width_px * plan->colors);
        return;
    }
    for (uint32_t x = 0; x < image->width_px; x++) {
        for (unsigned color = 0; color < plan->colors; color++) {
            const size_t at = (size_t)x * image->channels + color;
            const int change = sign * (int)*changes++;
            if (image->depth_bits == 8)
                ((uint8_t *)row)[at] = (uint8_t)(((uint8_t *)row)[at] + change);
            else
                ((uint16_t *)row)[at] = (uint16_t)(((uint16_t *)row)[at] + step_16bit * change);
        }
    }
}

/* ---- changes of a row */

ENGINE_CLONES static void row_spread(const float *restrict factors, float amplitude, unsigned colors,
                                     size_t count, float *restrict shares)
{
    if (colors == 1)
        for (size_t x = 0; x < count; x++)
            shares[x] = factors[x] * amplitude;
    else
        for (size_t x = 0; x < count; x++)
            shares[3 * x] = shares[3 * x + 1] = shares[3 * x + 2] = factors[x] * amplitude;
}

ENGINE_CLONES static void units_scale(const int8_t *restrict units, uint8_t octave,
                                      const float *restrict shares, size_t count, float *restrict wanted)
{
    for (size_t i = 0; i < count; i++)
        wanted[i] = unit_value(units[i], octave * octave_ranks) * shares[i];
}

/*
 * Computes the changes of a row in levels, before rounding: the units times their shares and the amplitude,
 * or those of a drawing.
 */
static void row_wanted(const struct protect_plan *plan, uint32_t y)
{
    if (plan->is_flat) {
        flat_row(plan->flat, y, plan->wanted);
        return;
    }
    y = image_stripes_row(&plan->stripes, y);
    visibility_row(&plan->shares, visibility_cell_px, y, plan->changes, plan->levels);
    row_spread(plan->levels, plan->amplitude, plan->colors, plan->row_units / plan->colors, plan->factors);
    for (struct plan_piece piece = plan_piece(plan, y, 0); piece.count > 0;
         piece = plan_piece(plan, y, piece.end))
        units_scale(piece.units, *piece.octave, plan->factors + piece.first, piece.count,
                    plan->wanted + piece.first);
}

/*
 * Returns the nearest change that a sample can have, in steps of the sample. The parameter level is the
 * number of steps in a level.
 */
static inline int change_of(float wanted, float level)
{
    const float steps = wanted * level;
    return (int)(steps < 0 ? steps - .5f : steps + .5f);
}

/*
 * Returns the largest change of a sample in steps: up to the nearer end plus the slack, but within the range.
 */
static inline int change_most(float value, float wanted, float level, float slack)
{
    const float above = 255 - value, near = (value < above ? value : above) + slack;
    const float range = wanted < 0 ? value : above;
    return (int)((near < range ? near : range) * level);
}

/* Returns whether any of the changes exceeds the headroom of its sample. */
ENGINE_CLONES static bool row_exceeds(const float *restrict wanted, const float *restrict levels, float level,
                                      float slack, size_t count)
{
    int exceeds = 0;
    for (size_t i = 0; i < count; i++) {
        const int change = change_of(wanted[i], level);
        exceeds |= (change < 0 ? -change : change) > change_most(levels[i], wanted[i], level, slack);
    }
    return exceeds != 0;
}

/*
 * Lowers units to the largest units whose changes fit the headroom, after moving changes of samples with room
 * by parts. Returns in parts what each change has more than its bound gives it, alike in both directions.
 */
ENGINE_CLONES static void units_fit(int8_t *restrict units, uint8_t octave, const float *restrict shares,
                                    const float *restrict levels, float level, float slack, size_t count,
                                    float *restrict wanted, float *restrict parts)
{
    const int floor_rank = octave * octave_ranks;
    for (size_t i = 0; i < count; i++) {
        const float above = 255 - levels[i], near = levels[i] < above ? levels[i] : above;
        const float size = wanted[i] < 0 ? -wanted[i] : wanted[i], most_alike = near + slack;
        const float moved = wanted[i] - (size <= near ? parts[i] : 0),
                    alike = size < most_alike ? size : most_alike;
        const int most = change_most(levels[i], moved, level, slack);
        const float bound = ((float)most + .5f) / level, moved_size = moved < 0 ? -moved : moved;
        int fits = unit_size((moved_size < bound ? moved_size : bound) / shares[i], floor_rank);
        fits -= fits > 0 && change_of(unit_value(fits, floor_rank) * shares[i], level) > most;
        fits = size > 0 ? fits : 0;
        units[i] = (int8_t)(moved < 0 ? -fits : fits);
        parts[i] = wanted[i] < 0 ? alike : -alike;
        wanted[i] = unit_value(units[i], floor_rank) * shares[i];
        parts[i] += wanted[i];
    }
}

/*
 * Near black and white, changes of one sign are lowered more. The debts of the colours are the sums of this
 * over the rows above. What they do not have in common is a tint. Samples with room for their change in both
 * directions undo it, each by at most a level. So black and white keep their change.
 */
static void piece_fit(const struct protect_plan *plan, const struct plan_piece *piece, size_t count,
                      float *debts)
{
    float parts[3 * plan_piece_px], lowest = *debts, highest = *debts;
    for (unsigned color = 1; color < plan->colors; color++) {
        lowest = fminf(lowest, debts[color]);
        highest = fmaxf(highest, debts[color]);
    }
    const float grey = fmaxf(lowest, 0) + fminf(highest, 0); /* what all colours have */
    for (unsigned color = 0; color < plan->colors; color++) {
        const float part = fmaxf(fminf((debts[color] - grey) / plan_piece_px, 1), -1);
        for (size_t i = color; i < count; i += plan->colors)
            parts[i] = part;
    }
    units_fit(piece->units, *piece->octave, plan->factors + piece->first, plan->levels + piece->first,
              level_steps(plan), 255 * plan->weights->model.slack, count, plan->wanted + piece->first, parts);
    for (size_t i = 0; i < count; i += plan->colors)
        for (unsigned color = 0; color < plan->colors; color++)
            debts[color] += parts[i + color];
}

/* A debt is for as many rows as a piece has columns. Returns whether there is a tint of more than a level in
 * all. */
static bool debts_lower(float *debts, unsigned colors)
{
    float most = 0;
    for (unsigned color = 0; color < colors; color++) {
        debts[color] -= debts[color] / plan_piece_px;
        most = fmaxf(most, fabsf(debts[color] - *debts));
    }
    return most > 1;
}

static void row_fit(const struct protect_plan *plan, uint32_t y)
{
    const float level = level_steps(plan), slack = 255 * plan->weights->model.slack;
    const size_t samples = (size_t)plan->width_px * plan->colors;
    float *debts = plan->debts;
    if (plan->is_flat)
        return;
    for (struct plan_piece piece = plan_piece(plan, y, 0); piece.first < samples;
         piece = plan_piece(plan, y, piece.end), debts += plan->colors) {
        const size_t count = piece.end < samples ? piece.count : samples - piece.first;
        if (debts_lower(debts, plan->colors) ||
            row_exceeds(plan->wanted + piece.first, plan->levels + piece.first, level, slack, count))
            piece_fit(plan, &piece, count, debts);
    }
}

/* Clears values of pixels with alpha 0, which keep their colour. */
static void row_clear_hidden(const struct image *image, const void *row, void *values, size_t pixel_bytes)
{
    for (uint32_t x = 0; image_has_alpha(image) && x < image->width_px; x++)
        if (image_sample(image, row, (size_t)(x + 1) * image->channels - 1) == 0)
            memset((char *)values + x * pixel_bytes, 0, pixel_bytes);
}

/* Rounds changes to whole steps. */
ENGINE_CLONES static void row_rounded(const float *restrict wanted, float level, size_t count,
                                      float *restrict changes)
{
    for (size_t i = 0; i < count; i++)
        changes[i] = (float)change_of(wanted[i], level);
}

ENGINE_CLONES static void row_scale(float *restrict values, float factor, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] *= factor;
}

/* ---- rendering */

static double psnr_of(double error)
{
    const double psnr = error > 0 ? 10 * log10(255.0 * 255.0 / error) : 99;
    return psnr < 99 ? psnr : 99;
}

/* Returns the amplitude that gives a visibility. */
static float amplitude_of(const struct protect_plan *plan, double visibility)
{
    return (float)(255 * visibility / (plan->total + 1e-12));
}

/*
 * A drawing has the wanted changes of other places of its colours. They are alike in form, so the size
 * counts, band by band.
 */
static void share_by_size(struct share_sums *sums, struct share_sums *whole)
{
    memcpy(whole->bounded, whole->form, sizeof whole->bounded);
    for (unsigned at = 0; at < share_octaves; at++)
        for (unsigned kind = 0; kind < share_kinds; kind++) {
            sums->wanted[at][kind] = whole->wanted[at][kind];
            sums->form[at][kind] = sqrt(fmax(sums->squares[at][kind] * whole->wanted[at][kind], 0));
        }
}

/*
 * Ends a run and returns its share of the change that a budget allows. The first run of a plan has the
 * wanted change without limits.
 */
static double share_measured(struct protect_plan *plan, double budget)
{
    const double times = plan->stripes.every > 0 ? (double)plan->height_px / plan->stripes.height_px : 1;
    struct share_sums sums = share_end(&plan->share);
    for (unsigned at = 0; at < share_octaves; at++)
        for (unsigned kind = 0; kind < share_kinds; kind++) {
            sums.form[at][kind] *= times;
            sums.squares[at][kind] = times * sums.squares[at][kind] - plan->coding.squares[at][kind];
        }
    const bool is_first = plan->whole_amplitude <= 0;
    if (is_first) {
        plan->whole = sums;
        plan->whole_amplitude = plan->amplitude;
    }
    struct share_sums whole = plan->whole;
    if (plan->is_flat)
        share_by_size(&sums, &whole);
    const double amplitude = (double)amplitude_of(plan, budget);
    const double share = share_estimate(&sums, amplitude / (double)plan->amplitude, &whole,
                                        amplitude / (double)plan->whole_amplitude);
    if (is_first)
        memcpy(plan->whole.bounded, share_end(&plan->bounded).form, sizeof plan->whole.bounded);
    return share;
}

/* Returns the sum of products of two rows. */
ENGINE_CLONES static double row_product(const float *restrict one, const float *restrict other, size_t count)
{
    float lanes[sum_lanes] = {0};
    double sum = 0;
    for (size_t i = 0; i + sum_lanes <= count; i += sum_lanes)
        for (unsigned k = 0; k < sum_lanes; k++)
            lanes[k] += one[i + k] * other[i + k];
    for (size_t i = count / sum_lanes * sum_lanes; i < count; i++)
        lanes[0] += one[i] * other[i];
    for (unsigned k = 0; k < sum_lanes; k++)
        sum += (double)lanes[k];
    return sum;
}

void change_add(struct protect_plan *plan, struct image *image, enum protect_strength strength, double scale,
                struct protect_report *report)
{
    const size_t samples = (size_t)plan->width_px * plan->colors;
    const double budget = (double)plan->weights->model.budgets[strength],
                 step = 1 / (double)level_steps(plan);
    double intended = 0, shared = 0, changed = 0; /* squares of changes, and products of both */
    plan->amplitude = amplitude_of(plan, scale * budget);
    memset(plan->debts, 0, plan->row_pieces * plan->colors * sizeof *plan->debts);
    const size_t floats = share_floats(plan->width_px, plan->colors);
    share_begin(&plan->share, plan->width_px, plan->colors, plan->share_rows);
    share_begin(&plan->bounded, plan->width_px, plan->colors, plan->share_rows + floats);
    for (uint32_t y = 0; y < plan->height_px; y++) {
        void *row = image_row(image, y);
        row_wanted(plan, y);
        row_clear_hidden(image, row, plan_row(plan, y), plan->colors);
        row_clear_hidden(image, row, plan->wanted, plan->colors * sizeof *plan->wanted);
        intended += row_product(plan->wanted, plan->wanted, samples);
        share_wanted(&plan->share, plan->wanted);
        row_levels(image, row, plan->colors, plan->levels);
        row_fit(plan, y);
        share_wanted(&plan->bounded, plan->wanted);
        row_rounded(plan->wanted, level_steps(plan), samples, plan->changes);
        row_move(plan, image, row, plan->changes, 1);
        shared += step * row_product(plan->wanted, plan->changes, samples);
        changed += step * step * row_product(plan->changes, plan->changes, samples);
        row_scale(plan->changes, (float)step, samples);
        share_change(&plan->share, plan->changes);
        share_change(&plan->bounded, plan->changes);
    }
    report->visibility = budget;
    report->shown = scale * budget * (intended > 0 ? fmin(fmax(shared / intended, 0), 1) : 0);
    report->psnr_db = psnr_of(changed / ((double)samples * plan->height_px));
    report->share = share_measured(plan, budget);
}

void change_undo(const struct protect_plan *plan, struct image *image)
{
    for (uint32_t y = 0; y < plan->height_px; y++) {
        row_wanted(plan, y);
        row_rounded(plan->wanted, level_steps(plan), (size_t)plan->width_px * plan->colors, plan->changes);
        row_move(plan, image, image_row(image, y), plan->changes, -1);
    }
}

const float *change_row(const struct protect_plan *plan, uint32_t y)
{
    row_wanted(plan, y);
    return plan->wanted;
}

void change_stripes(struct protect_plan *plan, struct image_stripes stripes)
{
    plan->stripes = stripes;
}

/* ---- comparison */

ENGINE_CLONES static void row_apart(const float *restrict after, size_t count, float *restrict levels)
{
    for (size_t i = 0; i < count; i++)
        levels[i] = after[i] - levels[i];
}

void change_compare_fini(struct protect_plan *plan)
{
    if (plan->run == NULL)
        return;
    visibility_run_free(plan->run);
    visibility_fini(&plan->visibility);
    plan->run = NULL;
}

enum iw_error change_compare_begin(struct protect_plan *plan, const struct image *image,
                                   struct change_sums *sums)
{
    struct canvas canvas;
    *sums = (struct change_sums){0};
    change_compare_fini(plan);
    canvas_init(&canvas, image, 0);
    share_begin(&plan->share, plan->width_px, plan->colors, plan->share_rows);
    enum iw_error error = visibility_init(&plan->visibility, &plan->weights->model, &canvas);
    if (error != IW_OK)
        return error;
    error = visibility_run_new(&plan->run, &plan->visibility);
    if (error != IW_OK)
        visibility_fini(&plan->visibility);
    return error;
}

void change_compare(struct protect_plan *plan, const struct image *image, uint32_t first_row_px,
                    const struct image *rows, struct change_sums *sums)
{
    const size_t samples = (size_t)image->width_px * plan->colors;
    for (uint32_t y = 0; y < rows->height_px; y++) {
        row_wanted(plan, first_row_px + y);
        row_levels(image, image_row(image, first_row_px + y), plan->colors, plan->levels);
        row_levels(rows, image_row(rows, y), plan->colors, plan->factors);
        row_apart(plan->factors, samples, plan->levels);
        row_clear_hidden(image, image_row(image, first_row_px + y), plan->levels,
                         plan->colors * sizeof *plan->levels);
        sums->squares += row_product(plan->levels, plan->levels, samples);
        share_wanted(&plan->share, plan->wanted);
        share_change(&plan->share, plan->levels);
        sums->samples += (double)samples;
        visibility_run_row(plan->run, plan->levels, image->width_px, plan->colors);
    }
}

void change_compare_end(struct protect_plan *plan, const struct change_sums *sums,
                        struct protect_report *report)
{
    report->share = share_measured(plan, report->visibility);
    report->psnr_db = psnr_of(sums->squares / sums->samples);
    report->shown = visibility_run_end(plan->run);
    change_compare_fini(plan);
}

/* ---- drawings */

/* Measures the change of a drawing: the wanted one, or the one that the scales of the colours give. */
static enum iw_error flat_measure(struct protect_plan *plan, bool is_wanted, double *shown)
{
    const struct visibility_map *means = &plan->visibility.means;
    visibility_run_free(plan->run);
    plan->run = NULL;
    enum iw_error error = visibility_run_new(&plan->run, &plan->visibility);
    if (error != IW_OK) {
        visibility_fini(&plan->visibility);
        return error;
    }
    flat_round(plan->flat, 255 * plan->weights->model.slack);
    for (uint32_t y = 0; y < plan->height_px; y++) {
        row_wanted(plan, y);
        if (!is_wanted) {
            flat_lay(plan->flat, y, plan->wanted);
            flat_row(plan->flat, y, plan->wanted);
        }
        visibility_run_row(plan->run, plan->wanted, plan->width_px, plan->colors);
    }
    *shown = visibility_run_end(plan->run);
    for (uint32_t y = visibility_cell_px / 2; y < plan->height_px; y += visibility_cell_px)
        for (uint32_t x = visibility_cell_px / 2; x < plan->width_px; x += visibility_cell_px)
            flat_seen(
                plan->flat, x, y,
                means->values[(size_t)(y / visibility_cell_px) * means->columns + x / visibility_cell_px]);
    return IW_OK;
}

/* Finds the scales of the colours. The visibility rises in steps, because changes are whole levels. */
static enum iw_error flat_fit(struct protect_plan *plan, double budget, double *shown)
{
    const unsigned flat_tries = 4;
    const double flat_slack = 1.05; /* as that of lossy results */
    enum iw_error error = IW_OK;
    for (unsigned try = 0; error == IW_OK && try < flat_tries; try++) {
        error = flat_measure(plan, false, shown);
        if (error == IW_OK)
            flat_adjust(plan->flat);
    }
    if (error != IW_OK)
        return error;
    flat_choose(plan->flat, 1);
    error = flat_measure(plan, false, shown);
    if (error != IW_OK || *shown <= flat_slack * budget)
        return error;
    flat_choose(plan->flat, budget / *shown);
    return flat_measure(plan, false, shown);
}

/*
 * Measures the budgets of the colours by their wanted changes: whole, and limited to the headroom. With the
 * limited ones, black and white have less left after JPEG than without a form. With the whole ones, a dark
 * red has a butteraugli peak of 5 (clip_fall_scene).
 */
static enum iw_error flat_budgets(struct protect_plan *plan, const struct image *image)
{
    struct change_sums sums;
    double shown = 0;
    enum iw_error error = change_compare_begin(plan, image, &sums);
    if (error == IW_OK)
        error = flat_measure(plan, true, &shown);
    if (error == IW_OK)
        flat_budget(plan->flat);
    change_compare_fini(plan);
    return error;
}

enum iw_error change_flat_new(struct protect_plan *plan, struct image *image, enum protect_strength strength,
                              bool *is_flat, struct protect_report *report)
{
    *is_flat = false;
    if (image->depth_bits != 8)
        return IW_OK;
    enum iw_error error = flat_new(&plan->flat, image);
    if (error != IW_OK || plan->flat == NULL)
        return error;
    plan->amplitude = amplitude_of(plan, (double)plan->weights->model.budgets[strength]);
    error = flat_budgets(plan, image);
    if (error != IW_OK)
        return error;
    change_add(plan, image, strength, 1, report); /* lowers the units to the headroom */
    change_undo(plan, image);
    error = flat_budgets(plan, image);
    if (error != IW_OK)
        return error;
    for (uint32_t y = 0; y < plan->height_px; y++) {
        row_wanted(plan, y);
        flat_sample(plan->flat, y, plan->wanted);
    }
    *is_flat = true;
    return IW_OK;
}

enum iw_error change_flat_form(struct protect_plan *plan, const struct image *image,
                               enum protect_strength strength, unsigned form, double *shown)
{
    const double budget = (double)plan->weights->model.budgets[strength];
    struct change_sums sums;
    plan->is_flat = false;
    flat_begin(plan->flat, form);
    enum iw_error error = change_compare_begin(plan, image, &sums);
    if (error == IW_OK)
        error = flat_fit(plan, budget, shown);
    plan->is_flat = true;
    change_compare_fini(plan);
    return error;
}

void change_flat_end(struct protect_plan *plan)
{
    plan->is_flat = false;
}

void change_coding_end(struct protect_plan *plan, enum protect_strength strength,
                       struct protect_report *report)
{
    report->visibility = (double)plan->weights->model.budgets[strength];
    plan->coding = share_end(&plan->share);
    report->coding = visibility_run_end(plan->run);
    change_compare_fini(plan);
}

double change_psnr(const struct image *left, const struct image *right)
{
    const unsigned colors = image_has_color(left) ? 3 : 1;
    const double level = left->depth_bits == 8 ? 1 : levels_16bit;
    double sum = 0;
    for (uint32_t y = 0; y < left->height_px; y++) {
        const void *one = image_row(left, y), *other = image_row(right, y);
        uint64_t squares = 0;
        for (uint32_t x = 0; x < left->width_px; x++) {
            const size_t alpha = (size_t)(x + 1) * left->channels - 1;
            const bool is_hidden = image_has_alpha(left) && image_sample(left, one, alpha) == 0;
            for (unsigned color = 0; !is_hidden && color < colors; color++) {
                const size_t at = (size_t)x * left->channels + color;
                const int64_t apart = (int64_t)image_sample(left, one, at) - image_sample(right, other, at);
                squares += (uint64_t)(apart * apart);
            }
        }
        sum += (double)squares;
    }
    return psnr_of(sum / (level * level) / ((double)left->width_px * left->height_px * colors));
}
