#include "engine/watermark/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/watermark/bend.h"

/* Steps and ranges of the search. No published source; `./dev bench watermark` measures the effect. */
enum {
    map_angles = 1080,    /* over half a turn; the other half is its mirror image */
    aspect_count = 33,    /* aspect steps to each side */
    aspect_angle = 30,    /* most angle steps between a stretched picture and an axis */
    bent_count = 80,      /* aspect steps to each side of bent poses */
    shear_count = 30,     /* shear steps to each side of bent poses */
    bent_angle = 8,       /* angle steps to each side of bent poses */
    upright_angle = 1,    /* angle steps that still count as upright */
    candidates_max = 384, /* of a league */
    map_pad = 320,        /* zeros before, between and after the map's angles */
    score_block = 64,     /* scales that are added up together */
    fit_side = 64         /* of the FFT that finds the offset */
};
static const double rho_step = 0.004; /* of the logarithm of a frequency */
static const double aspect_step = 0.005;
static const double frequency_low = 0.0105; /* cycles a plane pixel */
static const double frequency_high = 0.49;
static const double scale_low = 0.22; /* frequency on the plane to frequency of the pattern */
static const double scale_high = 4.8;
static const float power_cap = 10.0f;    /* the map's greatest ratio of power to noise */
static const float byte_scale = 25.0f;   /* the map's steps for a ratio of 1 */
static const float noise_least = 1e-20f; /* prevents a division by zero */
static const float power_most = 1e12f;   /* of a tone; the product over all tones stays finite */
static const double noise_share = 0.02;  /* half the side of the square that averages noise, cycles a pixel */

/* A pose to test: frequency = scale * rotation * stretch * mirror * lattice point. */
struct candidate {
    double scale;
    double angle;
    double stretch; /* logarithm of the ratio of horizontal to vertical */
    double shear;
    bool is_mirrored;
    float score;
    struct pose pose;
};

/*
 * Poses compete within their league. Crops and changes of size are the most common, and they
 * leave few poses to choose from. A weak true pose stands out among few, but not among all.
 */
enum league { LEAGUE_UPRIGHT, LEAGUE_TURNED, LEAGUE_STRETCHED, LEAGUE_BENT, LEAGUES };

struct league_bounds {
    unsigned candidates; /* kept by the map's scores */
    unsigned confirmed;  /* of these, refined further and checked against the phases */
    unsigned decoded;
    unsigned projected; /* of these, tried with perspective */
};

static const struct league_bounds league_bounds[LEAGUES] = {
    [LEAGUE_UPRIGHT] = {96, 64, 16, 3},
    [LEAGUE_TURNED] = {256, 64, 20, 1},
    [LEAGUE_STRETCHED] = {candidates_max, 64, 20, 1},
    [LEAGUE_BENT] = {128, 32, 8, 2},
};

/* The best candidates of a league: a heap whose root has the lowest score. */
struct candidate_pool {
    unsigned most;
    unsigned count;
    unsigned tried; /* of the candidates in order, after they were ranked by the phases */
    struct candidate heap[candidates_max];
};

struct search {
    struct reader *reader;
    struct spectrum luma;
    struct spectrum blue;
    bool has_blue;
    float *noise;       /* mean power around each bin of luma's grid */
    float *ratios;      /* of power to noise, at each bin of luma's grid; its first two rows follow again */
    uint8_t *polar_map; /* map_angles rows of rho_count + map_pad places */
    int rho_count;
    int scale_count;
    uint16_t *scores;   /* of one angle, in whole blocks */
    uint16_t *greatest; /* of each block */
    struct candidate_pool pools[LEAGUES];
    double tones_kx[lattice_tones];
    double tones_ky[lattice_tones];
    fftwf_complex *fit;
    fftwf_plan fit_plan;
};

ENGINE_CLONES
static void powers_take(const fftwf_complex *grid, float *power, size_t count)
{
    for (size_t i = 0; i < count; i++)
        power[i] = grid[i][0] * grid[i][0] + grid[i][1] * grid[i][1];
}

