#include "engine/watermark/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/watermark/clones.h"

#define PI             3.14159265358979323846
#define ANGLES         1080  /* over half a turn: the other half mirrors it */
#define RHO_STEP       0.004 /* of the logarithm of a frequency */
#define FREQUENCY_LOW  0.0105
#define FREQUENCY_HIGH 0.49
#define SCALE_LOW      0.22 /* pattern pixels a plane pixel, inverse */
#define SCALE_HIGH     4.8
#define ASPECT_STEP    0.005
#define ASPECT_COUNT   33 /* steps to each side */
#define ASPECT_ANGLE   30 /* how many angle steps beside the axes a stretched picture may be turned */
#define BENT_COUNT     80 /* steps to each side of more than that, and of shear, */
#define SHEAR_COUNT    30
#define BENT_ANGLE     8 /* of upright pictures that are hardly turned as well */
#define POWER_CAP      10.0f
#define BYTE_SCALE     25.0f
#define NOISE_LEAST    1e-20f
#define POWER_MOST     1e12 /* of a tone: the product over all stays a number */
#define NOISE_SHARE    0.02 /* half the side of the square over which noise is averaged, cycles a pixel */
#define CANDIDATES     384  /* of a league at most */
#define UPRIGHT_ANGLE  1    /* angle steps that still count as upright */
#define FIT_SIDE       64   /* of the FFT that finds the offset */

/* A pose to be looked at: frequency = scale * rotation * stretch * mirror * lattice point. */
struct candidate {
    double scale;
    double angle;
    double stretch; /* ratio of horizontal to vertical, as a logarithm */
    double shear;
    bool is_mirrored;
    float score;
    struct pose pose;
};

/*
 * Poses compete within their league.  What happens to most pictures, a crop or a
 * change of size, leaves few poses to choose from, and a weak true one stands
 * out among few where it would drown among all.
 */
enum league { LEAGUE_UPRIGHT, LEAGUE_TURNED, LEAGUE_STRETCHED, LEAGUE_BENT, LEAGUES };

struct league_bounds {
    unsigned candidates; /* kept by the map's scores */
    unsigned confirmed;  /* of these, refined further and held against the phases */
    unsigned decoded;
};

static const struct league_bounds league_bounds[LEAGUES] = {
    [LEAGUE_UPRIGHT] = {96, 64, 16},
    [LEAGUE_TURNED] = {256, 64, 20},
    [LEAGUE_STRETCHED] = {CANDIDATES, 64, 20},
    [LEAGUE_BENT] = {128, 32, 8},
};

/* The best candidates of a league; a heap whose root is the least of them. */
struct pool {
    unsigned most;
    unsigned count;
    struct candidate heap[CANDIDATES];
};

struct search {
    struct reader *reader;
    struct spectrum luma;
    struct spectrum blue;
    bool has_blue;
    float *noise; /* mean power around each bin of luma's grid */
    uint8_t *polar_map;
    int rho_count;
    int scale_count;
    uint16_t *scores; /* of one angle */
    struct pool pools[LEAGUES];
    fftwf_complex *fit;
    fftwf_plan fit_plan;
};

ENGINE_CLONES
static void powers_take(const fftwf_complex *grid, float *power, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        power[i] = grid[i][0] * grid[i][0] + grid[i][1] * grid[i][1];
}

ENGINE_CLONES
static void powers_cap(float *power, const float *mean, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        power[i] = power[i] < 4 * mean[i] ? power[i] : 4 * mean[i];
}

ENGINE_CLONES
static void powers_divide(float *restrict power, const float *restrict noise, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        power[i] /= noise[i] + NOISE_LEAST;
}

/* The noise is a mean of the power around, in which peaks count little. */
static bool noise_estimate(struct search *search, float *power)
{
    const struct spectrum *luma = &search->luma;
    struct workspace *workspace = search->reader->workspace;
    int columns = luma->columns / 2 + 1;
    size_t count = (size_t)luma->rows * (size_t)columns;
    int radius = (int)(NOISE_SHARE * fmin(luma->columns, luma->rows)) + 2;
    float *capped;
    float *scratch;
    size_t mark;

    search->noise = workspace_take(workspace, count, sizeof(float));
    mark = workspace_mark(workspace);
    capped = workspace_take(workspace, count, sizeof(float));
    scratch = workspace_take(workspace, count, sizeof(float));
    if (workspace->failed)
        return false;
    memcpy(capped, power, count * sizeof *power);
    plane_blur(capped, search->noise, columns, luma->rows, radius, scratch);
    powers_cap(capped, search->noise, count);
    plane_blur(capped, search->noise, columns, luma->rows, radius, scratch);
    workspace_rewind(workspace, mark);
    return true;
}

