#include <imgward/protect.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/image.h"
#include "engine/protect_canvas.h"
#include "engine/protect_net.h"

enum {
    unit_peak = 127, /* the unit perturbation is kept as -127..127 */
    delta_peak = 63, /* no sample moves by more levels (of 255) than this */
    room_count = delta_peak + 1,
    histogram_places = room_count * (unit_peak + 1),
    levels_16bit = 257,  /* steps of 16 bits in one level of 8 bits */
    scale_halvings = 40, /* of the bisection */
    step_bits = 16,      /* a scale is counted in steps of 2^-16 levels where samples have 8 bits */
    run_samples = 256,   /* counted together */
    clip_samples = 64    /* moved together unless one of them would be clipped */
};

/* Where nothing hides anything, no more than the strength low. */
static const double bare_psnr_db = 40;

struct protect_plan {
    uint32_t width_px, height_px;
    unsigned colors; /* 1 or 3 */
    unsigned depth_bits;
    bool is_bare;                         /* nowhere any texture that would hide something */
    double scale;                         /* of the last protect_render; 0: none */
    uint64_t histogram[histogram_places]; /* how many samples at histogram_place */
    int8_t units[];                       /* row by row, colors a pixel */
};

/* ---- strengths */

static const struct {
    const char *name;
    double psnr_db;
} strengths[protect_strength_count] = {
    [PROTECT_LOW] = {"low", 40},
    [PROTECT_STANDARD] = {"standard", 37},
    [PROTECT_HIGH] = {"high", 34},
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

/* ---- the unit perturbation */

enum { run_values = net_block_px * canvas_colors }; /* of one row of a block's pixels */

/* What the network's source and sink share. */
struct job {
    struct canvas canvas;
    const float *mask;
    float *pixels;  /* one row of a band */
    float *bounded; /* one row of a band's blocks */
    struct protect_plan *plan;
};

static void job_source(void *data, int64_t row, int64_t first, unsigned count, float *values)
{
    struct job *job = data;
    for (unsigned i = 0; i < net_block_px; i++) {
        canvas_pixels(&job->canvas, row * net_block_px + i, first * net_block_px,
                      (size_t)count * net_block_px, job->pixels);
        for (unsigned block = 0; block < count; block++) {
            const float *pixels = job->pixels + (size_t)block * run_values;
            float *out = values + (size_t)block * net_input_channels + (size_t)i * run_values;
            for (unsigned k = 0; k < run_values; k++)
                out[k] = pixels[k] - 0.5f;
        }
    }
    for (unsigned block = 0; block < count; block++)
        canvas_noise(&job->canvas, row, first + block,
                     values + (size_t)block * net_input_channels + net_color_values);
}

/* Raw values of any size as -1..1. */
ENGINE_CLONES static void values_bounded(const float *raw, size_t count, float *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = raw[i] / sqrtf(1 + raw[i] * raw[i]);
}

/* How much of its own, its left and its right block's mask the colours of a block's four pixels take. */
static const float own_weights[run_values] = {.625f, .625f, .625f, .875f, .875f, .875f,
                                              .875f, .875f, .875f, .625f, .625f, .625f};
static const float left_weights[run_values] = {.375f, .375f, .375f, .125f, .125f, .125f};
static const float right_weights[run_values] = {0, 0, 0, 0, 0, 0, .125f, .125f, .125f, .375f, .375f, .375f};

/* One row of pixels out of a row of blocks, times the mask: between here and there, and between blocks. */
ENGINE_CLONES static void pixels_masked(const float *bounded, const float *here, const float *there,
                                        float weight, unsigned count, float *out)
{
    float left = here[-1] * weight + there[-1] * (1 - weight),
          own = here[0] * weight + there[0] * (1 - weight);
    for (unsigned block = 0; block < count; block++) {
        float right = here[block + 1] * weight + there[block + 1] * (1 - weight);
        for (unsigned k = 0; k < run_values; k++)
            out[block * run_values + k] =
                bounded[(size_t)block * net_color_values + k] *
                (own * own_weights[k] + left * left_weights[k] + right * right_weights[k]);
        left = own;
        own = right;
    }
}

/* The perturbation of a grey picture is the luma of the three colours'. */
static void pixels_to_grey(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = 0.299f * values[3 * i] + 0.587f * values[3 * i + 1] + 0.114f * values[3 * i + 2];
}

ENGINE_CLONES static void units_store(const float *values, size_t count, int8_t *units)
{
    for (size_t i = 0; i < count; i++) {
        float value = values[i] * unit_peak;
        units[i] = (int8_t)(int)(value + (value < 0 ? -0.5f : 0.5f));
    }
}

static void job_sink(void *data, int64_t row, int64_t first, unsigned count, const float *values)
{
    const struct job *job = data;
    struct protect_plan *plan = job->plan;
    size_t stride = job->canvas.columns + 2;
    const float *here = job->mask + (size_t)(row + 1) * stride + first + 1;
    int64_t x = first * net_block_px - job->canvas.left_px;
    int64_t begin = x < 0 ? 0 : x, end = x + (int64_t)count * net_block_px;
    end = end < plan->width_px ? end : plan->width_px;
    values_bounded(values, (size_t)count * net_color_values, job->bounded);
    for (unsigned i = 0; i < net_block_px; i++) {
        int64_t y = row * net_block_px + i - job->canvas.top_px;
        if (y < 0 || y >= plan->height_px || begin >= end)
            continue;
        pixels_masked(job->bounded + i * run_values, here,
                      i < net_block_px / 2 ? here - stride : here + stride, own_weights[i * canvas_colors],
                      count, job->pixels);
        if (plan->colors == 1)
            pixels_to_grey(job->pixels, (size_t)count * net_block_px);
        units_store(job->pixels + (size_t)(begin - x) * plan->colors, (size_t)(end - begin) * plan->colors,
                    plan->units + ((size_t)y * plan->width_px + (size_t)begin) * plan->colors);
    }
}

/* ---- the histogram */

static const int8_t *plan_row(const struct protect_plan *plan, uint32_t y)
{
    return plan->units + (size_t)y * plan->width_px * plan->colors;
}

static unsigned sample_at(const struct image *image, const void *row, size_t at)
{
    return image->depth_bits == 8 ? ((const uint8_t *)row)[at] : ((const uint16_t *)row)[at];
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
            plan->histogram[histogram_place((int)room, unit)]++;
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
    uint16_t places[run_samples];
    for (size_t first = 0; first < count; first += run_samples) {
        const size_t here = count - first < run_samples ? count - first : run_samples;
        places_find(samples + first, units + first, here, places);
        for (size_t i = 0; i + 1 < here; i += 2) {
            plan->histogram[places[i]]++;
            others[places[i + 1]]++;
        }
        if (here % 2 != 0)
            plan->histogram[places[here - 1]]++;
    }
}

/*
 * True when all but one in two hundred blocks, and their neighbours, spread by
 * less than about half a level: a picture of one colour, or of none to speak of.
 */
static bool mask_is_bare(const float *mask, size_t count)
{
    static const float bare = 0.227f;
    size_t textured = 0;
    for (size_t i = 0; i < count; i++)
        textured += mask[i] > bare;
    return textured * 200 < count;
}

static bool image_is_plain8(const struct image *image)
{
    return image->depth_bits == 8 && !image_has_alpha(image);
}

static void plan_count(struct protect_plan *plan, const struct image *image)
{
    uint64_t others[histogram_places] = {0};
    for (uint32_t y = 0; y < image->height_px; y++) {
        if (image_has_alpha(image))
            units_clear_hidden(plan, image, y);
        if (image_is_plain8(image))
            histogram_add8(plan, image_row(image, y), y, others);
        else
            histogram_add(plan, image, y);
    }
    for (unsigned place = 0; place < histogram_places; place++)
        plan->histogram[place] += others[place];
}

enum iw_error protect_plan_new(struct protect_plan **plan, const struct protect *protect,
                               const struct image *image, uint64_t seed)
{
    unsigned colors = image_has_color(image) ? 3 : 1;
    size_t samples = (size_t)image->width_px * image->height_px * colors;
    struct protect_plan *new = malloc(sizeof *new + samples + (size_t)image->width_px *colors);
    struct job job = {.plan = new};
    canvas_init(&job.canvas, image, seed);
    float *mask = canvas_mask(&job.canvas);
    job.mask = mask;
    size_t row_blocks = job.canvas.columns + (size_t)net_margin_blocks;
    job.pixels = malloc(sizeof(float) * row_blocks * (run_values + net_color_values));
    job.bounded = job.pixels != NULL ? job.pixels + row_blocks * run_values : NULL;
    enum iw_error error = IW_NO_MEMORY;
    if (new != NULL && mask != NULL &&job.pixels != NULL) {
        memset(new, 0, sizeof *new);
        new->width_px = image->width_px;
        new->height_px = image->height_px;
        new->colors = colors;
        new->depth_bits = image->depth_bits;
        new->is_bare = mask_is_bare(mask, (size_t)(job.canvas.rows + 2) * (job.canvas.columns + 2));
        error = net_run(&protect->net, job.canvas.rows, job.canvas.columns, job_source, job_sink, &job);
    }
    free(job.pixels);
    free(mask);
    if (error != IW_OK) {
        free(new);
        return error;
    }
    plan_count(new, image);
    *plan = new;
    return IW_OK;
}

void protect_plan_free(struct protect_plan *plan)
{
    free(plan);
}

/* ---- scale */

/* Rounded as everywhere where 8-bit samples are moved: in whole numbers, the same in every loop. */
static inline int delta_of8(int unit, int steps)
{
    int delta = (unit * steps + (1 << (step_bits - 1))) >> step_bits;
    return delta < delta_peak ? delta : delta_peak;
}

static int steps_of(double scale)
{
    return (int)(scale * (1 << step_bits) + 0.5);
}

/* What a unit becomes, in levels of 255; rounded where the samples are. */
static double delta_of(const struct protect_plan *plan, unsigned unit, double scale)
{
    if (plan->depth_bits == 8)
        return delta_of8((int)unit, steps_of(scale));
    return fmin(unit * scale, delta_peak);
}

/* Mean square error in levels of 255. */
static double plan_error(const struct protect_plan *plan, double scale)
{
    double sum = 0;
    for (unsigned unit = 1; unit <= unit_peak; unit++) {
        double delta = delta_of(plan, unit, scale);
        for (unsigned room = 0; room < room_count; room++) {
            double moved = delta < room ? delta : room;
            sum += (double)plan->histogram[room * (unit_peak + 1) + unit] * moved * moved;
        }
    }
    return sum / ((double)plan->width_px * plan->height_px * plan->colors);
}

static double psnr_of(double error)
{
    double psnr = error > 0 ? 10 * log10(255.0 * 255.0 / error) : 99;
    return psnr < 99 ? psnr : 99;
}

double protect_plan_psnr(const struct protect_plan *plan, double scale)
{
    return psnr_of(plan_error(plan, scale));
}

double protect_plan_scale(const struct protect_plan *plan, double psnr_db, bool *is_limited)
{
    double given_db = plan->is_bare ? fmax(psnr_db, bare_psnr_db) : psnr_db;
    double wanted = 255.0 * 255.0 / pow(10, given_db / 10);
    double low = 0, high = delta_peak;
    for (unsigned step = 0; step < scale_halvings; step++) {
        double middle = (low + high) / 2;
        if (plan_error(plan, middle) > wanted)
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

/* What each unit adds to a sample, -unit_peak..unit_peak from the middle on. */
struct deltas {
    int values[2 * unit_peak + 1];
    int steps; /* where samples have 8 bits: what delta_of8 takes */
};

static void deltas_fill(const struct protect_plan *plan, double scale, struct deltas *deltas)
{
    deltas->steps = steps_of(scale);
    for (int unit = 0; unit <= unit_peak; unit++) {
        double delta = delta_of(plan, (unsigned)unit, scale);
        int rounded = (int)lrint(plan->depth_bits == 8 ? delta : delta * levels_16bit);
        deltas->values[unit_peak + unit] = rounded;
        deltas->values[unit_peak - unit] = -rounded;
    }
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
ENGINE_CLONES static bool samples_moved8(const uint8_t *samples, const int8_t *units, size_t count, int steps,
                                         uint8_t *moved)
{
    int all = 0;
    for (size_t i = 0; i < count; i++) {
        int delta = delta_of8(units[i] < 0 ? -units[i] : units[i], steps);
        int value = samples[i] + (units[i] < 0 ? -delta : delta);
        moved[i] = (uint8_t)value;
        all |= value;
    }
    return (all & ~255) == 0;
}

/*
 * What sample_moved does, for whole vectors.  The most that fits into the room is
 * guessed by the inverse of the steps and put right where it is one off.
 */
ENGINE_CLONES static void samples_fitted8(uint8_t *restrict samples, int8_t *restrict units, size_t count,
                                          int steps)
{
    const float inverse = 1 / (float)steps;
    const int half = 1 << (step_bits - 1);
    for (size_t i = 0; i < count; i++) {
        int unit = units[i], size = unit < 0 ? -unit : unit, room = unit < 0 ? samples[i] : 255 - samples[i];
        int bounded = room < delta_peak ? room : delta_peak;
        int most = (int)((float)((bounded << step_bits) + half - 1) * inverse);
        most = most < unit_peak ? most : unit_peak;
        most += ((most + 1) * steps + half) >> step_bits <= bounded ? 1 : 0;
        most -= (most * steps + half) >> step_bits > bounded ? 1 : 0;
        most = room < delta_peak && most < size ? most : size;
        int delta = delta_of8(most, steps);
        units[i] = (int8_t)(unit < 0 ? -most : most);
        samples[i] = (uint8_t)(samples[i] + (unit < 0 ? -delta : delta));
    }
}

/* 8-bit samples without alpha: many at once where none would be clipped. */
static void row_render8(uint8_t *samples, int8_t *units, size_t count, const struct deltas *deltas)
{
    uint8_t moved[clip_samples];
    for (size_t first = 0; first < count; first += clip_samples) {
        const size_t here = count - first < clip_samples ? count - first : clip_samples;
        if (samples_moved8(samples + first, units + first, here, deltas->steps, moved))
            memcpy(samples + first, moved, here);
        else
            samples_fitted8(samples + first, units + first, here, deltas->steps);
    }
}

static void row_render(const struct protect_plan *plan, const struct image *image, void *row, int8_t *units,
                       const struct deltas *deltas)
{
    if (image_is_plain8(image))
        row_render8(row, units, (size_t)plan->width_px * plan->colors, deltas);
    else
        row_render_any(plan, image, row, units, deltas);
}

void protect_render(struct protect_plan *plan, struct image *image, double scale)
{
    struct deltas deltas;
    size_t count = (size_t)plan->width_px * plan->colors;
    plan->scale = scale;
    deltas_fill(plan, scale, &deltas);
    for (uint32_t y = 0; y < plan->height_px; y++)
        row_render(plan, image, image_row(image, y), plan->units + y * count, &deltas);
}

void protect_preview(struct protect_plan *plan, double scale, uint32_t first_row_px, struct image *strip)
{
    struct deltas deltas;
    size_t count = (size_t)plan->width_px * plan->colors;
    int8_t *units = plan->units + plan->height_px * count;
    deltas_fill(plan, scale, &deltas);
    for (uint32_t y = 0; y < strip->height_px; y++) {
        memcpy(units, plan_row(plan, first_row_px + y), count);
        row_render(plan, strip, image_row(strip, y), units, &deltas);
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
ENGINE_CLONES static void row_undo8(uint8_t *samples, const int8_t *units, size_t count, int steps)
{
    for (size_t i = 0; i < count; i++) {
        int delta = delta_of8(units[i] < 0 ? -units[i] : units[i], steps);
        samples[i] = (uint8_t)(samples[i] - (units[i] < 0 ? -delta : delta));
    }
}

void protect_undo(const struct protect_plan *plan, struct image *image)
{
    struct deltas deltas;
    deltas_fill(plan, plan->scale, &deltas);
    for (uint32_t y = 0; y < plan->height_px; y++) {
        if (image_is_plain8(image))
            row_undo8(image_row(image, y), plan_row(plan, y), (size_t)plan->width_px * plan->colors,
                      deltas.steps);
        else
            row_undo(plan, image, image_row(image, y), plan_row(plan, y), &deltas);
    }
}

/* ---- measuring */

/* The sum of squared differences of at most 65536 samples of 8 bits. */
ENGINE_CLONES static uint32_t samples_apart8(const uint8_t *left, const uint8_t *right, size_t count)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        int difference = left[i] - right[i];
        sum += (uint32_t)(difference * difference);
    }
    return sum;
}

static uint64_t row_apart8(const uint8_t *left, const uint8_t *right, size_t count)
{
    enum { most = 65536 };
    uint64_t sum = 0;
    for (size_t first = 0; first < count; first += most)
        sum += samples_apart8(left + first, right + first, count - first < most ? count - first : most);
    return sum;
}

static uint64_t row_apart(const struct image *left, const struct image *right, uint32_t y)
{
    const void *one = image_row(left, y), *other = image_row(right, y);
    unsigned colors = image_has_color(left) ? 3 : 1;
    uint64_t sum = 0;
    for (uint32_t x = 0; x < left->width_px; x++) {
        for (unsigned color = 0; color < colors; color++) {
            size_t at = (size_t)x * left->channels + color;
            int64_t difference = (int64_t)sample_at(left, one, at) - sample_at(right, other, at);
            sum += (uint64_t)(difference * difference);
        }
    }
    return sum;
}

double protect_psnr(const struct image *left, const struct image *right)
{
    unsigned colors = image_has_color(left) ? 3 : 1;
    double sum = 0, level = left->depth_bits == 8 ? 1 : levels_16bit;
    for (uint32_t y = 0; y < left->height_px; y++)
        sum += (double)(image_is_plain8(left) ? row_apart8(image_row(left, y), image_row(right, y),
                                                           (size_t)left->width_px * colors)
                                              : row_apart(left, right, y));
    return psnr_of(sum / (level * level) / ((double)left->width_px * left->height_px * colors));
}

enum iw_error protect_apply(const struct protect *protect, struct image *image,
                            enum protect_strength strength, uint64_t seed, struct protect_report *report)
{
    struct protect_plan *plan = NULL;
    enum iw_error error = protect_plan_new(&plan, protect, image, seed);
    if (error != IW_OK)
        return error;
    report->target_db = protect_strength_db(strength);
    report->scale = protect_plan_scale(plan, report->target_db, &report->is_limited);
    report->psnr_db = protect_plan_psnr(plan, report->scale);
    protect_render(plan, image, report->scale);
    protect_plan_free(plan);
    return IW_OK;
}
