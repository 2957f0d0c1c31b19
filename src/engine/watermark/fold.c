#include "engine/watermark/fold.h"

#include <math.h>
#include <string.h>

#include "engine/watermark/clones.h"

#define PI     3.14159265358979323846
#define PHASES (4 * LATTICE_PERIOD)

void fold_basis_fill(struct fold_basis *basis)
{
    float waves[PHASES];
    int is_odd;
    int x;
    int k;

    for (k = 0; k < PHASES; k++)
        waves[k] = (float)cos(2 * PI * k / PHASES);
    memset(basis, 0, sizeof *basis);
    for (is_odd = 0; is_odd < 2; is_odd++) {
        for (x = 0; x < LATTICE_PERIOD; x++) {
            for (k = 0; k <= LATTICE_REACH; k++) {
                int phase = (2 * k + is_odd) * (2 * x + 1) % PHASES;

                basis->cosine[is_odd][x][k] = waves[phase];
                basis->sine[is_odd][x][k] = waves[(phase + PHASES - LATTICE_PERIOD) % PHASES];
            }
        }
    }
}

ENGINE_CLONES
static void line_add(float *restrict to, const float *restrict from, int width)
{
    int x;

    for (x = 0; x < width; x++)
        to[x] += from[x];
}

void fold_row(struct fold *fold, int y, const float *row, int width)
{
    float *line = fold->cells + (size_t)(y % FOLD_SIDE) * FOLD_SIDE;
    int left;

    for (left = 0; left < width; left += FOLD_SIDE)
        line_add(line, row + left, width - left < FOLD_SIDE ? width - left : FOLD_SIDE);
}

/* The four periods as one: as the lattice's points see them, or as the half points do, alternating in sign.
 */
static void period_take(const struct fold *fold, float sign, float *period)
{
    int x;
    int y;

    for (y = 0; y < LATTICE_PERIOD; y++) {
        const float *upper = fold->cells + (size_t)y * FOLD_SIDE;
        const float *lower = upper + (size_t)LATTICE_PERIOD * FOLD_SIDE;

        for (x = 0; x < LATTICE_PERIOD; x++)
            period[y * LATTICE_PERIOD + x] =
                (upper[x] + lower[x + LATTICE_PERIOD]) + sign * (upper[x + LATTICE_PERIOD] + lower[x]);
    }
}

/* One row's spectrum along x. */
ENGINE_CLONES
static void row_transform(const float *row, const float cosine[][FOLD_LANES], const float sine[][FOLD_LANES],
                          float real[FOLD_LANES], float imaginary[FOLD_LANES])
{
    float sums[2][FOLD_LANES] = {{0}};
    int x;
    int k;

    for (x = 0; x < LATTICE_PERIOD; x++) {
        for (k = 0; k < FOLD_LANES; k++) {
            sums[0][k] += row[x] * cosine[x][k];
            sums[1][k] -= row[x] * sine[x][k];
        }
    }
    memcpy(real, sums[0], sizeof sums[0]);
    memcpy(imaginary, sums[1], sizeof sums[1]);
}

/* The sums along y of a frequency there and of its mirror, for all frequencies along x. */
struct columns {
    float real[2][FOLD_LANES]; /* of the frequency, of its mirror */
    float imaginary[2][FOLD_LANES];
};

ENGINE_CLONES
static void columns_transform(const struct fold_scratch *scratch, const float cosine[][FOLD_LANES],
                              const float sine[][FOLD_LANES], int ky, struct columns *columns)
{
    float even[2][FOLD_LANES] = {{0}};
    float odd[2][FOLD_LANES] = {{0}};
    int y;
    int k;

    for (y = 0; y < LATTICE_PERIOD; y++) {
        for (k = 0; k < FOLD_LANES; k++) {
            even[0][k] += scratch->real[y][k] * cosine[y][ky];
            even[1][k] += scratch->imaginary[y][k] * cosine[y][ky];
            odd[0][k] += scratch->real[y][k] * sine[y][ky];
            odd[1][k] += scratch->imaginary[y][k] * sine[y][ky];
        }
    }
    for (k = 0; k < FOLD_LANES; k++) {
        columns->real[0][k] = even[0][k] + odd[1][k];
        columns->imaginary[0][k] = even[1][k] - odd[0][k];
        columns->real[1][k] = even[0][k] - odd[1][k];
        columns->imaginary[1][k] = even[1][k] + odd[0][k];
    }
}

/* Puts what lies at ky into the field: values on the lattice's points, powers between them. */
static void field_put(const struct columns *columns, int mirror, int ky, bool is_between, double radius,
                      struct soft_field *field)
{
    int row = ky + LATTICE_REACH;
    int kx;

    for (kx = 0; kx <= LATTICE_REACH; kx++) {
        float real = columns->real[mirror][kx];
        float imaginary = columns->imaginary[mirror][kx];

        if (!soft_is_needed(kx, ky, radius))
            continue;
        if (is_between)
            field->between[kx][row] = real * real + imaginary * imaginary;
        else
            field->on[kx][row] = (struct value){real, imaginary};
    }
}

static void half_fill(const struct fold_basis *basis, bool is_between, double radius,
                      struct fold_scratch *scratch, struct soft_field *field)
{
    struct columns columns;
    int y;
    int ky;

    for (y = 0; y < LATTICE_PERIOD; y++)
        row_transform(scratch->period + (size_t)y * LATTICE_PERIOD, basis->cosine[is_between],
                      basis->sine[is_between], scratch->real[y], scratch->imaginary[y]);
    for (ky = 0; ky <= LATTICE_REACH; ky++) {
        int mirrored = is_between ? -ky - 1 : -ky; /* which place the frequency's mirror has */

        columns_transform(scratch, basis->cosine[is_between], basis->sine[is_between], ky, &columns);
        field_put(&columns, 0, ky, is_between, radius, field);
        if (mirrored != 0 && mirrored >= -LATTICE_REACH)
            field_put(&columns, 1, mirrored, is_between, radius, field);
    }
}

void fold_field(const struct fold *fold, const struct fold_basis *basis, double radius,
                struct fold_scratch *scratch, struct soft_field *field)
{
    memset(field, 0, sizeof *field);
    period_take(fold, 1, scratch->period);
    half_fill(basis, false, radius, scratch, field);
    period_take(fold, -1, scratch->period);
    half_fill(basis, true, radius, scratch, field);
}
