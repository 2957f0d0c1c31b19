#include "engine/watermark/spectrum.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"

static const double oversampling = 1.5; /* source: Beatty et al. (spectrum.h) */
enum {
    kernel_steps = 512, /* samples of the kernel per tap */
    kernel_rows = kernel_steps + 2
};

/* Returns the modified Bessel function of order 0, by its power series. */
static double bessel(double x)
{
    double term = 1;
    double sum = 1;

    for (int i = 1; i < 60 && term > sum * 1e-12; i++) {
        term *= (x / (2 * i)) * (x / (2 * i));
        sum += term;
    }
    return sum;
}

/* Returns the smallest even size >= wanted that has no prime factor above 5; FFTW is fast for such sizes. */
static int size_fit(double wanted)
{
    for (int size = ((int)ceil(wanted) + 1) / 2 * 2;; size += 2) {
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
 * Precompensates the kernel's attenuation of a sample at place x. The weights have a mean square
 * of 1, so noise is equally strong on and between the grid's places. Returns the factor that
 * corrects this scale.
 */
static double weights_fill(float *weights, int length, int size, double beta)
{
    double squares = 0;

    for (int i = 0; i < length; i++) {
        double x = (double)(i - length / 2) / size;
        double inner = beta * beta - M_PI * M_PI * spectrum_taps * spectrum_taps * x * x;
        double root = sqrt(fabs(inner));
        double value = inner > 0 ? sinh(root) / root : sin(root) / root;

        weights[i] = (float)(1 / value);
        squares += 1 / (value * value);
    }
    double scale = sqrt(length / squares);
    for (int i = 0; i < length; i++)
        weights[i] *= (float)scale;
    return 1 / scale;
}

/* Stores sample x of the plane at place x - width / 2 of the periodic grid. */
static void grid_fill(float *grid, const float *samples, const struct spectrum *spectrum, const float *across,
                      const float *down)
{
    int stride = 2 * (spectrum->columns / 2 + 1);

    for (int y = 0; y < spectrum->height; y++) {
        int row = (y - spectrum->height / 2 + spectrum->rows) % spectrum->rows;
        float *to = grid + (size_t)row * (size_t)stride;
        const float *from = samples + (size_t)y * (size_t)spectrum->width;

        for (int x = 0; x < spectrum->width; x++)
            to[(x - spectrum->width / 2 + spectrum->columns) % spectrum->columns] =
                from[x] * across[x] * down[y];
    }
}

/*
 * Makes the table of the kernel, in which the values of all taps for an offset lie together. taps_take reads
 * two rows. At an offset of a whole tap the second one has the weight 0.
 */
static const float *kernel_make(struct workspace *workspace, double beta)
{
    float *kernel = workspace_take(workspace, spectrum_taps * kernel_rows, sizeof *kernel);
    double half = spectrum_taps / 2.0;

    for (int i = 0; kernel != NULL && i < spectrum_taps * kernel_rows; i++) {
        double place = i % spectrum_taps + (double)(i / spectrum_taps) / kernel_steps;
        double t = (place - half) / half;

        kernel[i] = (float)(bessel(beta * sqrt(fmax(0, 1 - t * t))) / spectrum_taps);
    }
    return kernel;
}

bool spectrum_make(float *samples, int width, int height, struct workspace *workspace,
                   struct spectrum *spectrum)
{
    /* Kaiser-Bessel kernel width of Beatty et al. (spectrum.h). */
    double ratio = spectrum_taps / oversampling;
    double beta = M_PI * sqrt(ratio * ratio * (oversampling - 0.5) * (oversampling - 0.5) - 0.8);

    spectrum->width = width;
    spectrum->height = height;
    spectrum->columns = size_fit(width * oversampling);
    spectrum->rows = size_fit(height * oversampling);
    spectrum->grid = workspace_take(workspace, (size_t)spectrum->rows * (size_t)(spectrum->columns / 2 + 1),
                                    sizeof(fftwf_complex));
    spectrum->kernel = kernel_make(workspace, beta);
    float *across = workspace_take(workspace, (size_t)width, sizeof *across);
    float *down = workspace_take(workspace, (size_t)height, sizeof *down);
    if (workspace->failed)
        return false;
    spectrum->scale = weights_fill(across, width, spectrum->columns, beta);
    spectrum->scale *= weights_fill(down, height, spectrum->rows, beta);
    grid_fill((float *)spectrum->grid, samples, spectrum, across, down);
    fftwf_plan plan = fftwf_plan_dft_r2c_2d(spectrum->rows, spectrum->columns, (float *)spectrum->grid,
                                            spectrum->grid, FFTW_ESTIMATE);
    if (plan == NULL)
        return false;
    fftwf_execute(plan);
    fftwf_destroy_plan(plan);
    return true;
}

/* Reads the grid at a place at most a period beyond it, by periodicity and symmetry. */
static struct value grid_value(const struct spectrum *spectrum, int column, int row)
{
    int half = spectrum->columns / 2;
    const float *at;

    row += row < 0 ? spectrum->rows : row >= spectrum->rows ? -spectrum->rows : 0;
    column += column < 0 ? spectrum->columns : 0;
    if (column <= half) {
        at = spectrum->grid[(size_t)row * (size_t)(half + 1) + (size_t)column];
        return (struct value){at[0], at[1]};
    }
    row = (spectrum->rows - row) % spectrum->rows;
    at = spectrum->grid[(size_t)row * (size_t)(half + 1) + (size_t)(spectrum->columns - column)];
    return (struct value){at[0], -at[1]};
}

/* The taps around places of an axis. */
struct tap_places {
    int first[spectrum_batch]; /* place of the first tap */
    int step[spectrum_batch];  /* row of the kernel, and the way to the next row */
    float way[spectrum_batch];
};

ENGINE_INLINE void tap_place_take(double place, unsigned i, struct tap_places *places)
{
    int first = (int)place - spectrum_taps / 2 + 1;
    double offset = (first - place + spectrum_taps / 2.0) * kernel_steps;
    int step = (int)offset;

    places->first[i] = first;
    places->step[i] = step;
    places->way[i] = (float)(offset - step);
}

ENGINE_INLINE void taps_take(const struct spectrum *spectrum, const struct tap_places *places, unsigned i,
                             float taps[spectrum_taps])
{
    const float *at = spectrum->kernel + (size_t)places->step[i] * spectrum_taps;

    for (int tap = 0; tap < spectrum_taps; tap++)
        taps[tap] = at[tap] + places->way[i] * (at[tap + spectrum_taps] - at[tap]);
}

/* Sums taps that all lie on the stored half of the grid: first down, then across. */
ENGINE_INLINE struct value taps_sum_inside(const struct spectrum *spectrum, int column, int row,
                                           const float *across, const float *down)
{
    const size_t stride = 2 * ((size_t)spectrum->columns / 2 + 1);
    const float *line = (const float *)spectrum->grid + (size_t)row * stride + 2 * (size_t)column;
    float parts[2 * spectrum_taps] = {0};
    struct value sum = {0, 0};

    for (int j = 0; j < spectrum_taps; j++, line += stride)
        for (int i = 0; i < 2 * spectrum_taps; i++)
            parts[i] += down[j] * line[i];
    for (int i = 0; i < spectrum_taps; i++) {
        sum.real += across[i] * parts[2 * i];
        sum.imaginary += across[i] * parts[2 * i + 1];
    }
    return sum;
}

/* Sums taps across the grid's edges. */
static struct value taps_sum_around(const struct spectrum *spectrum, int column, int row, const float *across,
                                    const float *down)
{
    float parts[2 * spectrum_taps] = {0};
    struct value sum = {0, 0};

    for (int j = 0; j < spectrum_taps; j++) {
        for (int i = 0; i < spectrum_taps; i++) {
            struct value at = grid_value(spectrum, column + i, row + j);

            parts[2 * i] += down[j] * at.real;
            parts[2 * i + 1] += down[j] * at.imaginary;
        }
    }
    for (int i = 0; i < spectrum_taps; i++) {
        sum.real += across[i] * parts[2 * i];
        sum.imaginary += across[i] * parts[2 * i + 1];
    }
    return sum;
}

ENGINE_CLONES
void spectrum_corners_take(const struct spectrum *spectrum, const double *fx, const double *fy,
                           unsigned count, struct value *values)
{
    struct tap_places columns;
    struct tap_places rows;
    const int column_most = spectrum->columns / 2 + 1 - spectrum_taps; /* of the first taps inside */
    const int row_most = spectrum->rows - spectrum_taps;
    const float scale = (float)spectrum->scale;

    for (unsigned i = 0; i < count; i++) {
        double side = fx[i] < 0 ? -1 : 1;
        double y = side * fy[i];

        tap_place_take(side * fx[i] * spectrum->columns, i, &columns);
        tap_place_take((y < 0 ? y + 1 : y) * spectrum->rows, i, &rows);
    }
    for (unsigned i = 0; i < count; i++) {
        float across[spectrum_taps];
        float down[spectrum_taps];
        int column = columns.first[i];
        int row = rows.first[i];
        bool is_inside = column >= 0 && column <= column_most && row >= 0 && row <= row_most;

        taps_take(spectrum, &columns, i, across);
        taps_take(spectrum, &rows, i, down);
        struct value sum = is_inside ? taps_sum_inside(spectrum, column, row, across, down)
                                     : taps_sum_around(spectrum, column, row, across, down);
        values[i].real = sum.real * scale;
        values[i].imaginary = sum.imaginary * (fx[i] < 0 ? -scale : scale);
    }
}

double spectrum_corner_turn(const struct spectrum *spectrum, double fx, double fy)
{
    return -M_PI * ((spectrum->width % 2 == 0 ? fx : 0) + (spectrum->height % 2 == 0 ? fy : 0));
}

struct value spectrum_at(const struct spectrum *spectrum, double fx, double fy)
{
    struct value at;

    spectrum_corners_take(spectrum, &fx, &fy, 1, &at);
    double turn = spectrum_corner_turn(spectrum, fx, fy);
    float cosine = (float)cos(turn);
    float sine = (float)sin(turn);

    return (struct value){at.real * cosine - at.imaginary * sine, at.real * sine + at.imaginary * cosine};
}
