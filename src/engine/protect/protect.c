#include "engine/protect/protect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/protect/change.h"
#include "engine/protect/plan.h"

_Static_assert((int)net_reach_px == (int)canvas_reach_px, "there is noise wherever the network asks for it");
_Static_assert((int)net_noise_channels == (int)canvas_noise_values, "the noise is the network's");
_Static_assert((int)canvas_grid_px % (int)net_block_px == 0, "a padded picture is whole blocks");

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

unsigned protect_percent(const struct protect_report *report)
{
    return (unsigned)lround(100 * report->share);
}

enum iw_error protect_new(struct protect **protect, const void *weights, size_t size, const char **why)
{
    *why = "there is not enough memory for the weights";
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

/* ---- a plan: the ends of the network and of the visibility model */

struct protect_run {
    struct canvas canvas;
    struct protect_plan *plan;
    struct visibility visibility;
};

static void job_pixels(void *data, unsigned cell_px, int64_t y, int64_t x, unsigned count, float *values)
{
    const struct protect_run *job = data;
    (cell_px == net_small_px ? canvas_pixels_halved : canvas_pixels)(&job->canvas, y, x, count, values);
}

static void job_noise(void *data, int64_t row, int64_t column, unsigned count, float *values)
{
    const struct protect_run *job = data;
    for (unsigned i = 0; i < count; i++)
        canvas_noise(&job->canvas, row, column + i, values + (size_t)i * net_noise_channels);
}

static void row_store(const struct protect_plan *plan, uint32_t y, const float *values)
{
    for (struct plan_piece piece = plan_piece(plan, y, 0); piece.count > 0;
         piece = plan_piece(plan, y, piece.end))
        *piece.octave = change_units_store(values + piece.first, piece.count, piece.units);
}

/*
 * A gradient is stored as luma, blue and red difference (BT.601), because its colour is weak and the step
 * enlarges it: in RGB, the rounding of the luma would spoil the colour. A picture without colour has only
 * luma.
 */
ENGINE_CLONES static void pixels_opponent(float *restrict values, size_t count, bool has_color)
{
    for (size_t i = 0; i < count; i++) {
        const float r = values[3 * i], g = values[3 * i + 1], b = values[3 * i + 2];
        values[3 * i] = 0.299f * r + 0.587f * g + 0.114f * b;
        values[3 * i + 1] = has_color ? -0.168736f * r - 0.331264f * g + 0.5f * b : 0;
        values[3 * i + 2] = has_color ? 0.5f * r - 0.418688f * g - 0.081312f * b : 0;
    }
}

ENGINE_CLONES static void pixels_rgb(float *restrict values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float luma = values[3 * i], blue = values[3 * i + 1], red = values[3 * i + 2];
        values[3 * i] = luma + 1.402f * red;
        values[3 * i + 1] = luma - 0.344136f * blue - 0.714136f * red;
        values[3 * i + 2] = luma + 1.772f * blue;
    }
}

static void job_sink(void *data, unsigned y_px, float *values)
{
    const struct protect_run *job = data;
    pixels_opponent(values, job->canvas.width_px, job->visibility.planes > 1);
    for (size_t i = 0; job->plan->colors == 1 && i < job->plan->row_units; i++)
        values[i] = values[3 * i];
    row_store(job->plan, y_px, values);
}

static void job_read(void *data, unsigned y_px, float *values)
{
    const struct protect_run *job = data;
    const struct protect_plan *plan = job->plan;
    for (struct plan_piece piece = plan_piece(plan, y_px, 0); piece.count > 0;
         piece = plan_piece(plan, y_px, piece.end))
        change_units_load(piece.units, *piece.octave, piece.count, values + piece.first);
    if (plan->colors > 1)
        pixels_rgb(values, plan->row_units / plan->colors);
    for (size_t i = plan->colors == 1 ? plan->row_units : 0; i-- > 0;)
        values[3 * i] = values[3 * i + 1] = values[3 * i + 2] = values[i];
}

