#include <imgward/protect.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/image.h"
#include "engine/protect_measure.h"
#include "engine/protect_unit.h"

enum {
    delta_peak = 22, /* no sample moves by more levels (of 255) than this: the peak of the strength high */
    room_count = delta_peak + 1,
    histogram_places = room_count * (unit_peak + 1),
    scale_halvings = 40, /* of the bisection */
    scale_peak = 63,     /* where a 127th of the largest unit would move by so many levels */
    step_bits = 30, /* what a unit moves by is its size in steps of 2^-30 levels where samples have 8 bits */
    run_samples = 256, /* counted together */
    clip_samples = 64  /* moved together unless one of them would be clipped */
};

/* Where nothing hides anything, no more than the strength low. */
static const double bare_psnr_db = 40;

/*
 * How much of what is drawn, counted as roots of its size, may be in samples that move by as much as the strength
 * lets any: a share of where nothing hides anything, and so many times as much more as the picture hides.
 * Photographs stay far below; in flat art, where outlines alone hide something, more would be flecks.  Bare
 * pictures have no outlines.
 */
static const double peak_share_bare = 0.1, peak_share_hidden = 2;

struct protect_plan {
    uint32_t width_px, height_px;
    unsigned colors; /* 1 or 3 */
    unsigned depth_bits;
    int peak; /* what no sample moves by more than, in levels of 255 */
    struct unit_hiding hiding;
    double scale; /* of the last protect_render; 0: none */
    /* How many samples of every eighth row at histogram_place; once all are counted, with that room or
     * more. */
    uint64_t histogram[unit_rows][histogram_places];
    int8_t units[]; /* row by row, colors a pixel */
};

/* ---- strengths */

/*
 * What is less strong hides better: flat parts take less.  The peak is what no sample moves by more than, in
 * levels of 255, some four and a half times the root of the mean square.  tools/generator.py has the same
 * ways.
 */
static const struct {
    const char *name;
    double psnr_db;
    int peak;
    struct unit_way way;
} strengths[protect_strength_count] = {
    [PROTECT_LOW] = {"low",
                     40,
                     11,
                     {NETWORK_FAINT, {0.00005f, 0.12f, 0.0012f, 0.0025f}, 0.0185f, 1.65f, 0.985f, 0.007f}},
    [PROTECT_STANDARD] =
        {"standard",
         37,
         16,
         {NETWORK_FAINT, {0.00007f, 0.0688f, 0.001f, 0.00125f}, 0.0206f, 1.728f, 0.995f, 0.0149f}},
    [PROTECT_HIGH] = {"high",
                      34,
                      22,
                      {NETWORK_STRONG, {0.00008f, 0.12f, 0.0014f, 0.0035f}, 0.055f, 1.36f, 0, 0}},
};

double protect_strength_db(enum protect_strength strength)
{
    return strengths[strength].psnr_db;
}

const char *protect_strength_name(enum protect_strength strength)
{
    return strengths[strength].name;
}

bool protect_strength_by_name(const char *name, enum protect_strength *strength)
{
    for (unsigned i = 0; i < protect_strength_count; i++) {
        if (strcmp(name, strengths[i].name) == 0) {
            *strength = (enum protect_strength)i;
            return true;
        }
    }
    return false;
}

/* ---- weights */

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

/* ---- the histogram */

static const int8_t *plan_row(const struct protect_plan *plan, uint32_t y)
{
    return plan->units + (size_t)y * plan->width_px * plan->colors;
}

/* Pixels that cannot be seen are left alone. */
static void units_clear_hidden(struct protect_plan *plan, const struct image *image, uint32_t y)
{
    const void *row = image_row(image, y);
    for (uint32_t x = 0; x < plan->width_px; x++)
        if (sample_at(image, row, (size_t)x * image->channels + plan->colors) == 0)
            memset(plan->units + ((size_t)y * plan->width_px + x) * plan->colors, 0, plan->colors);
}

/* room: levels to the end of the range towards which the unit moves the sample. */
static inline int histogram_place(int room, int unit)
{
    return (room < delta_peak ? room : delta_peak) * (unit_peak + 1) + (unit < 0 ? -unit : unit);
}

