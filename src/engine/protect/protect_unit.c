#include "engine/protect/protect_unit.h"

#include <stdlib.h>
#include <string.h>

#include "engine/watermark/clones.h"
#include "engine/image.h"
#include "engine/protect/protect_draw.h"

_Static_assert((int)net_block_px == (int)canvas_grid_px, "the network's blocks are places of the grid");
_Static_assert((int)net_reach_px == (int)canvas_reach_px, "there is noise wherever the network asks for it");
_Static_assert((int)net_mask_px == (int)canvas_block_px, "the mask's rows begin with whole blocks");
_Static_assert((int)net_noise_channels == (int)canvas_noise_values, "the noise is the network's");

enum { block_parts = net_block_px / canvas_block_px };

/* The state that the callbacks of the network's run share. */
struct job {
    struct canvas canvas;
    const struct grain *patterns;
    const struct unit_way *way;
    struct canvas_masks masks;
    int8_t *units;
    unsigned colors;
    float *grain, *calm_line, *grained_line; /* of a row */
    float dither;                            /* the dither of unit_way for this picture */
    size_t stored;                           /* from the first unit to the last one stored */
    int floor_rank;                          /* of the stored units */
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
    canvas_mask_line(&job->canvas, job->masks.mask, canvas_block_px / cell_px, y, x, count, values);
}

static void job_noise(void *data, int64_t row, int64_t column, unsigned count, float *values)
{
    const struct job *job = data;
    for (unsigned i = 0; i < count; i++)
        canvas_noise(&job->canvas, row, column + i, values + (size_t)i * net_noise_channels);
}

/* The perturbation of a grey picture is the luma of the three colours. */
static void pixels_to_grey(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = 0.299f * values[3 * i] + 0.587f * values[3 * i + 1] + 0.114f * values[3 * i + 2];
}

/*
 * Units keep the exponent of a float and the upper three bits of its mantissa.  The bits of the unit below
 * the first are subtracted, less half a unit for rounding.
 */
enum {
    float_bits = 23,
    float_bias = 127,
    rank_bits = 20,
    rank_octave = -48, /* rank 1 is slightly more than 2^rank_octave */
    rank_zero = ((float_bias + rank_octave) << float_bits) - (1 << rank_bits),
    rank_half = 1 << (rank_bits - 1)
};

_Static_assert(1 << (float_bits - rank_bits) == unit_octave_steps, "units are bits of a float");

/* The bits of a float without its sign; they increase with the size. */
static inline int32_t float_size_bits(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & INT32_MAX;
}

/* The bits at which rank 0 would begin. */
static inline int32_t rank_base(int odd)
{
    return rank_zero + odd * ((1 << rank_bits) / unit_step) - rank_half;
}

ENGINE_CLONES int units_rank(const float *values, size_t count, int odd)
{
    int32_t most = 0;
    for (size_t i = 0; i < count; i++) {
        const int32_t bits = float_size_bits(values[i]);
        most = bits > most ? bits : most;
    }
    return (most - rank_base(odd)) >> rank_bits;
}

ENGINE_CLONES void units_store(const float *values, size_t count, int odd, int floor_rank, int8_t *units)
{
    const int32_t base = rank_base(odd);
    for (size_t i = 0; i < count; i++) {
        int size = ((float_size_bits(values[i]) - base) >> rank_bits) - floor_rank;
        size = size > 0 ? size : 0;
        size = size < unit_peak ? size : unit_peak;
        units[i] = (int8_t)(values[i] < 0 ? -size : size);
    }
}

ENGINE_CLONES void units_lower(int8_t *units, size_t count, int ranks)
{
    for (size_t i = 0; i < count; i++) {
        int size = (units[i] < 0 ? -units[i] : units[i]) - ranks;
        size = size > 0 ? size : 0;
        units[i] = (int8_t)(units[i] < 0 ? -size : size);
    }
}

/* The largest value is not known in advance: stored units are lowered by whole octaves when a larger one
 * appears. */
static void job_make_room(struct job *job, int rank)
{
    const int missing = rank - unit_peak - job->floor_rank;
    if (missing <= 0)
        return;
    const int ranks = (missing + unit_octave_steps - 1) / unit_octave_steps * unit_octave_steps;
    units_lower(job->units, job->stored, ranks);
    job->floor_rank += ranks;
}