static float noise_at(const struct search *search, double fx, double fy)
{
    const struct spectrum *luma = &search->luma;
    int column;
    int row;

    if (fx < 0) {
        fx = -fx;
        fy = -fy;
    }
    column = (int)(fx * luma->columns + 0.5);
    row = (int)((fy < 0 ? fy + 1 : fy) * luma->rows + 0.5) % luma->rows;
    return search->noise[(size_t)row * (size_t)(luma->columns / 2 + 1) + (size_t)column] + NOISE_LEAST;
}

/* The ratio of power to noise at a frequency, between the four bins around it. */
static float ratio_around(const struct search *search, const float *ratios, double fx, double fy)
{
    const struct spectrum *luma = &search->luma;
    int columns = luma->columns / 2 + 1;
    int column = (int)(fx * luma->columns);
    double place = (fy < 0 ? fy + 1 : fy) * luma->rows;
    int row = (int)place % luma->rows;
    int below = (row + 1) % luma->rows;
    const float *a = ratios + (size_t)row * (size_t)columns + column;
    const float *b = ratios + (size_t)below * (size_t)columns + column;
    int next = column + 1 < columns;
    float upper;
    float lower;
    float wx;
    float wy;

    wx = (float)(fx * luma->columns - column);
    wy = (float)(place - (int)place);
    upper = a[0] + wx * (a[next] - a[0]);
    lower = b[0] + wx * (b[next] - b[0]);
    return upper + wy * (lower - upper);
}

/* The map's value where nothing can be: its mean over noise. */
static uint8_t polar_mean(const struct search *search)
{
    double sum = 0;
    size_t count = 0;
    size_t i;

    for (i = 0; i < (size_t)ANGLES * (size_t)search->rho_count; i++) {
        sum += search->polar_map[i];
        count += search->polar_map[i] > 0;
    }
    return (uint8_t)(count > 0 ? sum / (double)count : 0);
}

/* One angle of the map: the ratios along a ray. */
static void ray_fill(const struct search *search, const float *ratios, int angle, const double *frequencies)
{
    double cosine = cos(PI * angle / ANGLES - PI / 2);
    double sine = sin(PI * angle / ANGLES - PI / 2);
    uint8_t *map = search->polar_map + (size_t)angle * (size_t)search->rho_count;
    int rho;

    for (rho = 0; rho < search->rho_count; rho++) {
        double fx = frequencies[rho] * cosine;
        double fy = frequencies[rho] * sine;
        float ratio = 0;

        if (fabs(fx) < FREQUENCY_HIGH && fabs(fy) < FREQUENCY_HIGH)
            ratio = ratio_around(search, ratios, fx, fy);
        map[rho] = (uint8_t)((ratio < POWER_CAP ? ratio : POWER_CAP) * BYTE_SCALE);
    }
}

/* The spectrum over angle and the logarithm of frequency, a byte a place; power becomes its ratio to the
 * noise. */
static bool polar_fill(struct search *search, float *power, size_t count)
{
    struct workspace *workspace = search->reader->workspace;
    size_t mark = workspace_mark(workspace);
    double *frequencies = workspace_take_unset(workspace, (size_t)search->rho_count, sizeof *frequencies);
    int angle;
    int rho;

    if (frequencies == NULL)
        return false;
    for (rho = 0; rho < search->rho_count; rho++)
        frequencies[rho] = FREQUENCY_LOW * exp(rho * RHO_STEP);
    powers_divide(power, search->noise, count);
    for (angle = 0; angle < ANGLES; angle++)
        ray_fill(search, power, angle, frequencies);
    workspace_rewind(workspace, mark);
    return true;
}

/* Where nothing can be counts as noise does, so that scales compare. */
static void polar_even(struct search *search)
{
    uint8_t mean = polar_mean(search);
    size_t i;

    for (i = 0; i < (size_t)ANGLES * (size_t)search->rho_count; i++)
        if (search->polar_map[i] == 0)
            search->polar_map[i] = mean;
}

ENGINE_CLONES
static void scores_add(uint16_t *restrict scores, const uint8_t *restrict map, int count)
{
    int i;

    for (i = 0; i < count; i++)
        scores[i] = (uint16_t)(scores[i] + map[i]);
}