static void histogram_add(struct protect_plan *plan, const struct image *image, uint32_t y)
{
    const void *row = image_row(image, y);
    const int8_t *units = plan_row(plan, y);
    unsigned top = image->depth_bits == 8 ? 255 : 65535, level = image->depth_bits == 8 ? 1 : levels_16bit;
    for (uint32_t x = 0; x < plan->width_px; x++) {
        for (unsigned color = 0; color < plan->colors; color++) {
            int unit = *units++;
            unsigned sample = sample_at(image, row, (size_t)x * image->channels + color);
            unsigned room = (unit > 0 ? top - sample : sample) / level;
            plan->histogram[y % unit_rows][histogram_place((int)room, unit)]++;
        }
    }
}

/* Where in the histogram 8-bit samples count. */
ENGINE_CLONES static void places_find(const uint8_t *samples, const int8_t *units, size_t count,
                                      uint16_t *places)
{
    for (size_t i = 0; i < count; i++) {
        int unit = units[i], room = unit > 0 ? 255 - samples[i] : samples[i];
        places[i] = (uint16_t)histogram_place(room, unit);
    }
}

/*
 * The same for 8-bit samples without alpha, the usual case.  Every other sample
 * counts elsewhere, so that one need not wait for the same count by the one before.
 */
static void histogram_add8(struct protect_plan *plan, const uint8_t *samples, uint32_t y, uint64_t *others)
{
    const int8_t *units = plan_row(plan, y);
    const size_t count = (size_t)plan->width_px * plan->colors;
    uint64_t *histogram = plan->histogram[y % unit_rows];
    uint16_t places[run_samples];
    for (size_t first = 0; first < count; first += run_samples) {
        const size_t here = count - first < run_samples ? count - first : run_samples;
        places_find(samples + first, units + first, here, places);
        for (size_t i = 0; i + 1 < here; i += 2) {
            histogram[places[i]]++;
            others[places[i + 1]]++;
        }
        if (here % 2 != 0)
            histogram[places[here - 1]]++;
    }
}

/* Counts of a room become counts of that room or more. */
static void histogram_add_up(uint64_t *histogram)
{
    for (int room = delta_peak - 1; room >= 0; room--)
        for (int unit = 0; unit <= unit_peak; unit++)
            histogram[histogram_place(room, unit)] += histogram[histogram_place(room + 1, unit)];
}

static void plan_count(struct protect_plan *plan, const struct image *image, uint32_t first_row)
{
    uint64_t others[histogram_places] = {0}, *histogram = plan->histogram[first_row];
    for (uint32_t y = first_row; y < image->height_px; y += unit_rows) {
        if (image_has_alpha(image))
            units_clear_hidden(plan, image, y);
        if (sample_is_plain8(image))
            histogram_add8(plan, image_row(image, y), y, others);
        else
            histogram_add(plan, image, y);
    }
    for (unsigned place = 0; place < histogram_places; place++)
        histogram[place] += others[place];
    histogram_add_up(histogram);
}

enum iw_error protect_plan_new(struct protect_plan **plan, const struct protect *protect,
                               const struct image *image, enum protect_strength strength, uint64_t seed)
{
    unsigned colors = image_has_color(image) ? 3 : 1;
    size_t samples = (size_t)image->width_px * image->height_px * colors;
    struct protect_plan *new = calloc(1, sizeof *new + samples + (size_t)image->width_px *colors);
    if (new == NULL)
        return IW_NO_MEMORY;
    new->width_px = image->width_px;
    new->height_px = image->height_px;
    new->colors = colors;
    new->depth_bits = image->depth_bits;
    new->peak = strengths[strength].peak;
    enum iw_error error =
        unit_compute(&protect->net, image, &strengths[strength].way, seed, new->units, &new->hiding);
    if (error != IW_OK) {
        free(new);
        return error;
    }
    for (uint32_t first_row = 0; first_row < unit_rows; first_row++)
        plan_count(new, image, first_row);
    *plan = new;
    return IW_OK;
}

void protect_plan_free(struct protect_plan *plan)
{
    free(plan);
}

/* ---- scale */

/*
 * Rounded as everywhere where 8-bit samples are moved: in whole numbers, the same in every loop.  A mantissa
 * times the most steps has less than 30 bits, so that what it takes for the size of 0 comes to nothing.
 */
static inline int delta_of8(int size, int odd, int steps, int peak)
{
    int delta = ((unit_mantissa(size, odd) * steps >> (step_bits - 1 - unit_octave(size))) + 1) >> 1;
    return delta < peak ? delta : peak;
}