ENGINE_CLONES
static void powers_cap(float *power, const float *mean, size_t count)
{
    for (size_t i = 0; i < count; i++)
        power[i] = power[i] < 4 * mean[i] ? power[i] : 4 * mean[i];
}

ENGINE_CLONES
static void powers_divide(float *restrict power, const float *restrict noise, size_t count)
{
    for (size_t i = 0; i < count; i++)
        power[i] /= noise[i] + noise_least;
}

/* Estimates the noise as the mean power of the neighbourhood, with peaks capped. */
static bool noise_estimate(struct search *search, float *power)
{
    const struct spectrum *luma = &search->luma;
    struct workspace *workspace = search->reader->workspace;
    int columns = luma->columns / 2 + 1;
    size_t count = (size_t)luma->rows * (size_t)columns;
    int radius = (int)(noise_share * fmin(luma->columns, luma->rows)) + 2;

    search->noise = workspace_take_unset(workspace, count, sizeof(float));
    size_t mark = workspace_mark(workspace);
    float *capped = workspace_take_unset(workspace, count, sizeof(float));
    float *scratch = workspace_take_unset(workspace, count, sizeof(float));
    if (workspace->failed)
        return false;
    memcpy(capped, power, count * sizeof *power);
    plane_blur(capped, search->noise, columns, luma->rows, radius, scratch);
    powers_cap(capped, search->noise, count);
    plane_blur(capped, search->noise, columns, luma->rows, radius, scratch);
    workspace_rewind(workspace, mark);
    return true;
}

ENGINE_INLINE float noise_at(const struct search *search, double fx, double fy)
{
    const struct spectrum *luma = &search->luma;
    double side = fx < 0 ? -1 : 1;
    double y = side * fy;
    int column = (int)(side * fx * luma->columns + 0.5);
    int row = (int)((y < 0 ? y + 1 : y) * luma->rows + 0.5);

    row = row >= luma->rows ? 0 : row;
    return search->noise[row * (luma->columns / 2 + 1) + column] + noise_least;
}

/*
 * Interpolates the ratio of power to noise between the four bins around a frequency below frequency_high,
 * fx >= 0. turn is 1 if fy < 0, else 0: the grid is periodic.
 */
ENGINE_INLINE float ratio_around(const struct search *search, double fx, double fy, double turn)
{
    double across = fx * search->luma.columns;
    double down = (fy + turn) * search->luma.rows;
    int columns = search->luma.columns / 2 + 1;
    int column = (int)across;
    int row = (int)down;
    const float *a = search->ratios + row * columns + column;
    const float *b = a + columns;
    float wx = (float)(across - column);
    float wy = (float)(down - row);
    float upper = a[0] + wx * (a[1] - a[0]);
    float lower = b[0] + wx * (b[1] - b[0]);

    return upper + wy * (lower - upper);
}

static uint8_t *map_row(const struct search *search, int angle)
{
    return search->polar_map + map_pad + (size_t)angle * (size_t)(search->rho_count + map_pad);
}

/* Gives places without data the mean of the others, so that scores at different scales are comparable. */
ENGINE_CLONES
static void map_even(struct search *search)
{
    unsigned sum = 0;
    unsigned count = 0;

    for (int angle = 0; angle < map_angles; angle++) {
        const uint8_t *map = map_row(search, angle);

        for (int rho = 0; rho < search->rho_count; rho++) {
            sum += map[rho];
            count += map[rho] > 0;
        }
    }
    uint8_t mean = (uint8_t)(count > 0 ? sum / count : 0);
    for (int angle = 0; angle < map_angles; angle++) {
        uint8_t *map = map_row(search, angle);

        for (int rho = 0; rho < search->rho_count; rho++)
            map[rho] = map[rho] == 0 ? mean : map[rho];
    }
}