static void pool_sift(struct pool *pool, unsigned at)
{
    struct candidate *heap = pool->heap;

    for (;;) {
        unsigned child = 2 * at + 1;
        struct candidate swapped;

        if (child >= pool->count)
            return;
        if (child + 1 < pool->count && heap[child + 1].score < heap[child].score)
            child++;
        if (heap[at].score <= heap[child].score)
            return;
        swapped = heap[at];
        heap[at] = heap[child];
        heap[child] = swapped;
        at = child;
    }
}

static void pool_offer(struct pool *pool, const struct candidate *candidate)
{
    unsigned i;

    if (pool->count < pool->most) {
        pool->heap[pool->count++] = *candidate;
        for (i = pool->most / 2; pool->count == pool->most && i-- > 0;)
            pool_sift(pool, i);
        return;
    }
    if (candidate->score <= pool->heap[0].score)
        return;
    pool->heap[0] = *candidate;
    pool_sift(pool, 0);
}

/* Where the tones of an upright pattern lie on the map, for a stretch and a mirror. */
struct template
{
    int angle[LATTICE_TONES];
    int rho[LATTICE_TONES];
    struct candidate candidate;
    bool is_bent;
};

static void template_fill(struct template *template, const struct lattice *lattice, double stretch,
                          double shear, bool is_mirrored)
{
    unsigned i;

    template->candidate = (struct candidate){.stretch = stretch, .shear = shear, .is_mirrored = is_mirrored};
    for (i = 0; i < LATTICE_TONES; i++) {
        double y = lattice->tones[i].ky * exp(stretch / 2) / LATTICE_PERIOD;
        double x =
            lattice->tones[i].kx * exp(-stretch / 2) * (is_mirrored ? -1 : 1) / LATTICE_PERIOD + shear * y;

        template->angle[i] = (int)lround((atan2(y, x) + PI / 2 + 2 * PI) / PI * ANGLES) % ANGLES;
        template->rho[i] = (int)lround(log(hypot(x, y) * SCALE_LOW / FREQUENCY_LOW) / RHO_STEP);
    }
}

static enum league league_of(const struct template *template, int angle)
{
    if (template->is_bent)
        return LEAGUE_BENT;
    if (template->candidate.stretch < 0 || template->candidate.stretch > 0 || template->candidate.is_mirrored)
        return LEAGUE_STRETCHED;
    return angle <= UPRIGHT_ANGLE || angle >= ANGLES - UPRIGHT_ANGLE ? LEAGUE_UPRIGHT : LEAGUE_TURNED;
}

ENGINE_CLONES
static unsigned scores_greatest(const uint16_t *restrict scores, int count)
{
    uint16_t greatest = 0;
    int i;

    for (i = 0; i < count; i++)
        greatest = scores[i] > greatest ? scores[i] : greatest;
    return greatest;
}

/* Offers the peaks of the scores at one angle. */
static void scores_offer(struct search *search, const struct template *template, int angle)
{
    struct candidate candidate = template->candidate;
    struct pool *pool = &search->pools[league_of(template, angle)];
    int i;

    if (pool->count == pool->most &&
        (float)scores_greatest(search->scores, search->scale_count) <= pool->heap[0].score)
        return;
    candidate.angle = PI * angle / ANGLES;
    for (i = 1; i + 1 < search->scale_count; i++) {
        const uint16_t *at = search->scores + i;

        if (at[0] < at[-1] || at[0] < at[1])
            continue;
        candidate.score = at[0];
        if (pool->count == pool->most && candidate.score <= pool->heap[0].score)
            continue;
        candidate.scale = SCALE_LOW * exp(i * RHO_STEP);
        pool_offer(pool, &candidate);
    }
}

static void angle_score(struct search *search, const struct template *template, int angle)
{
    unsigned i;

    memset(search->scores, 0, (size_t)search->scale_count * sizeof *search->scores);
    for (i = 0; i < LATTICE_TONES; i++) {
        const uint8_t *map =
            search->polar_map + (size_t)((template->angle[i] + angle) % ANGLES) * (size_t)search->rho_count;
        int first = template->rho[i] < 0 ? -template->rho[i] : 0;
        int count = search->rho_count - template->rho[i];

        if (count > search->scale_count)
            count = search->scale_count;
        scores_add(search->scores + first, map + template->rho[i] + first, count - first);
    }
    scores_offer(search, template, angle);
}

static void angles_score(struct search *search, const struct template *template, int middle)
{
    int angle;

    for (angle = middle - BENT_ANGLE; angle <= middle + BENT_ANGLE; angle++)
        angle_score(search, template, (angle + ANGLES) % ANGLES);
}

