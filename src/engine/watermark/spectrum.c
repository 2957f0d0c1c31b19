#include "engine/watermark/spectrum.h"

#include <math.h>
#include <string.h>

#define PI           3.14159265358979323846
#define OVERSAMPLING 1.5
#define KERNEL_STEPS 512 /* a tap */

static double kernel_beta(double oversampling)
{
    double ratio = SPECTRUM_TAPS / oversampling;

    return PI * sqrt(ratio * ratio * (oversampling - 0.5) * (oversampling - 0.5) - 0.8);
}

/* The modified Bessel function of order 0, by its series. */
static double bessel(double x)
{
    double term = 1;
    double sum = 1;
    int i;

    for (i = 1; i < 60 && term > sum * 1e-12; i++) {
        term *= (x / (2 * i)) * (x / (2 * i));
        sum += term;
    }
    return sum;
}

/* The least size not under wanted that has no prime factor above 5 and is even. */
static int size_fit(double wanted)
{
    int size;

    for (size = ((int)ceil(wanted) + 1) / 2 * 2;; size += 2) {
        int rest = size;

        while (rest % 2 == 0)
            rest /= 2;
        while (rest % 3 == 0)
            rest /= 3;
        while (rest % 5 == 0)
            rest /= 5;
        if (rest == 1)
            return size;
    }
}

/*
 * What the kernel does to a sample at place x is undone before.  The weights
 * have a mean square of 1, so that noise is as strong on the grid as between
 * its places; the factor that this leaves to be put right is returned.
 */
static double weights_fill(float *weights, int length, int size, double beta)
{
    double squares = 0;
    double scale;
    int i;

    for (i = 0; i < length; i++) {
        double x = (double)(i - length / 2) / size;
        double inner = beta * beta - PI * PI * SPECTRUM_TAPS * SPECTRUM_TAPS * x * x;
        double root = sqrt(fabs(inner));
        double value = inner > 0 ? sinh(root) / root : sin(root) / root;

        weights[i] = (float)(1 / value);
        squares += 1 / (value * value);
    }
    scale = sqrt(length / squares);
    for (i = 0; i < length; i++)
        weights[i] *= (float)scale;
    return 1 / scale;
}

/* Puts sample x of the plane at place x - width / 2 of the periodic grid. */
static void grid_fill(float *grid, const float *samples, const struct spectrum *spectrum, const float *across,
                      const float *down)
{
    int stride = 2 * (spectrum->columns / 2 + 1);
    int x;
    int y;

    for (y = 0; y < spectrum->height; y++) {
        int row = (y - spectrum->height / 2 + spectrum->rows) % spectrum->rows;
        float *to = grid + (size_t)row * (size_t)stride;
        const float *from = samples + (size_t)y * (size_t)spectrum->width;

        for (x = 0; x < spectrum->width; x++)
            to[(x - spectrum->width / 2 + spectrum->columns) % spectrum->columns] =
                from[x] * across[x] * down[y];
    }
}

static const float *kernel_make(struct workspace *workspace, double beta)
{
    float *kernel = workspace_take(workspace, SPECTRUM_TAPS * KERNEL_STEPS + 2, sizeof *kernel);
    double half = SPECTRUM_TAPS / 2.0;
    int i;

    for (i = 0; kernel != NULL && i <= SPECTRUM_TAPS * KERNEL_STEPS; i++) {
        double t = ((double)i / KERNEL_STEPS - half) / half;

        kernel[i] = (float)(bessel(beta * sqrt(fmax(0, 1 - t * t))) / SPECTRUM_TAPS);
    }
    return kernel;
}

bool spectrum_make(float *samples, int width, int height, struct workspace *workspace,
                   struct spectrum *spectrum)
{
    float *across;
    float *down;
    fftwf_plan plan;
    double beta = kernel_beta(OVERSAMPLING);

    spectrum->width = width;
    spectrum->height = height;
    spectrum->columns = size_fit(width * OVERSAMPLING);
    spectrum->rows = size_fit(height * OVERSAMPLING);
    spectrum->grid = workspace_take(workspace, (size_t)spectrum->rows * (size_t)(spectrum->columns / 2 + 1),
                                    sizeof(fftwf_complex));
    spectrum->kernel = kernel_make(workspace, beta);
    across = workspace_take(workspace, (size_t)width, sizeof *across);
    down = workspace_take(workspace, (size_t)height, sizeof *down);
    if (workspace->failed)
        return false;
    spectrum->scale = weights_fill(across, width, spectrum->columns, beta);
    spectrum->scale *= weights_fill(down, height, spectrum->rows, beta);
    grid_fill((float *)spectrum->grid, samples, spectrum, across, down);
    plan = fftwf_plan_dft_r2c_2d(spectrum->rows, spectrum->columns, (float *)spectrum->grid, spectrum->grid,
                                 FFTW_ESTIMATE);
    if (plan == NULL)
        return false;
    fftwf_execute(plan);
    fftwf_destroy_plan(plan);
    return true;
}

/* The grid at any whole place, by its periods and its symmetry. */
static struct value grid_value(const struct spectrum *spectrum, int column, int row)
{
    int half = spectrum->columns / 2;
    const float *at;