/* Fills one angle of the map: the ratios along a ray. */
ENGINE_CLONES
static void ray_fill(const struct search *search, int angle, const double *frequencies)
{
    double cosine = cos(M_PI * angle / map_angles - M_PI / 2);
    double sine = sin(M_PI * angle / map_angles - M_PI / 2);
    double turn = sine < 0;
    double most = frequency_high / fmax(cosine, fabs(sine));
    uint8_t *map = map_row(search, angle);

    for (int rho = 0; rho < search->rho_count && frequencies[rho] < most; rho++) {
        float ratio = ratio_around(search, frequencies[rho] * cosine, frequencies[rho] * sine, turn);

        map[rho] = (uint8_t)((ratio < power_cap ? ratio : power_cap) * byte_scale);
    }
}

/* Resamples the ratios over angle and log frequency, one byte per place. */
static bool polar_fill(struct search *search)
{
    struct workspace *workspace = search->reader->workspace;
    size_t mark = workspace_mark(workspace);
    double *frequencies = workspace_take_unset(workspace, (size_t)search->rho_count, sizeof *frequencies);

    if (frequencies == NULL)
        return false;
    for (int rho = 0; rho < search->rho_count; rho++)
        frequencies[rho] = frequency_low * exp(rho * rho_step);
    for (int angle = 0; angle < map_angles; angle++)
        ray_fill(search, angle, frequencies);
    workspace_rewind(workspace, mark);
    return true;
}

static void pool_sift(struct candidate_pool *pool, unsigned at)
{
    struct candidate *heap = pool->heap;

    for (;;) {
        unsigned child = 2 * at + 1;

        if (child >= pool->count)
            return;
        if (child + 1 < pool->count && heap[child + 1].score < heap[child].score)
            child++;
        if (heap[at].score <= heap[child].score)
            return;
        struct candidate swapped = heap[at];
        heap[at] = heap[child];
        heap[child] = swapped;
        at = child;
    }
}

static void pool_offer(struct candidate_pool *pool, const struct candidate *candidate)
{
    if (pool->count < pool->most) {
        pool->heap[pool->count++] = *candidate;
        for (unsigned i = pool->most / 2; pool->count == pool->most && i-- > 0;)
            pool_sift(pool, i);
        return;
    }
    if (candidate->score <= pool->heap[0].score)
        return;
    pool->heap[0] = *candidate;
    pool_sift(pool, 0);
}

/* Places of an upright pattern's tones on the map, for a stretch and a mirror. */
struct template
{
    int angle[lattice_tones];
    int rho[lattice_tones];
    struct candidate candidate;
    bool is_bent;
};

static void template_fill(struct template *template, const struct lattice *lattice, double stretch,
                          double shear, bool is_mirrored)
{
    template->candidate = (struct candidate){.stretch = stretch, .shear = shear, .is_mirrored = is_mirrored};
    for (unsigned i = 0; i < lattice_tones; i++) {
        double y = lattice->tones[i].ky * exp(stretch / 2) / lattice_period;
        double x =
            lattice->tones[i].kx * exp(-stretch / 2) * (is_mirrored ? -1 : 1) / lattice_period + shear * y;

        template->angle[i] =
            (int)lround((atan2(y, x) + M_PI / 2 + 2 * M_PI) / M_PI * map_angles) % map_angles;
        template->rho[i] = (int)lround(log(hypot(x, y) * scale_low / frequency_low) / rho_step);
    }
}

static enum league league_of(const struct template *template, int angle)
{
    if (template->is_bent)
        return LEAGUE_BENT;
    if (template->candidate.stretch < 0 || template->candidate.stretch > 0 || template->candidate.is_mirrored)
        return LEAGUE_STRETCHED;
    return angle <= upright_angle || angle >= map_angles - upright_angle ? LEAGUE_UPRIGHT : LEAGUE_TURNED;
}

/*
 * Adds up a block of the map's rows, in registers. Returns the greatest sum. Places beyond a row lie in the
 * pad: a tone's coordinates are at least 2 and its radius at most 25, so rows begin at -152 to 459.
 */