/* On smooth places grain replaces most of the perturbation, because it is less visible.  On mild places it
 * replaces some of it and masks the rest. */
static void job_dither(const struct job *job, int64_t y_px, int64_t x_px, unsigned count, float *values)
{
    canvas_grain(&job->canvas, job->patterns, y_px, x_px, count, job->grain);
    canvas_smooth_line(&job->canvas, job->masks.calm, y_px, x_px, count, job->calm_line);
    canvas_smooth_line(&job->canvas, job->masks.grained, y_px, x_px, count, job->grained_line);
    draw_dithered(values, job->calm_line, job->grained_line, job->dither, job->grain,
                  (size_t)count * draw_colors);
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
    job_dither(job, y_px, x_px, count, values);
    if (job->colors == 1)
        pixels_to_grey(values, count);
    else if (job->masks.color < 1)
        draw_tinted(values, job->masks.color, (size_t)count * draw_colors);
    const float *drawn = values + (begin - (size_t)x) * job->colors;
    const size_t samples = (wide - begin) * job->colors;
    const size_t first = ((size_t)y * image->width_px + begin) * job->colors;
    const int odd = unit_odd((uint32_t)y);
    job_make_room(job, units_rank(drawn, samples, odd));
    units_store(drawn, samples, odd, job->floor_rank, job->units + first);
    if (first + samples > job->stored)
        job->stored = first + samples;
}

/*
 * True when all but one in two hundred blocks, and their neighbours, lie within about half a level of planes:
 * a picture of one colour or only a gradient.
 */
static bool mask_is_bare(const struct canvas *canvas, const float *mask, const struct canvas_hiding *hiding)
{
    static const float bare_spread = 0.0017f;
    const size_t blocks = (size_t)canvas->rows * canvas->columns;
    return canvas_count_above(canvas, mask, canvas_hidden(hiding, bare_spread)) * 200 < blocks;
}

/* Allocates the job's arrays in one block of memory that starts at its mask; free() takes the mask. */
static enum iw_error job_masks_new(struct job *job)
{
    const size_t blocks = canvas_mask_rows(&job->canvas) * canvas_mask_columns(&job->canvas);
    const size_t columns = ((size_t)job->canvas.columns + net_band_blocks * block_parts) * canvas_block_px;
    float *arrays = malloc((4 * blocks + 3 * draw_colors * columns) * sizeof *arrays);
    if (arrays == NULL)
        return IW_NO_MEMORY;
    job->masks = (struct canvas_masks){.mask = arrays,
                                       .calm = arrays + blocks,
                                       .spread = arrays + 2 * blocks,
                                       .grained = arrays + 3 * blocks};
    job->grain = arrays + 4 * blocks;
    job->calm_line = job->grain + draw_colors * columns;
    job->grained_line = job->calm_line + draw_colors * columns;
    if (canvas_mask(&job->canvas, &job->way->hiding, &job->masks))
        return IW_OK;
    free(arrays);
    return IW_NO_MEMORY;
}

enum iw_error unit_compute(const struct net *net, const struct image *image, const struct unit_way *way,
                           uint64_t seed, int8_t *units, uint8_t *peaks, struct unit_hiding *hiding)
{
    struct job job = {.patterns = &net->grain, .way = way, .units = units};
    job.colors = image_has_color(image) ? 3 : 1;
    canvas_init(&job.canvas, image, seed);
    enum iw_error error = job_masks_new(&job);
    if (error != IW_OK)
        return error;
    hiding->mean = canvas_mean(&job.canvas, job.masks.mask);
    hiding->is_bare = mask_is_bare(&job.canvas, job.masks.mask, &way->hiding);
    canvas_peaks(&job.canvas, &way->peaks, &way->hiding, &job.masks, peaks);
    job.dither = way->dither * (float)canvas_mean(&job.canvas, job.masks.grained);
    const struct net_ends ends = {job_pixels,     job_mask,  job_noise, job_sink,   &job,      way->network,
                                  way->amplitude, way->blue, way->pale, way->level, way->table};
    error = net_run(net, job.canvas.rows / block_parts, job.canvas.columns / block_parts, &ends);
    free(job.masks.mask);
    return error;
}
