#include "engine/watermark/bend.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"

/* No published source; `./dev bench watermark --bending` measures the effect. */
enum {
    block_px = bend_block_px,
    block_columns = 32, /* that are summed together */
    window_blocks = 3,  /* side of the start */
    fit_side = 64,      /* of the FFT that finds the offset of a window */
    ascent_rounds = 40,
    steps_count = 8 /* parameters of a projection */
};
static const double frequency_most = 0.49; /* cycles a plane pixel */
static const double radius_first = 120.0;  /* of the region, in plane pixels */
static const double radius_growth = 1.3;
static const double radius_slanted = 150.0; /* smaller regions show no perspective */
static const double step_first = 0.6;       /* chips at the edge of the region */
static const double step_again = 0.3;
static const double step_least = 0.03;

/*
 * Agreement of the tones, in standard deviations of the noise. In an unmarked picture the best window
 * reaches 4 to 6, and the fitted first region 7. Marked pictures reach 9 or more there.
 */
static const double start_least = 5.3;
static const double certainty_least = 7.5;

/* chips = (matrix * x + offset) / (1 + slant . x); x is relative to the plane's centre, in pixels. */
struct projection {
    double matrix[4];
    double offset[2];
    double slant[2];
};

/* The part of the plane to which a projection is fitted. */
struct region {
    double middle[2];
    double radius;
    double energy; /* of the region's tones; half of it is the variance of their agreement */
};

/* ---- projections ---- */

ENGINE_INLINE double projection_depth(const struct projection *projection, const double place[2])
{
    return 1 + projection->slant[0] * place[0] + projection->slant[1] * place[1];
}

ENGINE_INLINE void projection_chips(const struct projection *projection, const double place[2],
                                    double chips[2])
{
    const double *matrix = projection->matrix;
    double depth = projection_depth(projection, place);

    chips[0] = (matrix[0] * place[0] + matrix[1] * place[1] + projection->offset[0]) / depth;
    chips[1] = (matrix[2] * place[0] + matrix[3] * place[1] + projection->offset[1]) / depth;
}

/* Computes the affine pose that fits at a place: the derivative of the chips, row by row. */
static void projection_slope(const struct projection *projection, const double place[2], double slope[4])
{
    double depth = projection_depth(projection, place);
    double chips[2];

    projection_chips(projection, place, chips);
    for (int i = 0; i < 4; i++)
        slope[i] = (projection->matrix[i] - chips[i / 2] * projection->slant[i % 2]) / depth;
}

/* Expresses the same projection relative to another origin. */
static void projection_move(struct projection *projection, double x, double y)
{
    const double place[2] = {x, y};
    double depth = projection_depth(projection, place);
    double chips[2];

    projection_chips(projection, place, chips);
    for (int i = 0; i < 4; i++)
        projection->matrix[i] /= depth;
    for (int i = 0; i < 2; i++) {
        projection->offset[i] = chips[i];
        projection->slant[i] /= depth;
    }
}

/*
 * Changes a parameter (offset, matrix or slant, in this order) so that the chips at the edge of the region
 * change by step. The slant keeps the offset and the slope at the region's middle.
 */
static void projection_step(struct projection *projection, const struct region *region, int parameter,
                            double step)
{
    projection_move(projection, region->middle[0], region->middle[1]);
    if (parameter < 2) {
        projection->offset[parameter] += step;
    } else if (parameter < 6) {
        projection->matrix[parameter - 2] += step / region->radius;
    } else {
        int axis = parameter - 6;
        double slant = step / (region->radius * region->radius);

        projection->slant[axis] += slant;
        projection->matrix[axis] += projection->offset[0] * slant;
        projection->matrix[2 + axis] += projection->offset[1] * slant;
    }
    projection_move(projection, -region->middle[0], -region->middle[1]);
}

/* ---- blocks ---- */

ENGINE_INLINE int blocks_count(const struct bend *bend)
{
    return bend->across * bend->down;
}