ENGINE_CLONES
static uint16_t block_sum(const uint8_t *const rows[lattice_tones], int first, uint16_t *restrict scores)
{
    uint16_t sums[score_block] = {0};
    uint16_t greatest = 0;

    for (unsigned tone = 0; tone < lattice_tones; tone++)
        for (int i = 0; i < score_block; i++)
            sums[i] = (uint16_t)(sums[i] + rows[tone][first + i]);
    for (int i = 0; i < score_block; i++) {
        scores[i] = sums[i];
        greatest = sums[i] > greatest ? sums[i] : greatest;
    }
    return greatest;
}

/* Offers the local maxima of a block of scores. */
static void scores_offer(struct search *search, struct candidate_pool *pool, struct candidate *candidate,
                         int first)
{
    for (int i = first; i < first + score_block; i++) {
        const uint16_t *at = search->scores + i;

        candidate->score = at[0];
        if (pool->count == pool->most && candidate->score <= pool->heap[0].score)
            continue;
        if (i < 1 || i + 1 >= search->scale_count || at[0] < at[-1] || at[0] < at[1])
            continue;
        candidate->scale = scale_low * exp(i * rho_step);
        pool_offer(pool, candidate);
    }
}

static void angle_score(struct search *search, const struct template *template, int angle)
{
    struct candidate_pool *pool = &search->pools[league_of(template, angle)];
    struct candidate candidate = template->candidate;
    const uint8_t *rows[lattice_tones];

    for (unsigned i = 0; i < lattice_tones; i++)
        rows[i] = map_row(search, (template->angle[i] + angle) % map_angles) + template->rho[i];
    for (int block = 0; block * score_block < search->scale_count; block++)
        search->greatest[block] = block_sum(rows, block * score_block, search->scores + block * score_block);
    candidate.angle = M_PI * angle / map_angles;
    for (int block = 0; block * score_block < search->scale_count; block++)
        if (pool->count < pool->most || (float)search->greatest[block] > pool->heap[0].score)
            scores_offer(search, pool, &candidate, block * score_block);
}

static void angles_score(struct search *search, const struct template *template, int middle)
{
    for (int angle = middle - bent_angle; angle <= middle + bent_angle; angle++)
        angle_score(search, template, (angle + map_angles) % map_angles);
}

/*
 * Ranks upright pictures with a stretch of up to 1 : 1.49 or a shear of up to 0.15 along rows or columns. A
 * shear along columns equals a shear along rows with a rotation.
 */
static void bent_rank(struct search *search)
{
    const struct lattice *lattice = search->reader->lattice;
    struct template template = {.is_bent = true};

    for (int step = aspect_count + 1; step <= bent_count; step++) {
        template_fill(&template, lattice, step * aspect_step, 0, false);
        angles_score(search, &template, 0);
        template_fill(&template, lattice, -step * aspect_step, 0, false);
        angles_score(search, &template, 0);
    }
    for (int step = -shear_count; step <= shear_count; step++) {
        double shear = step * aspect_step;

        template_fill(&template, lattice, 0, shear, false);
        angles_score(search, &template, 0);
        angles_score(search, &template, (int)lround(shear / M_PI * map_angles));
    }
}

/* Ranks the poses of all leagues. A stretched picture is searched only near multiples of 90 degrees. */
static void poses_rank(struct search *search)
{
    struct template template = {.is_bent = false};

    for (int mirror = 0; mirror < 2; mirror++) {
        for (int step = -aspect_count; step <= aspect_count; step++) {
            template_fill(&template, search->reader->lattice, step * aspect_step, 0, mirror);
            for (int angle = 0; angle < map_angles; angle++) {
                int beside = angle % (map_angles / 2);

                if (step == 0 || beside <= aspect_angle || beside >= map_angles / 2 - aspect_angle)
                    angle_score(search, &template, angle);
            }
        }
    }
}

/* Computes the pose's matrix: the transpose of the map from lattice points to frequencies. */
static void candidate_pose(struct candidate *candidate)
{
    double cosine = candidate->scale * cos(candidate->angle);
    double sine = candidate->scale * sin(candidate->angle);
    double x = exp(-candidate->stretch / 2) * (candidate->is_mirrored ? -1 : 1);
    double y = exp(candidate->stretch / 2);
    double sheared[2] = {candidate->shear * y, y}; /* image of the vertical unit vector */

    candidate->pose.matrix[0] = cosine * x;
    candidate->pose.matrix[1] = sine * x;
    candidate->pose.matrix[2] = cosine * sheared[0] - sine * sheared[1];
    candidate->pose.matrix[3] = sine * sheared[0] + cosine * sheared[1];
}