/* At scale 1 the largest unit moves by unit_peak levels. */
static int steps_of(double scale)
{
    return (int)(fmin(scale, scale_peak) * unit_peak / unit_peak_size * (1 << step_bits) + 0.5);
}

/* What a unit of a row becomes, in levels of 255; rounded where the samples are. */
static double delta_of(const struct protect_plan *plan, int size, int odd, double scale)
{
    if (plan->depth_bits == 8)
        return delta_of8(size, odd, steps_of(scale), plan->peak);
    double share = size > 0 ? (double)(unit_mantissa(size, odd) << unit_octave(size)) / unit_peak_size : 0;
    return fmin(share * unit_peak * scale, plan->peak);
}

/* What the largest unit that fits into each room becomes: what a sample moves by that would be clipped. */
static void fitting_fill(const double deltas[unit_peak + 1], double fitting[room_count])
{
    int unit = 0;
    for (unsigned room = 0; room < room_count; room++) {
        while (unit < unit_peak && deltas[unit + 1] <= room)
            unit++;
        fitting[room] = deltas[unit];
    }
}

/* The sum of squared errors of every eighth row. */
static double rows_squares(const struct protect_plan *plan, uint32_t first_row, double scale)
{
    double squares = 0, deltas[unit_peak + 1], fitting[room_count];
    for (int unit = 0; unit <= unit_peak; unit++)
        deltas[unit] = delta_of(plan, unit, unit_odd(first_row), scale);
    fitting_fill(deltas, fitting);
    for (int unit = 1; unit <= unit_peak; unit++) {
        double before = 0;
        for (int room = 0; room < room_count && before < deltas[unit]; room++) {
            double moved = fmin(deltas[unit], fitting[room]);
            double more = moved * moved - before * before;
            squares += (double)plan->histogram[first_row][histogram_place(room, unit)] * more;
            before = moved;
        }
    }
    return squares;
}

static double plan_squares(const struct protect_plan *plan, double scale)
{
    double squares = 0;
    for (uint32_t first_row = 0; first_row < unit_rows; first_row++)
        squares += rows_squares(plan, first_row, scale);
    return squares;
}

/* The share that is bounded, of samples that would move so far if they had room; it rises with the
 * scale. */
static double plan_share_at_peak(const struct protect_plan *plan, double scale)
{
    double all = 0, at_peak = 0;
    for (uint32_t row = 0; row < unit_rows; row++) {
        for (int unit = 1; unit <= unit_peak; unit++) {
            const int odd = unit_odd(row);
            const double roots = (double)plan->histogram[row][histogram_place(0, unit)] *
                                 sqrt(unit_mantissa(unit, odd) << unit_octave(unit));
            all += roots;
            at_peak += delta_of(plan, unit, odd, scale) >= plan->peak ? roots : 0;
        }
    }
    return all > 0 ? at_peak / all : 0;
}

/* How many samples are counted, those that cannot move as well. */
static double plan_samples(const struct protect_plan *plan)
{
    return (double)plan->width_px * plan->height_px * plan->colors;
}

/* Mean square error in levels of 255. */
static double plan_error(const struct protect_plan *plan, double scale)
{
    return plan_squares(plan, scale) / plan_samples(plan);
}

static bool scale_is_too_much(const struct protect_plan *plan, double scale, double wanted)
{
    const double share_max = peak_share_bare + peak_share_hidden * plan->hiding.mean;
    return plan_squares(plan, scale) > wanted * plan_samples(plan) ||
           (!plan->hiding.is_bare && plan_share_at_peak(plan, scale) > share_max);
}

double protect_plan_psnr(const struct protect_plan *plan, double scale)
{
    return measure_psnr(plan_error(plan, scale));
}

double protect_plan_scale(const struct protect_plan *plan, double psnr_db, bool *is_limited)
{
    double given_db = plan->hiding.is_bare ? fmax(psnr_db, bare_psnr_db) : psnr_db;
    double wanted = 255.0 * 255.0 / pow(10, given_db / 10);
    double low = 0, high = scale_peak;
    for (unsigned step = 0; step < scale_halvings; step++) {
        double middle = (low + high) / 2;
        if (scale_is_too_much(plan, middle, wanted))
            high = middle;
        else
            low = middle;
    }
    /* The error moves in steps where few units differ: take the nearer side. */
    double below = plan_error(plan, low), above = plan_error(plan, high);
    double scale = below > 0 && above / wanted > wanted / below ? low : high;
    if (is_limited != NULL)
        *is_limited = protect_plan_psnr(plan, scale) > psnr_db + 0.3;
    return scale;
}