ENGINE_INLINE void block_centre(const struct bend *bend, int block, double place[2])
{
    place[0] = (block % bend->across + 0.5) * block_px - bend->plane->width / 2.0;
    place[1] = (block / bend->across + 0.5) * block_px - bend->plane->height / 2.0;
}

/* Sums the rows of a block, turned by a wave down, for some columns; the sums stay in registers. */
ENGINE_CLONES
static void columns_sum(const float *samples, size_t stride, const struct bend_wave *wave, float *real,
                        float *imaginary)
{
    float cosines[block_columns] = {0};
    float sines[block_columns] = {0};

    for (int y = 0; y < block_px; y++, samples += stride) {
        for (int x = 0; x < block_columns; x++) {
            cosines[x] += samples[x] * wave->cosines[y];
            sines[x] -= samples[x] * wave->sines[y];
        }
    }
    for (int x = 0; x < block_columns; x++) {
        real[x] = cosines[x];
        imaginary[x] = sines[x];
    }
}

/*
 * Computes the cosine and sine at the places of a block along an axis, relative to the block's centre. All
 * blocks of an affine pose have the same frequencies, so the last wave is kept.
 */
static void wave_fill(struct bend_wave *wave, double frequency)
{
    if (wave->is_filled && !(wave->frequency < frequency || wave->frequency > frequency))
        return;
    *wave = (struct bend_wave){.frequency = frequency, .is_filled = true};
    double turn = 2 * M_PI * frequency;
    double across[2] = {cos(turn), sin(turn)};
    double at[2] = {cos(turn * (0.5 - block_px / 2.0)), sin(turn * (0.5 - block_px / 2.0))};

    for (int i = 0; i < block_px; i++) {
        double next = at[0] * across[0] - at[1] * across[1];

        wave->cosines[i] = (float)at[0];
        wave->sines[i] = (float)at[1];
        at[1] = at[1] * across[0] + at[0] * across[1];
        at[0] = next;
    }
}

/* Returns the sum of samples * exp(-2 pi j f x) over a block; x is relative to the block's centre. */
static struct value block_tone(const struct bend *bend, int block, const struct bend_wave waves[2])
{
    float real[block_px];
    float imaginary[block_px];
    size_t width = (size_t)bend->plane->width;
    size_t first =
        (size_t)(block / bend->across) * block_px * width + (size_t)(block % bend->across) * block_px;
    struct value sum = {0, 0};

    for (int x = 0; x < block_px; x += block_columns)
        columns_sum(bend->whitened->luma + first + x, width, &waves[1], real + x, imaginary + x);
    for (int x = 0; x < block_px; x++) {
        sum.real += real[x] * waves[0].cosines[x] + imaginary[x] * waves[0].sines[x];
        sum.imaginary += imaginary[x] * waves[0].cosines[x] - real[x] * waves[0].sines[x];
    }
    return sum;
}

/* Measures all tones of a block at the frequencies that the projection has there. Returns their energy. */
static double block_measure(struct bend *bend, const struct projection *projection,
                            const float weights[lattice_tones], int block)
{
    double place[2];
    double slope[4];
    double energy = 0;

    block_centre(bend, block, place);
    projection_slope(projection, place, slope);
    for (unsigned i = 0; i < lattice_tones; i++) {
        const struct lattice_tone *tone = &bend->reader->lattice->tones[i];
        double fx = (slope[0] * tone->kx + slope[2] * tone->ky) / lattice_period;
        double fy = (slope[1] * tone->kx + slope[3] * tone->ky) / lattice_period;
        struct value at = {0, 0};

        if (fabs(fx) < frequency_most && fabs(fy) < frequency_most) {
            wave_fill(&bend->waves[i][0], fx);
            wave_fill(&bend->waves[i][1], fy);
            at = block_tone(bend, block, bend->waves[i]);
        }
        bend->tones[block][i] =
            (struct value){weights[i] * (at.real * tone->cosine + at.imaginary * tone->sine),
                           weights[i] * (at.imaginary * tone->cosine - at.real * tone->sine)};
        energy += (double)(weights[i] * weights[i] * (at.real * at.real + at.imaginary * at.imaginary));
    }
    return energy;
}