/* Computes the frequency of a tone in a pose. Returns false beyond the band. */
static bool tone_place(const struct search *search, const struct pose *pose, unsigned i, double frequency[2])
{
    const struct lattice_tone *tone = &search->reader->lattice->tones[i];

    frequency[0] = (pose->matrix[0] * tone->kx + pose->matrix[2] * tone->ky) / lattice_period;
    frequency[1] = (pose->matrix[1] * tone->kx + pose->matrix[3] * tone->ky) / lattice_period;
    return fabs(frequency[0]) < frequency_high && fabs(frequency[1]) < frequency_high;
}

/* Computes the spectrum at a tone in a pose, divided by the noise. Returns false beyond the band. */
static bool tone_at(const struct search *search, const struct pose *pose, unsigned i, struct value *value)
{
    double frequency[2];

    if (!tone_place(search, pose, i, frequency))
        return false;
    *value = spectrum_at(&search->luma, frequency[0], frequency[1]);
    float factor = 1 / sqrtf(noise_at(search, frequency[0], frequency[1]));
    value->real *= factor;
    value->imaginary *= factor;
    return true;
}

/* Computes the frequencies of the tones in a pose, as far as they lie in the band. Returns their count. */
ENGINE_CLONES
static unsigned tones_place(const struct search *search, const struct pose *pose, double fx[lattice_tones],
                            double fy[lattice_tones])
{
    unsigned count = 0;

    for (unsigned i = 0; i < lattice_tones; i++) {
        fx[i] =
            (pose->matrix[0] * search->tones_kx[i] + pose->matrix[2] * search->tones_ky[i]) / lattice_period;
        fy[i] =
            (pose->matrix[1] * search->tones_kx[i] + pose->matrix[3] * search->tones_ky[i]) / lattice_period;
    }
    for (unsigned i = 0; i < lattice_tones; i++) {
        fx[count] = fx[i];
        fy[count] = fy[i];
        count += fabs(fx[i]) < frequency_high && fabs(fy[i]) < frequency_high;
    }
    return count;
}

/* Returns the product of 1 + power to noise. */
ENGINE_CLONES
static double ratios_product(const struct search *search, const double *fx, const double *fy, unsigned count,
                             const struct value *values)
{
    double factors[lattice_tones];
    double product = 1;

    for (unsigned i = 0; i < count; i++) {
        float power = values[i].real * values[i].real + values[i].imaginary * values[i].imaginary;

        power /= noise_at(search, fx[i], fy[i]);
        factors[i] = 1 + (double)(power < power_most ? power : power_most);
    }
    for (unsigned i = 0; i < count; i++)
        product *= factors[i];
    return product;
}

/*
 * Returns the sum over the tones of log(1 + power), minus the expectation for noise. A single logarithm of
 * the product is cheaper.
 */
static float pose_score(const struct search *search, struct candidate *candidate)
{
    double fx[lattice_tones];
    double fy[lattice_tones];
    struct value values[lattice_tones];

    candidate_pose(candidate);
    unsigned count = tones_place(search, &candidate->pose, fx, fy);
    spectrum_corners_take(&search->luma, fx, fy, count, values);
    return (float)log(ratios_product(search, fx, fy, count, values)) - 0.6f * (float)count;
}

/*
 * Refines a candidate by coordinate ascent with halving steps. The first step is a share of half a step of
 * the map.
 */