    row = (row % spectrum->rows + spectrum->rows) % spectrum->rows;
    column = (column % spectrum->columns + spectrum->columns) % spectrum->columns;
    if (column <= half) {
        at = spectrum->grid[(size_t)row * (size_t)(half + 1) + (size_t)column];
        return (struct value){at[0], at[1]};
    }
    row = (spectrum->rows - row) % spectrum->rows;
    at = spectrum->grid[(size_t)row * (size_t)(half + 1) + (size_t)(spectrum->columns - column)];
    return (struct value){at[0], -at[1]};
}

/* The taps around a place that is not negative; the place of the first. */
static int taps_take(const struct spectrum *spectrum, double place, float taps[SPECTRUM_TAPS])
{
    int first = (int)place - SPECTRUM_TAPS / 2 + 1;
    double offset = (first - place + SPECTRUM_TAPS / 2.0) * KERNEL_STEPS;
    int step = (int)offset;
    float way = (float)(offset - step);
    int i;

    for (i = 0; i < SPECTRUM_TAPS; i++) {
        const float *at = spectrum->kernel + step + (size_t)i * KERNEL_STEPS;

        taps[i] = at[0] + way * (at[1] - at[0]);
    }
    return first;
}

/* Where the taps lie on the grid as it is kept: first down, all parts at once, then across. */
static struct value taps_sum_inside(const struct spectrum *spectrum, int column, int row, const float *across,
                                    const float *down)
{
    const size_t stride = 2 * ((size_t)spectrum->columns / 2 + 1);
    const float *line = (const float *)spectrum->grid + (size_t)row * stride + 2 * (size_t)column;
    float parts[2 * SPECTRUM_TAPS] = {0};
    struct value sum = {0, 0};
    int i;
    int j;

    for (j = 0; j < SPECTRUM_TAPS; j++, line += stride)
        for (i = 0; i < 2 * SPECTRUM_TAPS; i++)
            parts[i] += down[j] * line[i];
    for (i = 0; i < SPECTRUM_TAPS; i++) {
        sum.real += across[i] * parts[2 * i];
        sum.imaginary += across[i] * parts[2 * i + 1];
    }
    return sum;
}

/* The same over the grid's edges. */
static struct value taps_sum_around(const struct spectrum *spectrum, int column, int row, const float *across,
                                    const float *down)
{
    float parts[2 * SPECTRUM_TAPS] = {0};
    struct value sum = {0, 0};
    int i;
    int j;

    for (j = 0; j < SPECTRUM_TAPS; j++) {
        for (i = 0; i < SPECTRUM_TAPS; i++) {
            struct value at = grid_value(spectrum, column + i, row + j);

            parts[2 * i] += down[j] * at.real;
            parts[2 * i + 1] += down[j] * at.imaginary;
        }
    }
    for (i = 0; i < SPECTRUM_TAPS; i++) {
        sum.real += across[i] * parts[2 * i];
        sum.imaginary += across[i] * parts[2 * i + 1];
    }
    return sum;
}

/* At a frequency of fx >= 0, but for the turn by half a sample. */
static struct value value_unturned(const struct spectrum *spectrum, double fx, double fy)
{
    float across[SPECTRUM_TAPS];
    float down[SPECTRUM_TAPS];
    int column = taps_take(spectrum, fx * spectrum->columns, across);
    int row = taps_take(spectrum, (fy < 0 ? fy + 1 : fy) * spectrum->rows, down);
    bool is_inside = column >= 0 && column + SPECTRUM_TAPS <= spectrum->columns / 2 + 1 && row >= 0 &&
                     row + SPECTRUM_TAPS <= spectrum->rows;
    struct value sum = is_inside ? taps_sum_inside(spectrum, column, row, across, down)
                                 : taps_sum_around(spectrum, column, row, across, down);

    sum.real *= (float)spectrum->scale;
    sum.imaginary *= (float)spectrum->scale;
    return sum;
}

float spectrum_power_at(const struct spectrum *spectrum, double fx, double fy)
{
    struct value value = fx < 0 ? value_unturned(spectrum, -fx, -fy) : value_unturned(spectrum, fx, fy);

    return value.real * value.real + value.imaginary * value.imaginary;
}

struct value spectrum_at(const struct spectrum *spectrum, double fx, double fy)
{
    bool is_mirrored = fx < 0;
    struct value sum;
    double turn;

    if (is_mirrored) {
        fx = -fx;
        fy = -fy;
    }
    sum = value_unturned(spectrum, fx, fy);
    /* The middle of a plane of even width lies half a sample beyond the sample at place 0. */
    turn = -PI * ((spectrum->width % 2 == 0 ? fx : 0) + (spectrum->height % 2 == 0 ? fy : 0));
    if (turn != 0) {
        float cosine = (float)cos(turn);
        float sine = (float)sin(turn);

        sum = (struct value){sum.real * cosine - sum.imaginary * sine,
                             sum.real * sine + sum.imaginary * cosine};
    }
    if (is_mirrored)
        sum.imaginary = -sum.imaginary;
    return sum;
}