/* Replaces the gradient by the step, row by row. */
static void job_write(void *data, unsigned y_px, float *values)
{
    const struct protect_run *job = data;
    const struct protect_plan *plan = job->plan;
    for (size_t i = 0; plan->colors == 1 && i < plan->row_units; i++)
        values[i] = values[3 * i];
    row_store(plan, y_px, values);
}

/* Fills a plan whose units and shares are allocated. */
static enum iw_error plan_fill(struct protect_plan *plan, const struct protect *protect,
                               const struct image *image, uint64_t seed)
{
    struct protect_run job = {.plan = plan};
    const struct net_ends net_ends = {job_pixels, job_noise, job_sink, &job};
    const struct visibility_ends ends = {job_read, job_write, &job};
    canvas_init(&job.canvas, image, seed);
    enum iw_error error = visibility_init(&job.visibility, &protect->net.weights.model, &job.canvas);
    if (error != IW_OK)
        return error;
    error = net_run(&protect->net, job.canvas.height_px / net_block_px, job.canvas.width_px / net_block_px,
                    &net_ends);
    if (error == IW_OK)
        error = visibility_step(&job.visibility, &ends);
    if (error == IW_OK) {
        plan->total = visibility_even(&job.visibility);
        memcpy(plan->shares.values, job.visibility.peaks.values,
               (size_t)plan->shares.columns * plan->shares.rows * sizeof(float));
    }
    visibility_fini(&job.visibility);
    return error;
}

static size_t padded(uint32_t side_px)
{
    return ((size_t)side_px + canvas_grid_px - 1) / canvas_grid_px * canvas_grid_px;
}

enum iw_error protect_plan_new(struct protect_plan **plan, const struct protect *protect,
                               const struct image *image, uint64_t seed)
{
    const unsigned colors = image_has_color(image) ? 3 : 1;
    const size_t width = padded(image->width_px), height = padded(image->height_px),
                 columns = width / visibility_cell_px, rows = height / visibility_cell_px,
                 pieces = (width + plan_piece_px - 1) / plan_piece_px, row_units = width * colors,
                 shares = 2 * share_floats(image->width_px, colors),
                 floats = columns * rows + 4 * row_units + shares + pieces * colors;
    struct protect_plan *new = calloc(1, sizeof *new + floats * sizeof(float) + height *(row_units + pieces));
    if (new == NULL)
        return IW_NO_MEMORY;
    *new = (struct protect_plan){.weights = &protect->net.weights,
                                 .width_px = image->width_px,
                                 .height_px = image->height_px,
                                 .colors = colors,
                                 .depth_bits = image->depth_bits,
                                 .row_units = row_units,
                                 .row_pieces = pieces,
                                 .shares = {(unsigned)columns, (unsigned)rows, (float *)(new + 1)}};
    new->factors = new->shares.values + columns *rows;
    new->wanted = new->factors + row_units;
    new->levels = new->wanted + row_units;
    new->changes = new->levels + row_units;
    new->share_rows = new->changes + row_units;
    new->debts = new->share_rows + shares;
    new->units = (int8_t *)(new->debts + pieces *colors);
    new->octaves = (uint8_t *)(new->units + height *row_units);
    enum iw_error error = plan_fill(new, protect, image, seed);
    if (error != IW_OK) {
        protect_plan_free(new);
        return error;
    }
    *plan = new;
    return IW_OK;
}

void protect_plan_free(struct protect_plan *plan)
{
    if (plan == NULL)
        return;
    change_compare_fini(plan);
    flat_free(plan->flat);
    free(plan);
}

enum iw_error protect_apply(const struct protect *protect, struct image *image,
                            enum protect_strength strength, uint64_t seed, struct protect_report *report)
{
    struct protect_plan *plan = NULL;
    enum iw_error error = protect_plan_new(&plan, protect, image, seed);
    if (error != IW_OK)
        return error;
    change_add(plan, image, strength, 1, report);
    protect_plan_free(plan);
    return IW_OK;
}