static void candidate_refine(const struct search *search, struct candidate *candidate, double share,
                             int rounds)
{
    double steps[4] = {share * rho_step / 2, share * M_PI / map_angles / 2, share * aspect_step / 2,
                       share * aspect_step / 2};

    candidate->score = pose_score(search, candidate);
    for (int round = 0; round < rounds; round++) {
        bool is_better = false;

        for (unsigned i = 0; i < 8; i++) {
            struct candidate tried = *candidate;
            double step = (i & 1 ? -1 : 1) * steps[i / 2];

            tried.scale *= i / 2 == 0 ? exp(step) : 1;
            tried.angle += i / 2 == 1 ? step : 0;
            tried.stretch += i / 2 == 2 ? step : 0;
            tried.shear += i / 2 == 3 ? step : 0;
            tried.score = pose_score(search, &tried);
            if (tried.score > candidate->score) {
                *candidate = tried;
                is_better = true;
                i |= 1; /* skips the opposite step, which would undo this step */
            }
        }
        for (unsigned i = 0; i < 4 && !is_better; i++)
            steps[i] /= 2;
    }
}

/* Reads the tones in a pose relative to their keyed phases, with large ones capped; 0 beyond the band. */
static void tones_take(const struct search *search, const struct pose *pose,
                       struct value tones[lattice_tones])
{
    memset(tones, 0, lattice_tones * sizeof *tones);
    for (unsigned i = 0; i < lattice_tones; i++) {
        const struct lattice_tone *tone = &search->reader->lattice->tones[i];
        struct value at;

        if (!tone_at(search, pose, i, &at))
            continue;
        float size = sqrtf(at.real * at.real + at.imaginary * at.imaginary);
        size = size > 3 ? 3 / size : 1;
        tones[i] = (struct value){size * (at.real * tone->cosine + at.imaginary * tone->sine),
                                  size * (at.imaginary * tone->cosine - at.real * tone->sine)};
    }
}

/* Finds the offset at which the tones' phases agree best, and the score of that offset. */
static void candidate_fit(struct search *search, struct candidate *candidate)
{
    struct value tones[lattice_tones];
    float best = 0;
    int place = 0;

    tones_take(search, &candidate->pose, tones);
    memset(search->fit, 0, sizeof *search->fit * fit_side * fit_side);
    for (unsigned i = 0; i < lattice_tones; i++) {
        const struct lattice_tone *tone = &search->reader->lattice->tones[i];
        size_t bin = (size_t)((tone->ky + fit_side) % fit_side) * fit_side + (size_t)tone->kx;

        search->fit[bin][0] = tones[i].real;
        search->fit[bin][1] = tones[i].imaginary;
    }
    fftwf_execute(search->fit_plan);
    for (int at = 0; at < fit_side * fit_side; at++) {
        if (search->fit[at][0] > best) {
            best = search->fit[at][0];
            place = at;
        }
    }
    candidate->score = best;
    candidate->pose.offset[0] = (double)(place % fit_side) * lattice_period / fit_side;
    candidate->pose.offset[1] = (double)(place / fit_side) * lattice_period / fit_side;
}

/* Returns the agreement of the tones with an offset. */
static float offset_score(const struct search *search, const struct value tones[lattice_tones],
                          const double offset[2])
{
    float sum = 0;

    for (unsigned i = 0; i < lattice_tones; i++) {
        const struct lattice_tone *tone = &search->reader->lattice->tones[i];
        double turn = 2 * M_PI * (tone->kx * offset[0] + tone->ky * offset[1]) / lattice_period;

        sum += tones[i].real * (float)cos(turn) + tones[i].imaginary * (float)sin(turn);
    }
    return sum;
}

static void offset_refine(const struct search *search, struct pose *pose)
{
    double step = lattice_period / (2.0 * fit_side);
    struct value tones[lattice_tones];

    tones_take(search, pose, tones);
    float best = offset_score(search, tones, pose->offset);
    for (int round = 0; round < 12; round++) {
        bool is_better = false;

        for (int i = 0; i < 4; i++) {
            double tried[2] = {pose->offset[0], pose->offset[1]};

            tried[i / 2] += i & 1 ? -step : step;
            float score = offset_score(search, tones, tried);
            if (score > best) {
                best = score;
                memcpy(pose->offset, tried, sizeof tried);
                is_better = true;
            }
        }
        if (!is_better)
            step /= 2;
    }
}