/* Returns a block's tone after undoing the phase of the chips. */
ENGINE_INLINE struct value tone_turned(const struct bend *bend, int block, unsigned i, const double chips[2])
{
    const struct lattice_tone *tone = &bend->reader->lattice->tones[i];
    double turns = (tone->kx * chips[0] + tone->ky * chips[1]) / lattice_period;
    float rest = (float)(2 * M_PI * (turns - rint(turns)));
    float cosine = cosf(rest);
    float sine = sinf(rest);
    struct value at = bend->tones[block][i];

    return (struct value){at.real * cosine + at.imaginary * sine, at.imaginary * cosine - at.real * sine};
}

/* ---- the start ---- */

/* Undoes the phase of the chips in all tones. */
ENGINE_CLONES
static void tones_turn(struct bend *bend, const struct projection *projection)
{
    for (int block = 0; block < blocks_count(bend); block++) {
        double place[2];
        double chips[2];

        block_centre(bend, block, place);
        projection_chips(projection, place, chips);
        for (unsigned i = 0; i < lattice_tones; i++)
            bend->tones[block][i] = tone_turned(bend, block, i, chips);
    }
}

/* Sums the turned tones of a window into the fit. Returns their energy. */
static double window_sum(struct bend *bend, int left, int top)
{
    double energy = 0;

    memset(bend->fit, 0, sizeof *bend->fit * fit_side * fit_side);
    for (int i = 0; i < window_blocks * window_blocks; i++) {
        int block = (top + i / window_blocks) * bend->across + left + i % window_blocks;

        for (unsigned j = 0; j < lattice_tones; j++) {
            const struct lattice_tone *tone = &bend->reader->lattice->tones[j];
            size_t bin = (size_t)((tone->ky + fit_side) % fit_side) * fit_side + (size_t)tone->kx;
            struct value at = bend->tones[block][j];

            bend->fit[bin][0] += at.real;
            bend->fit[bin][1] += at.imaginary;
            energy += (double)(at.real * at.real + at.imaginary * at.imaginary);
        }
    }
    return energy;
}

/* Finds the window and the offset at which the tones agree best. Returns their agreement. */
static double start_find(struct bend *bend, struct projection *projection, struct region *region)
{
    double best = 0;

    tones_turn(bend, projection);
    for (int top = 0; top + window_blocks <= bend->down; top++) {
        for (int left = 0; left + window_blocks <= bend->across; left++) {
            double deviation = sqrt(window_sum(bend, left, top) / 2) + 1e-20;

            fftwf_execute(bend->fit_plan);
            for (int at = 0; at < fit_side * fit_side; at++) {
                if ((double)bend->fit[at][0] <= best * deviation)
                    continue;
                best = (double)bend->fit[at][0] / deviation;
                projection->offset[0] = (double)(at % fit_side) * lattice_period / fit_side;
                projection->offset[1] = (double)(at / fit_side) * lattice_period / fit_side;
                region->middle[0] = (left + window_blocks / 2.0) * block_px - bend->plane->width / 2.0;
                region->middle[1] = (top + window_blocks / 2.0) * block_px - bend->plane->height / 2.0;
            }
        }
    }
    return best;
}

/* ---- the fit ---- */

/* Selects the blocks of a region and measures their tones. Returns their count. */
static int region_take(struct bend *bend, const struct projection *projection,
                       const float weights[lattice_tones], struct region *region)
{
    int count = 0;

    region->energy = 0;
    for (int block = 0; block < blocks_count(bend); block++) {
        double place[2];

        block_centre(bend, block, place);
        bend->is_inside[block] =
            hypot(place[0] - region->middle[0], place[1] - region->middle[1]) <= region->radius;
        if (!bend->is_inside[block])
            continue;
        region->energy += block_measure(bend, projection, weights, block);
        count++;
    }
    return count;
}

