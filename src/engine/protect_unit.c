#include "engine/protect_unit.h"

#include <math.h>
#include <stdlib.h>

#include "engine/clones.h"
#include "engine/image.h"

_Static_assert((int)net_block_px == (int)canvas_grid_px, "the network's blocks are places of the grid");
_Static_assert((int)net_reach_px == (int)canvas_reach_px, "there is noise wherever the network asks for it");
_Static_assert((int)net_mask_px == (int)canvas_block_px, "the mask's rows begin with whole blocks");
_Static_assert((int)net_noise_channels == (int)canvas_noise_values, "the noise is the network's");

/* What the ends of the network's run share. */
struct job {
    struct canvas canvas;
    const struct unit_way *way;
    const float *mask;
    int8_t *units;
    unsigned colors;
    float times;   /* how much finer the steps are than those of most pictures */
    float largest; /* size of what was drawn */
};

static void job_pixels(void *data, unsigned cell_px, int64_t y, int64_t x, unsigned count, float *values)
{
    const struct job *job = data;
    if (cell_px == net_small_px)
        canvas_pixels_halved(&job->canvas, y, x, count, values);
    else
        canvas_pixels(&job->canvas, y, x, count, values);
}

static void job_mask(void *data, unsigned cell_px, int64_t y, int64_t x, unsigned count, float *values)
{
    const struct job *job = data;
    canvas_mask_line(&job->canvas, job->mask, canvas_block_px / cell_px, y, x, count, values);
}

static void job_noise(void *data, int64_t row, int64_t column, unsigned count, float *values)
{
    const struct job *job = data;
    for (unsigned i = 0; i < count; i++)
        canvas_noise(&job->canvas, row, column + i, values + (size_t)i * net_noise_channels);
}

/* The perturbation of a grey picture is the luma of the three colours'. */
static void pixels_to_grey(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = 0.299f * values[3 * i] + 0.587f * values[3 * i + 1] + 0.114f * values[3 * i + 2];
}

/* What the largest unit stands for.  The few values beyond, which may reach 1 and a little more, are cut to
 * it. */
static const float values_peak = 0.16f;

ENGINE_CLONES static void units_store(const float *values, size_t count, float times, int8_t *units)
{
    for (size_t i = 0; i < count; i++) {
        float size = fabsf(values[i]) * times * (1 / values_peak);
        float unit = sqrtf(size < 1 ? size : 1) * unit_peak + 0.5f;
        units[i] = (int8_t)(int)copysignf(unit, values[i]);
    }
}

/* The largest size of count values and of largest. */
ENGINE_CLONES static float values_largest(const float *values, size_t count, float largest)
{
    enum { lanes = 16 };
    float most[lanes] = {largest};
    for (size_t first = 0; first < count; first += lanes) {
        const size_t some = count - first < lanes ? count - first : lanes;
        for (size_t i = 0; i < some; i++) {
            const float size = fabsf(values[first + i]);
            most[i] = size > most[i] ? size : most[i];
        }
    }
    for (size_t i = 0; i < lanes; i++)
        largest = most[i] > largest ? most[i] : largest;
    return largest;
}

static void job_sink(void *data, int64_t y_px, int64_t x_px, unsigned count, float *values)
{
    struct job *job = data;
    const struct image *image = job->canvas.image;
    const int64_t x = x_px - job->canvas.left_px, end = x + (int64_t)count, y = y_px - job->canvas.top_px;
    const size_t begin = x < 0 ? 0 : (size_t)x;
    const size_t wide = end < image->width_px ? (size_t)(end < 0 ? 0 : end) : image->width_px;
    if (begin >= wide || y < 0 || y >= image->height_px)
        return;
    if (job->colors == 1)
        pixels_to_grey(values, count);
    const float *drawn = values + (begin - (size_t)x) * job->colors;
    const size_t samples = (wide - begin) * job->colors;
    job->largest = values_largest(drawn, samples, job->largest);
    units_store(drawn, samples, job->times, job->units + ((size_t)y * image->width_px + begin) * job->colors);
}

/*
 * True when all but one in two hundred blocks, and their neighbours, lie within about half a
 * level of planes: a picture of one colour, or of nothing but a gradient.
 */
static bool mask_is_bare(const float *mask, size_t count, const struct canvas_hiding *hiding)
{
    static const float bare_spread = 0.0017f;
    const float bare = canvas_hidden(hiding, bare_spread);
    size_t textured = 0;
    for (size_t i = 0; i < count; i++)
        textured += mask[i] > bare;
    return textured * 200 < count;
}

/* True when hardly one unit in a thousand uses more than a sixth of the steps. */
ENGINE_CLONES static bool units_are_coarse(const int8_t *units, size_t count)
{
    enum { row = 4096, sixth = unit_peak / 6 };
    size_t large = 0;
    for (size_t first = 0; first < count; first += row) {
        const size_t end = first + row < count ? first + row : count;
        unsigned some = 0;
        for (size_t i = first; i < end; i++)
            some += units[i] > sixth || units[i] < -sixth;
        large += some;
    }
    return large * 1000 < count;
}

/*
 * Most pictures use a sixth of the steps at least.  Some, those of one colour above all,
 * would use few: they are drawn on once more, in steps as fine as the largest allows.
 */
static enum iw_error job_run(struct job *job, const struct net *net)
{
    enum { block_parts = net_block_px / canvas_block_px };
    const struct net_ends ends = {job_pixels, job_mask,          job_noise,          job_sink,
                                  job,        job->way->network, job->way->amplitude};
    const unsigned rows = job->canvas.rows / block_parts, columns = job->canvas.columns / block_parts;
    const struct image *image = job->canvas.image;
    job->times = 1;
    enum iw_error error = net_run(net, rows, columns, &ends);
    if (error != IW_OK || job->largest <= 0 ||
        !units_are_coarse(job->units, (size_t)image->width_px * image->height_px * job->colors))
        return error;
    job->times = values_peak / job->largest;
    return net_run(net, rows, columns, &ends);
}

enum iw_error unit_compute(const struct net *net, const struct image *image, const struct unit_way *way,
                           uint64_t seed, int8_t *units, bool *is_bare)
{
    struct job job = {.way = way, .units = units, .colors = image_has_color(image) ? 3 : 1};
    canvas_init(&job.canvas, image, seed);
    float *mask = canvas_mask(&job.canvas, &way->hiding);
    if (mask == NULL)
        return IW_NO_MEMORY;
    job.mask = mask;
    *is_bare =
        mask_is_bare(mask, canvas_mask_rows(&job.canvas) * canvas_mask_columns(&job.canvas), &way->hiding);
    enum iw_error error = job_run(&job, net);
    free(mask);
    return error;
}