/*
 * Pictures that are stretched by up to 1 : 1.49, or sheared by up to 0.15 along a
 * row or down a column, and else lie as they did.  A shear down the columns is one
 * along the rows that is turned as well.
 */
static void bent_rank(struct search *search)
{
    const struct lattice *lattice = search->reader->lattice;
    struct template template = {.is_bent = true};
    int step;

    for (step = ASPECT_COUNT + 1; step <= BENT_COUNT; step++) {
        template_fill(&template, lattice, step * ASPECT_STEP, 0, false);
        angles_score(search, &template, 0);
        template_fill(&template, lattice, -step * ASPECT_STEP, 0, false);
        angles_score(search, &template, 0);
    }
    for (step = -SHEAR_COUNT; step <= SHEAR_COUNT; step++) {
        double shear = step * ASPECT_STEP;

        template_fill(&template, lattice, 0, shear, false);
        angles_score(search, &template, 0);
        angles_score(search, &template, (int)lround(shear / PI * ANGLES));
    }
}

/* A stretched picture is looked for near the upright and lying poses alone. */
static void poses_rank(struct search *search)
{
    struct template template = {.is_bent = false};
    int mirror;
    int step;
    int angle;

    for (mirror = 0; mirror < 2; mirror++) {
        for (step = -ASPECT_COUNT; step <= ASPECT_COUNT; step++) {
            template_fill(&template, search->reader->lattice, step * ASPECT_STEP, 0, mirror);
            for (angle = 0; angle < ANGLES; angle++) {
                int beside = angle % (ANGLES / 2);

                if (step == 0 || beside <= ASPECT_ANGLE || beside >= ANGLES / 2 - ASPECT_ANGLE)
                    angle_score(search, &template, angle);
            }
        }
    }
}

/* The pose's matrix: the transpose of the map from lattice points to frequencies. */
static void candidate_pose(struct candidate *candidate)
{
    double cosine = candidate->scale * cos(candidate->angle);
    double sine = candidate->scale * sin(candidate->angle);
    double x = exp(-candidate->stretch / 2) * (candidate->is_mirrored ? -1 : 1);
    double y = exp(candidate->stretch / 2);
    double sheared[2] = {candidate->shear * y, y}; /* what the vertical unit becomes */

    candidate->pose.matrix[0] = cosine * x;
    candidate->pose.matrix[1] = sine * x;
    candidate->pose.matrix[2] = cosine * sheared[0] - sine * sheared[1];
    candidate->pose.matrix[3] = sine * sheared[0] + cosine * sheared[1];
}

/* Where the pose moves a tone; false beyond the band. */
static bool tone_place(const struct search *search, const struct pose *pose, unsigned i, double frequency[2])
{
    const struct lattice_tone *tone = &search->reader->lattice->tones[i];

    frequency[0] = (pose->matrix[0] * tone->kx + pose->matrix[2] * tone->ky) / LATTICE_PERIOD;
    frequency[1] = (pose->matrix[1] * tone->kx + pose->matrix[3] * tone->ky) / LATTICE_PERIOD;
    return fabs(frequency[0]) < FREQUENCY_HIGH && fabs(frequency[1]) < FREQUENCY_HIGH;
}

/* The spectrum at a tone as the pose moves it, over the noise there; false beyond the band. */
static bool tone_at(const struct search *search, const struct pose *pose, unsigned i, struct value *value)
{
    double frequency[2];
    float factor;

    if (!tone_place(search, pose, i, frequency))
        return false;
    *value = spectrum_at(&search->luma, frequency[0], frequency[1]);
    factor = 1 / sqrtf(noise_at(search, frequency[0], frequency[1]));
    value->real *= factor;
    value->imaginary *= factor;
    return true;
}

/* The sum over the tones of log(1 + power) less what noise has of it; the logarithm is taken once, of the
 * product. */
static float pose_score(const struct search *search, struct candidate *candidate)
{
    double product = 1;
    float expected = 0;
    unsigned i;

    candidate_pose(candidate);
    for (i = 0; i < LATTICE_TONES; i++) {
        double frequency[2];
        float power;

        if (!tone_place(search, &candidate->pose, i, frequency))
            continue;
        power = spectrum_power_at(&search->luma, frequency[0], frequency[1]) /
                noise_at(search, frequency[0], frequency[1]);
        product *= 1 + fmin((double)power, POWER_MOST);
        expected += 0.6f;
    }
    return (float)log(product) - expected;
}