/* Returns the agreement of all tones in the region. */
ENGINE_CLONES
static double projection_score(const struct bend *bend, const struct projection *projection)
{
    double sum = 0;

    for (int block = 0; block < blocks_count(bend); block++) {
        double place[2];
        double chips[2];

        if (!bend->is_inside[block])
            continue;
        block_centre(bend, block, place);
        projection_chips(projection, place, chips);
        for (unsigned i = 0; i < lattice_tones; i++)
            sum += (double)tone_turned(bend, block, i, chips).real;
    }
    return sum;
}

/*
 * Improves the projection by coordinate ascent with halving steps. Returns the agreement in standard
 * deviations.
 */
static double projection_ascend(const struct bend *bend, struct projection *projection,
                                const struct region *region, double step)
{
    double best = projection_score(bend, projection);
    int steps = region->radius < radius_slanted ? steps_count - 2 : steps_count;

    for (int round = 0; round < ascent_rounds && step > step_least; round++) {
        bool is_better = false;

        for (int i = 0; i < 2 * steps; i++) {
            struct projection tried = *projection;

            projection_step(&tried, region, i / 2, i & 1 ? -step : step);
            double score = projection_score(bend, &tried);
            if (score > best) {
                best = score;
                *projection = tried;
                is_better = true;
                i |= 1; /* skips the opposite step, which would undo this step */
            }
        }
        if (!is_better)
            step /= 2;
    }
    return best / (sqrt(region->energy / 2) + 1e-20);
}

/* Fits the projection while the region grows to the whole plane. Returns false if the tones do not agree. */
static bool projection_fit(struct bend *bend, struct projection *projection, struct region *region,
                           const float weights[lattice_tones])
{
    int count = 0;

    for (region->radius = radius_first; count < blocks_count(bend); region->radius *= radius_growth) {
        region_take(bend, projection, weights, region);
        projection_ascend(bend, projection, region, step_first);
        count = region_take(bend, projection, weights, region);
        if (projection_ascend(bend, projection, region, step_again) < certainty_least)
            return false;
    }
    return true;
}

/* ---- resampling ---- */

/* Computes the weights of four samples around a place: the cubic of Catmull and Rom. */
ENGINE_INLINE void cubic_fill(float at, float weights[4])
{
    weights[0] = at * (-0.5f + at * (1 - 0.5f * at));
    weights[1] = 1 + at * at * (-2.5f + 1.5f * at);
    weights[2] = at * (0.5f + at * (2 - 1.5f * at));
    weights[3] = at * at * (-0.5f + 0.5f * at);
}

/* Interpolates the samples. Returns 0 outside the plane. */
ENGINE_INLINE float cubic_at(const float *samples, const struct plane *plane, double x, double y)
{
    float across[4];
    float down[4];
    float sum = 0;

    if (!(x >= 1 && y >= 1 && x < plane->width - 2 && y < plane->height - 2))
        return 0;
    int column = (int)x;
    int row = (int)y;
    cubic_fill((float)(x - column), across);
    cubic_fill((float)(y - row), down);
    for (int i = 0; i < 4; i++) {
        const float *from = samples + (size_t)(row - 1 + i) * (size_t)plane->width + column - 1;

        sum +=
            down[i] * (from[0] * across[0] + from[1] * across[1] + from[2] * across[2] + from[3] * across[3]);
    }
    return sum;
}

/*
 * Resamples a plane from a projection to an affine pose, by solving the projection for the place of given
 * chips.
 */
ENGINE_CLONES
static void plane_flatten(const struct bend *bend, const struct projection *projection,
                          const struct pose *pose, const float *from, float *to)
{
    const double *matrix = projection->matrix;
    const double *slant = projection->slant;
    double middle[2] = {bend->plane->width / 2.0, bend->plane->height / 2.0};

    for (int y = 0; y < bend->plane->height; y++) {
        for (int x = 0; x < bend->plane->width; x++) {
            double place[2] = {x + 0.5 - middle[0], y + 0.5 - middle[1]};
            double u = pose->matrix[0] * place[0] + pose->matrix[1] * place[1] + pose->offset[0];
            double v = pose->matrix[2] * place[0] + pose->matrix[3] * place[1] + pose->offset[1];
            double rows[4] = {matrix[0] - u * slant[0], matrix[1] - u * slant[1], matrix[2] - v * slant[0],
                              matrix[3] - v * slant[1]};
            double factor = 1 / (rows[0] * rows[3] - rows[1] * rows[2]);
            double across = u - projection->offset[0];
            double down = v - projection->offset[1];

            *to++ =
                cubic_at(from, bend->plane, (rows[3] * across - rows[1] * down) * factor + middle[0] - 0.5,
                         (rows[0] * down - rows[2] * across) * factor + middle[1] - 0.5);
        }
    }
}