static int candidate_compare(const void *left, const void *right)
{
    const struct candidate *a = left;
    const struct candidate *b = right;

    return a->score < b->score ? 1 : a->score > b->score ? -1 : 0;
}

/* Turns a candidate by 180 degrees if the phases then agree better; the magnitudes do not change. */
static void candidate_turn(struct search *search, struct candidate *candidate)
{
    struct candidate turned = *candidate;

    candidate_fit(search, candidate);
    for (unsigned i = 0; i < 4; i++)
        turned.pose.matrix[i] = -turned.pose.matrix[i];
    turned.angle += M_PI;
    candidate_fit(search, &turned);
    if (turned.score > candidate->score)
        *candidate = turned;
}

/* Returns true if two refined candidates are the same pose. */
static bool is_same(const struct candidate *a, const struct candidate *b)
{
    double difference = 0;

    for (unsigned i = 0; i < 4; i++)
        difference += fabs(a->pose.matrix[i] - b->pose.matrix[i]);
    return difference < 0.0015 * a->scale;
}

/* Returns true if the first count candidates of the pool include the same pose. */
static bool pool_has(const struct candidate_pool *pool, unsigned count, const struct candidate *candidate)
{
    for (unsigned i = 0; i < count; i++)
        if (is_same(&pool->heap[i], candidate))
            return true;
    return false;
}

/* Returns true if the same pose was tried in an earlier league. */
static bool is_tried(const struct search *search, unsigned league, const struct candidate *candidate)
{
    for (unsigned i = 0; i < league; i++)
        if (pool_has(&search->pools[i], search->pools[i].tried, candidate))
            return true;
    return false;
}

/* Keeps each pose once, and at most the given number of poses. */
static void pool_reduce(struct candidate_pool *pool, unsigned most)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < pool->count && kept < most; i++)
        if (!pool_has(pool, kept, &pool->heap[i]))
            pool->heap[kept++] = pool->heap[i];
    pool->count = kept;
}

static void report_fill(struct watermark_report *report, const struct candidate *candidate)
{
    report->rotation_degree = remainder(candidate->angle * 180 / M_PI, 360);
    report->scale = 1 / candidate->scale;
    report->aspect = exp(candidate->stretch);
    report->is_mirrored = candidate->is_mirrored;
}

/* Refines a league's candidates, keeps the best distinct poses, and ranks them by the phases. */
static void pool_confirm(struct search *search, struct candidate_pool *pool, unsigned most)
{
    for (unsigned i = 0; i < pool->count; i++)
        candidate_refine(search, &pool->heap[i], 1, 4);
    qsort(pool->heap, pool->count, sizeof *pool->heap, candidate_compare);
    pool_reduce(pool, most);
    for (unsigned i = 0; i < pool->count; i++) {
        candidate_refine(search, &pool->heap[i], 0.5, 8);
        candidate_turn(search, &pool->heap[i]);
    }
    qsort(pool->heap, pool->count, sizeof *pool->heap, candidate_compare);
    pool_reduce(pool, pool->count);
}

/* Decodes at the best poses of every league. */
static bool pools_read(struct search *search, struct watermark_report *report)
{
    const struct spectrum *blue = search->has_blue ? &search->blue : NULL;

    for (unsigned league = 0; league < LEAGUES; league++) {
        struct candidate_pool *pool = &search->pools[league];

        pool_confirm(search, pool, league_bounds[league].confirmed);
        for (; pool->tried < pool->count && pool->tried < league_bounds[league].decoded; pool->tried++) {
            struct candidate *candidate = &pool->heap[pool->tried];

            if (is_tried(search, league, candidate))
                continue;
            offset_refine(search, &candidate->pose);
            if (reader_read_posed(search->reader, &search->luma, blue, &candidate->pose)) {
                report_fill(report, candidate);
                return true;
            }
        }
    }
    return false;
}

/* Computes the inverse of the noise's amplitude at each tone; 0 beyond the band. */
static void tone_weights(const struct search *search, const struct pose *pose, float weights[lattice_tones])
{
    for (unsigned i = 0; i < lattice_tones; i++) {
        double frequency[2];

        weights[i] = tone_place(search, pose, i, frequency)
                         ? 1 / sqrtf(noise_at(search, frequency[0], frequency[1]))
                         : 0;
    }
}

