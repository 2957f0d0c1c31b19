#include "engine/protect/protect_plan.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)net_reach_px == (int)canvas_reach_px, "there is noise wherever the network asks for it");
_Static_assert((int)net_noise_channels == (int)canvas_noise_values, "the noise is the network's");
_Static_assert((int)canvas_grid_px % (int)net_block_px == 0, "a padded picture is whole blocks");

/* The state that the callbacks of the network and of the visibility model share. */
struct job {
    struct canvas canvas;
    struct protect_plan *plan;
    unsigned planes;             /* of the visibility model: 1 for a picture without colour */
    struct units gradient, step; /* the network's result, and what replaces it row by row */
};

static void job_pixels(void *data, unsigned cell_px, int64_t y, int64_t x, unsigned count, float *values)
{
    const struct job *job = data;
    if (cell_px == net_small_px)
        canvas_pixels_halved(&job->canvas, y, x, count, values);
    else
        canvas_pixels(&job->canvas, y, x, count, values);
}

static void job_noise(void *data, int64_t row, int64_t column, unsigned count, float *values)
{
    const struct job *job = data;
    for (unsigned i = 0; i < count; i++)
        canvas_noise(&job->canvas, row, column + i, values + (size_t)i * net_noise_channels);
}

/* The perturbation of a picture without colour is the luma of the three colours. */
static void pixels_to_grey(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = 0.299f * values[3 * i] + 0.587f * values[3 * i + 1] + 0.114f * values[3 * i + 2];
}

static void pixels_from_grey(float *values, size_t count)
{
    for (size_t i = count; i-- > 0;)
        values[3 * i] = values[3 * i + 1] = values[3 * i + 2] = values[i];
}

static void job_sink(void *data, int64_t y_px, int64_t x_px, unsigned count, float *values)
{
    struct job *job = data;
    const struct protect_plan *plan = job->plan;
    if (x_px >= job->canvas.width_px)
        return;
    const size_t left = job->canvas.width_px - (size_t)x_px, wide = count < left ? count : left;
    if (job->planes == 1)
        pixels_to_grey(values, wide);
    if (job->planes == 1 && plan->colors > 1)
        pixels_from_grey(values, wide);
    units_store(&job->gradient, values, wide * plan->colors,
                plan_row(plan, (uint32_t)y_px) + (size_t)x_px * plan->colors);
}

static void job_read(void *data, unsigned y_px, float *values)
{
    const struct job *job = data;
    const struct protect_plan *plan = job->plan;
    units_load(plan_row(plan, y_px), job->gradient.floor_rank, plan->row_units, values);
    if (plan->colors == 1)
        pixels_from_grey(values, plan->row_units);
}

static void job_write(void *data, unsigned y_px, float *values)
{
    struct job *job = data;
    const struct protect_plan *plan = job->plan;
    for (size_t i = 0; plan->colors == 1 && i < plan->row_units; i++)
        values[i] = values[3 * i];
    units_store(&job->step, values, plan->row_units, plan_row(plan, y_px));
    job->step.runs[0].count += plan->row_units;
}

static enum iw_error gradient_fill(struct job *job, const struct net *net)
{
    const struct net_ends ends = {job_pixels, job_noise, job_sink, job};
    job->gradient.runs[0].values = job->plan->units;
    job->gradient.runs[0].count = (size_t)job->canvas.height_px * job->plan->row_units;
    job->gradient.run_count = 1;
    return net_run(net, job->canvas.height_px / net_block_px, job->canvas.width_px / net_block_px, &ends);
}

static enum iw_error step_fill(struct job *job, struct visibility *visibility)
{
    const struct visibility_ends ends = {job_read, job_write, job};
    job->step.runs[0].values = job->plan->units;
    job->step.run_count = 1;
    enum iw_error error = visibility_step(visibility, &ends);
    job->plan->floor_rank = job->step.floor_rank;
    return error;
}

enum iw_error plan_fill(struct protect_plan *plan, const struct protect *protect, const struct image *image,
                        uint64_t seed)
{
    struct job job = {.plan = plan};
    struct visibility visibility;
    canvas_init(&job.canvas, image, seed);
    enum iw_error error = visibility_init(&visibility, &protect->net.weights.model, &job.canvas);
    if (error != IW_OK)
        return error;
    job.planes = visibility.planes;
    error = gradient_fill(&job, &protect->net);
    if (error == IW_OK)
        error = step_fill(&job, &visibility);
    if (error == IW_OK) {
        plan->total = visibility_even(&visibility);
        memcpy(plan->shares.values, visibility.peaks.values,
               (size_t)plan->shares.columns * plan->shares.rows * sizeof(float));
    }
    visibility_fini(&visibility);
    return error;
}