/* ---- pixels */

/* What each unit of a row adds to a sample, -unit_peak..unit_peak from the middle on. */
struct deltas {
    int values[2 * unit_peak + 1];
    int odd, steps, peak;        /* where samples have 8 bits: what delta_of8 takes */
    uint8_t fitting[room_count]; /* there: the largest unit that fits into each room */
};

static void deltas_fill_row(const struct protect_plan *plan, double scale, int odd, struct deltas *deltas)
{
    deltas->odd = odd;
    deltas->steps = steps_of(scale);
    deltas->peak = plan->peak;
    for (int unit = 0; unit <= unit_peak; unit++) {
        double delta = delta_of(plan, unit, odd, scale);
        int rounded = (int)lrint(plan->depth_bits == 8 ? delta : delta * levels_16bit);
        deltas->values[unit_peak + unit] = rounded;
        deltas->values[unit_peak - unit] = -rounded;
    }
    for (int room = 0, unit = 0; room < room_count; room++) {
        while (unit < unit_peak && delta_of8(unit + 1, odd, deltas->steps, deltas->peak) <= room)
            unit++;
        deltas->fitting[room] = (uint8_t)unit;
    }
}

static void deltas_fill(const struct protect_plan *plan, double scale, struct deltas deltas[unit_rows])
{
    for (uint32_t y = 0; y < unit_rows; y++)
        deltas_fill_row(plan, scale, unit_odd(y), &deltas[y]);
}

static int unit_delta(const struct deltas *deltas, int unit)
{
    return deltas->values[unit_peak + unit];
}

/*
 * A sample moved by its unit.  Where it would be clipped, the unit is made
 * smaller until it fits: so that undo is exact.
 */
static int sample_moved(const struct deltas *deltas, int sample, int8_t *unit, int top)
{
    int moved = sample + unit_delta(deltas, *unit);
    while (moved < 0 || moved > top) {
        *unit = (int8_t)(*unit - (*unit > 0 ? 1 : -1));
        moved = sample + unit_delta(deltas, *unit);
    }
    return moved;
}

static void row_render_any(const struct protect_plan *plan, const struct image *image, void *row,
                           int8_t *units, const struct deltas *deltas)
{
    for (uint32_t x = 0; x < plan->width_px; x++) {
        for (unsigned color = 0; color < plan->colors; color++, units++) {
            size_t at = (size_t)x * image->channels + color;
            if (plan->depth_bits == 8)
                ((uint8_t *)row)[at] = (uint8_t)sample_moved(deltas, ((uint8_t *)row)[at], units, 255);
            else
                ((uint16_t *)row)[at] = (uint16_t)sample_moved(deltas, ((uint16_t *)row)[at], units, 65535);
        }
    }
}

/* Samples moved by their units, any of which may leave the range: false when one does. */
ENGINE_CLONES static bool samples_moved8(const uint8_t *samples, const int8_t *units, size_t count,
                                         const struct deltas *deltas, uint8_t *moved)
{
    const int odd = deltas->odd, steps = deltas->steps, peak = deltas->peak;
    int all = 0;
    for (size_t i = 0; i < count; i++) {
        int delta = delta_of8(units[i] < 0 ? -units[i] : units[i], odd, steps, peak);
        int value = samples[i] + (units[i] < 0 ? -delta : delta);
        moved[i] = (uint8_t)value;
        all |= value;
    }
    return (all & ~255) == 0;
}

/* What sample_moved does, for clip_samples at most: but for looking up what fits in whole vectors. */
ENGINE_CLONES static void samples_fitted8(uint8_t *restrict samples, int8_t *restrict units, size_t count,
                                          const struct deltas *deltas)
{
    uint8_t most[clip_samples];
    const int odd = deltas->odd, steps = deltas->steps, peak = deltas->peak;
    for (size_t i = 0; i < count; i++) {
        int room = units[i] < 0 ? samples[i] : 255 - samples[i];
        most[i] = (uint8_t)(room < delta_peak ? room : delta_peak);
    }
    for (size_t i = 0; i < count; i++)
        most[i] = deltas->fitting[most[i]];
    for (size_t i = 0; i < count; i++) {
        int unit = units[i], size = unit < 0 ? -unit : unit;
        size = size < most[i] ? size : most[i];
        int delta = delta_of8(size, odd, steps, peak);
        units[i] = (int8_t)(unit < 0 ? -size : size);
        samples[i] = (uint8_t)(samples[i] + (unit < 0 ? -delta : delta));
    }
}