/* Climbs along one parameter at a time, with steps that halve. */
static void candidate_refine(const struct search *search, struct candidate *candidate, int rounds)
{
    double steps[4] = {RHO_STEP / 2, PI / ANGLES / 2, ASPECT_STEP / 2, ASPECT_STEP / 2};
    int round;
    unsigned i;

    candidate->score = pose_score(search, candidate);
    for (round = 0; round < rounds; round++) {
        bool is_better = false;

        for (i = 0; i < 8; i++) {
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
            }
        }
        for (i = 0; i < 4 && !is_better; i++)
            steps[i] /= 2;
    }
}

/* The offset at which the tones' phases agree best, and how well they do. */
static void candidate_fit(struct search *search, struct candidate *candidate)
{
    float best = 0;
    int place = 0;
    unsigned i;
    int at;

    memset(search->fit, 0, sizeof *search->fit * FIT_SIDE * FIT_SIDE);
    for (i = 0; i < LATTICE_TONES; i++) {
        const struct lattice_tone *tone = &search->reader->lattice->tones[i];
        size_t bin = (size_t)((tone->ky + FIT_SIDE) % FIT_SIDE) * FIT_SIDE + (size_t)tone->kx;
        struct value value;
        float size;

        if (!tone_at(search, &candidate->pose, i, &value))
            continue;
        size = sqrtf(value.real * value.real + value.imaginary * value.imaginary);
        size = size > 3 ? 3 / size : 1;
        search->fit[bin][0] = size * (value.real * tone->cosine + value.imaginary * tone->sine);
        search->fit[bin][1] = size * (value.imaginary * tone->cosine - value.real * tone->sine);
    }
    fftwf_execute(search->fit_plan);
    for (at = 0; at < FIT_SIDE * FIT_SIDE; at++) {
        if (search->fit[at][0] > best) {
            best = search->fit[at][0];
            place = at;
        }
    }
    candidate->score = best;
    candidate->pose.offset[0] = (double)(place % FIT_SIDE) * LATTICE_PERIOD / FIT_SIDE;
    candidate->pose.offset[1] = (double)(place / FIT_SIDE) * LATTICE_PERIOD / FIT_SIDE;
}

/* How well the tones agree with an offset. */
static float offset_score(const struct search *search, const struct pose *pose)
{
    float sum = 0;
    unsigned i;

    for (i = 0; i < LATTICE_TONES; i++) {
        const struct lattice_tone *tone = &search->reader->lattice->tones[i];
        double turn = 2 * PI * (tone->kx * pose->offset[0] + tone->ky * pose->offset[1]) / LATTICE_PERIOD;
        float cosine = (float)cos(turn);
        float sine = (float)sin(turn);
        struct value value;
        float real;
        float imaginary;
        float size;

        if (!tone_at(search, pose, i, &value))
            continue;
        size = sqrtf(value.real * value.real + value.imaginary * value.imaginary);
        size = size > 3 ? 3 / size : 1;
        real = value.real * tone->cosine + value.imaginary * tone->sine;
        imaginary = value.imaginary * tone->cosine - value.real * tone->sine;
        sum += size * (real * cosine + imaginary * sine);
    }
    return sum;
}