/* Tries the best poses of every league with perspective. */
static bool bends_read(struct search *search, struct bend *bend, struct watermark_report *report)
{
    for (unsigned league = 0; league < LEAGUES; league++) {
        struct candidate_pool *pool = &search->pools[league];

        for (pool->tried = 0; pool->tried < pool->count && pool->tried < league_bounds[league].projected;
             pool->tried++) {
            const struct candidate *candidate = &pool->heap[pool->tried];
            float weights[lattice_tones];

            if (is_tried(search, league, candidate))
                continue;
            tone_weights(search, &candidate->pose, weights);
            if (bend_read(bend, &candidate->pose, weights)) {
                search->reader->has_pose = false;
                report_fill(report, candidate);
                return true;
            }
        }
    }
    return false;
}

static bool search_prepare(struct search *search, struct whitened *whitened, const struct plane *plane)
{
    struct workspace *workspace = search->reader->workspace;

    if (!spectrum_make(whitened->luma, plane->width, plane->height, workspace, &search->luma))
        return false;
    search->has_blue = whitened->blue != NULL;
    if (search->has_blue &&
        !spectrum_make(whitened->blue, plane->width, plane->height, workspace, &search->blue))
        return false;
    size_t count = (size_t)search->luma.rows * (size_t)(search->luma.columns / 2 + 1);
    search->rho_count = (int)(log(0.7 / frequency_low) / rho_step);
    search->scale_count = (int)(log(scale_high / scale_low) / rho_step);
    float *power = workspace_take_unset(
        workspace, count / (size_t)search->luma.rows * ((size_t)search->luma.rows + 2), sizeof *power);
    search->polar_map =
        workspace_take(workspace, map_pad + (size_t)map_angles * (size_t)(search->rho_count + map_pad), 1);
    search->scores =
        workspace_take(workspace, (size_t)search->scale_count + score_block, sizeof *search->scores);
    search->greatest =
        workspace_take(workspace, (size_t)search->scale_count / score_block + 1, sizeof *search->greatest);
    search->fit = workspace_take(workspace, fit_side * fit_side, sizeof *search->fit);
    if (workspace->failed)
        return false;
    powers_take(search->luma.grid, power, count);
    if (!noise_estimate(search, power))
        return false;
    powers_divide(power, search->noise, count);
    memcpy(power + count, power, 2 * (count / (size_t)search->luma.rows) * sizeof *power);
    search->ratios = power;
    if (!polar_fill(search))
        return false;
    map_even(search);
    search->fit_plan =
        fftwf_plan_dft_2d(fit_side, fit_side, search->fit, search->fit, FFTW_FORWARD, FFTW_ESTIMATE);
    return search->fit_plan != NULL;
}

enum iw_error search_read(struct reader *reader, struct whitened *whitened, const struct plane *plane,
                          struct watermark_report *report)
{
    struct search *search = workspace_take(reader->workspace, 1, sizeof *search);

    if (search == NULL)
        return IW_NO_MEMORY;
    search->reader = reader;
    for (unsigned league = 0; league < LEAGUES; league++)
        search->pools[league].most = league_bounds[league].candidates;
    for (unsigned i = 0; i < lattice_tones; i++) {
        search->tones_kx[i] = reader->lattice->tones[i].kx;
        search->tones_ky[i] = reader->lattice->tones[i].ky;
    }
    if (!search_prepare(search, whitened, plane))
        return IW_NO_MEMORY;
    poses_rank(search);
    bent_rank(search);
    struct bend bend = {.fit_plan = NULL};
    bool is_read = pools_read(search, report);
    if (!is_read && bend_init(&bend, reader, whitened, plane))
        is_read = bends_read(search, &bend, report);
    bend_fini(&bend);
    fftwf_destroy_plan(search->fit_plan);
    return is_read ? IW_OK : IW_WATERMARK_NOT_FOUND;
}