/* 8-bit samples without alpha: many at once where none would be clipped. */
static void row_render8(uint8_t *samples, int8_t *units, size_t count, const struct deltas *deltas)
{
    uint8_t moved[clip_samples];
    for (size_t first = 0; first < count; first += clip_samples) {
        const size_t here = count - first < clip_samples ? count - first : clip_samples;
        if (samples_moved8(samples + first, units + first, here, deltas, moved))
            memcpy(samples + first, moved, here);
        else
            samples_fitted8(samples + first, units + first, here, deltas);
    }
}

static void row_render(const struct protect_plan *plan, const struct image *image, void *row, int8_t *units,
                       const struct deltas *deltas)
{
    if (sample_is_plain8(image))
        row_render8(row, units, (size_t)plan->width_px * plan->colors, deltas);
    else
        row_render_any(plan, image, row, units, deltas);
}

void protect_render(struct protect_plan *plan, struct image *image, double scale)
{
    struct deltas deltas[unit_rows];
    size_t count = (size_t)plan->width_px * plan->colors;
    plan->scale = scale;
    deltas_fill(plan, scale, deltas);
    for (uint32_t y = 0; y < plan->height_px; y++)
        row_render(plan, image, image_row(image, y), plan->units + y * count, &deltas[y % unit_rows]);
}

void protect_preview(struct protect_plan *plan, double scale, uint32_t first_row_px, struct image *strip)
{
    struct deltas deltas[unit_rows];
    size_t count = (size_t)plan->width_px * plan->colors;
    int8_t *units = plan->units + plan->height_px * count;
    deltas_fill(plan, scale, deltas);
    for (uint32_t y = 0; y < strip->height_px; y++) {
        memcpy(units, plan_row(plan, first_row_px + y), count);
        row_render(plan, strip, image_row(strip, y), units, &deltas[(first_row_px + y) % unit_rows]);
    }
}

static void row_undo(const struct protect_plan *plan, const struct image *image, void *row,
                     const int8_t *units, const struct deltas *deltas)
{
    for (uint32_t x = 0; x < plan->width_px; x++) {
        for (unsigned color = 0; color < plan->colors; color++, units++) {
            size_t at = (size_t)x * image->channels + color;
            if (plan->depth_bits == 8)
                ((uint8_t *)row)[at] = (uint8_t)(((uint8_t *)row)[at] - unit_delta(deltas, *units));
            else
                ((uint16_t *)row)[at] = (uint16_t)(((uint16_t *)row)[at] - unit_delta(deltas, *units));
        }
    }
}

/* What samples_moved8 undoes. */
ENGINE_CLONES static void row_undo8(uint8_t *samples, const int8_t *units, size_t count,
                                    const struct deltas *deltas)
{
    const int odd = deltas->odd, steps = deltas->steps, peak = deltas->peak;
    for (size_t i = 0; i < count; i++) {
        int delta = delta_of8(units[i] < 0 ? -units[i] : units[i], odd, steps, peak);
        samples[i] = (uint8_t)(samples[i] - (units[i] < 0 ? -delta : delta));
    }
}

void protect_undo(const struct protect_plan *plan, struct image *image)
{
    struct deltas deltas[unit_rows];
    deltas_fill(plan, plan->scale, deltas);
    for (uint32_t y = 0; y < plan->height_px; y++) {
        const struct deltas *here = &deltas[y % unit_rows];
        if (sample_is_plain8(image))
            row_undo8(image_row(image, y), plan_row(plan, y), (size_t)plan->width_px * plan->colors, here);
        else
            row_undo(plan, image, image_row(image, y), plan_row(plan, y), here);
    }
}

enum iw_error protect_apply(const struct protect *protect, struct image *image,
                            enum protect_strength strength, uint64_t seed, struct protect_report *report)
{
    struct protect_plan *plan = NULL;
    enum iw_error error = protect_plan_new(&plan, protect, image, strength, seed);
    if (error != IW_OK)
        return error;
    report->target_db = protect_strength_db(strength);
    report->scale = protect_plan_scale(plan, report->target_db, &report->is_limited);
    report->psnr_db = protect_plan_psnr(plan, report->scale);
    protect_render(plan, image, report->scale);
    protect_plan_free(plan);
    return IW_OK;
}