static bool flat_decode(const struct bend *bend, const struct projection *projection)
{
    struct workspace *workspace = bend->reader->workspace;
    const struct whitened *whitened = bend->whitened;
    const struct plane *plane = bend->plane;
    static const double centre[2] = {0, 0};
    struct spectrum luma;
    struct spectrum blue;
    struct pose pose = {.offset = {projection->offset[0], projection->offset[1]}};
    float *flat = workspace_take_unset(workspace, (size_t)plane->width * (size_t)plane->height, sizeof *flat);

    if (flat == NULL)
        return false;
    projection_slope(projection, centre, pose.matrix);
    plane_flatten(bend, projection, &pose, whitened->luma, flat);
    if (!spectrum_make(flat, plane->width, plane->height, workspace, &luma))
        return false;
    if (whitened->blue == NULL)
        return reader_read_posed(bend->reader, &luma, NULL, &pose);
    plane_flatten(bend, projection, &pose, whitened->blue, flat);
    return spectrum_make(flat, plane->width, plane->height, workspace, &blue) &&
           reader_read_posed(bend->reader, &luma, &blue, &pose);
}

/* ---- public ---- */

bool bend_init(struct bend *bend, struct reader *reader, const struct whitened *whitened,
               const struct plane *plane)
{
    struct workspace *workspace = reader->workspace;

    *bend = (struct bend){.reader = reader,
                          .whitened = whitened,
                          .plane = plane,
                          .across = plane->width / block_px,
                          .down = plane->height / block_px};
    if (bend->across < window_blocks || bend->down < window_blocks)
        return false;
    bend->tones = workspace_take(workspace, (size_t)blocks_count(bend), sizeof *bend->tones);
    bend->is_inside = workspace_take(workspace, (size_t)blocks_count(bend), sizeof *bend->is_inside);
    bend->waves = workspace_take(workspace, lattice_tones, sizeof *bend->waves);
    bend->fit = workspace_take(workspace, fit_side * fit_side, sizeof *bend->fit);
    if (workspace->failed)
        return false;
    bend->fit_plan = fftwf_plan_dft_2d(fit_side, fit_side, bend->fit, bend->fit, FFTW_FORWARD, FFTW_ESTIMATE);
    return bend->fit_plan != NULL;
}

void bend_fini(struct bend *bend)
{
    if (bend->fit_plan != NULL)
        fftwf_destroy_plan(bend->fit_plan);
    bend->fit_plan = NULL;
}

bool bend_read(struct bend *bend, const struct pose *pose, const float weights[lattice_tones])
{
    struct projection projection = {.offset = {0, 0}};
    struct region region = {.radius = HUGE_VAL};
    size_t mark = workspace_mark(bend->reader->workspace);

    memcpy(projection.matrix, pose->matrix, sizeof pose->matrix);
    region_take(bend, &projection, weights, &region);
    if (start_find(bend, &projection, &region) < start_least ||
        !projection_fit(bend, &projection, &region, weights))
        return false;
    bool is_read = flat_decode(bend, &projection);
    memcpy(bend->reader->pose.matrix, projection.matrix, sizeof projection.matrix);
    memcpy(bend->reader->pose.offset, projection.offset, sizeof projection.offset);
    memcpy(bend->reader->slant, projection.slant, sizeof projection.slant);
    workspace_rewind(bend->reader->workspace, mark);
    return is_read;
}