static void offset_refine(const struct search *search, struct pose *pose)
{
    double step = LATTICE_PERIOD / (2.0 * FIT_SIDE);
    float best = offset_score(search, pose);
    int round;
    int i;

    for (round = 0; round < 12; round++) {
        bool is_better = false;

        for (i = 0; i < 4; i++) {
            struct pose tried = *pose;
            float score;

            tried.offset[i / 2] += i & 1 ? -step : step;
            score = offset_score(search, &tried);
            if (score > best) {
                best = score;
                *pose = tried;
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

/* A turn by half a circle has the same magnitudes; the phases tell which it is. */
static void candidate_turn(struct search *search, struct candidate *candidate)
{
    struct candidate turned = *candidate;
    unsigned i;

    candidate_fit(search, candidate);
    for (i = 0; i < 4; i++)
        turned.pose.matrix[i] = -turned.pose.matrix[i];
    turned.angle += PI;
    candidate_fit(search, &turned);
    if (turned.score > candidate->score)
        *candidate = turned;
}

/* Whether two refined candidates are the same pose. */
static bool is_same(const struct candidate *a, const struct candidate *b)
{
    double difference = 0;
    unsigned i;

    for (i = 0; i < 4; i++)
        difference += fabs(a->pose.matrix[i] - b->pose.matrix[i]);
    return difference < 0.0015 * a->scale;
}

static void report_fill(struct watermark_report *report, const struct candidate *candidate)
{
    report->rotation_degree = remainder(candidate->angle * 180 / PI, 360);
    report->scale = 1 / candidate->scale;
    report->aspect = exp(candidate->stretch);
    report->is_mirrored = candidate->is_mirrored;
}

/* Refines the candidates of a league and leaves the best, each pose once, held against the phases. */
static void pool_confirm(struct search *search, struct pool *pool, unsigned most)
{
    unsigned kept = 0;
    unsigned i;
    unsigned j;

    for (i = 0; i < pool->count; i++)
        candidate_refine(search, &pool->heap[i], 4);
    qsort(pool->heap, pool->count, sizeof *pool->heap, candidate_compare);
    for (i = 0; i < pool->count && kept < most; i++) {
        for (j = 0; j < kept && !is_same(&pool->heap[i], &pool->heap[j]); j++)
            continue;
        if (j == kept)
            pool->heap[kept++] = pool->heap[i];
    }
    pool->count = kept;
    for (i = 0; i < kept; i++) {
        candidate_refine(search, &pool->heap[i], 12);
        candidate_turn(search, &pool->heap[i]);
    }
    qsort(pool->heap, kept, sizeof *pool->heap, candidate_compare);
}

/* Decodes at the best poses of every league. */
static bool pools_read(struct search *search, struct watermark_report *report)
{
    const struct spectrum *blue = search->has_blue ? &search->blue : NULL;
    unsigned league;
    unsigned i;

    for (league = 0; league < LEAGUES; league++) {
        struct pool *pool = &search->pools[league];

        pool_confirm(search, pool, league_bounds[league].confirmed);
        for (i = 0; i < pool->count && i < league_bounds[league].decoded; i++) {
            offset_refine(search, &pool->heap[i].pose);
            if (reader_read_posed(search->reader, &search->luma, blue, &pool->heap[i].pose)) {
                report_fill(report, &pool->heap[i]);
                return true;
            }
        }
    }
    return false;
}

static bool search_prepare(struct search *search, struct whitened *whitened, const struct plane *plane)
{
    struct workspace *workspace = search->reader->workspace;
    size_t count;
    float *power;

    if (!spectrum_make(whitened->luma, plane->width, plane->height, workspace, &search->luma))
        return false;
    search->has_blue = whitened->blue != NULL;
    if (search->has_blue &&
        !spectrum_make(whitened->blue, plane->width, plane->height, workspace, &search->blue))
        return false;
    count = (size_t)search->luma.rows * (size_t)(search->luma.columns / 2 + 1);
    search->rho_count = (int)(log(0.7 / FREQUENCY_LOW) / RHO_STEP);
    search->scale_count = (int)(log(SCALE_HIGH / SCALE_LOW) / RHO_STEP);
    power = workspace_take(workspace, count, sizeof *power);
    search->polar_map = workspace_take(workspace, (size_t)ANGLES * (size_t)search->rho_count, 1);
    search->scores = workspace_take(workspace, (size_t)search->scale_count, sizeof *search->scores);
    search->fit = workspace_take(workspace, FIT_SIDE * FIT_SIDE, sizeof *search->fit);
    if (workspace->failed)
        return false;
    powers_take(search->luma.grid, power, count);
    if (!noise_estimate(search, power))
        return false;
    if (!polar_fill(search, power, count))
        return false;
    polar_even(search);
    search->fit_plan =
        fftwf_plan_dft_2d(FIT_SIDE, FIT_SIDE, search->fit, search->fit, FFTW_FORWARD, FFTW_ESTIMATE);
    return search->fit_plan != NULL;
}

enum iw_error search_read(struct reader *reader, struct whitened *whitened, const struct plane *plane,
                          struct watermark_report *report)
{
    struct search *search = workspace_take(reader->workspace, 1, sizeof *search);
    unsigned league;
    bool is_read;

    if (search == NULL)
        return IW_NO_MEMORY;
    search->reader = reader;
    for (league = 0; league < LEAGUES; league++)
        search->pools[league].most = league_bounds[league].candidates;
    if (!search_prepare(search, whitened, plane))
        return IW_NO_MEMORY;
    poses_rank(search);
    bent_rank(search);
    is_read = pools_read(search, report);
    fftwf_destroy_plan(search->fit_plan);
    return is_read ? IW_OK : IW_WATERMARK_NOT_FOUND;
}
