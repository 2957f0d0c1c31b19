#include "engine/watermark/fold.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"

enum { phases = 4 * lattice_period };

void fold_basis_fill(struct fold_basis *basis)
{
    float waves[phases];

    for (int k = 0; k < phases; k++)
        waves[k] = (float)cos(2 * M_PI * k / phases);
    memset(basis, 0, sizeof *basis);
    for (int is_odd = 0; is_odd < 2; is_odd++) {
        for (int x = 0; x < lattice_period; x++) {
            for (int k = 0; k <= lattice_reach; k++) {
                int phase = (2 * k + is_odd) * (2 * x + 1) % phases;

                basis->cosine[is_odd][x][k] = waves[phase];
                basis->sine[is_odd][x][k] = waves[(phase + phases - lattice_period) % phases];
            }
        }
    }
}

ENGINE_CLONES
static void fold_line(float *restrict to, const float *restrict from, int width)
{
    for (int x = 0; x < width; x++)
        to[x] += from[x];
}

void fold_row(struct fold *fold, int y, const float *row, int width)
{
    float *line = fold->cells + (size_t)(y % fold_side) * fold_side;

    for (int left = 0; left < width; left += fold_side)
        fold_line(line, row + left, width - left < fold_side ? width - left : fold_side);
}

/*
 * Combines the four periods into a single period. sign is 1 for the lattice's points and -1 for half points,
 * which alternate in sign.
 */
static void period_take(const struct fold *fold, float sign, float *period)
{
    for (int y = 0; y < lattice_period; y++) {
        const float *upper = fold->cells + (size_t)y * fold_side;
        const float *lower = upper + (size_t)lattice_period * fold_side;

        for (int x = 0; x < lattice_period; x++)
            period[y * lattice_period + x] =
                (upper[x] + lower[x + lattice_period]) + sign * (upper[x + lattice_period] + lower[x]);
    }
}

/* Transforms a row along x. */
ENGINE_CLONES
static void row_transform(const float *row, const float cosine[][fold_lanes], const float sine[][fold_lanes],
                          float real[fold_lanes], float imaginary[fold_lanes])
{
    float sums[2][fold_lanes] = {{0}};

    for (int x = 0; x < lattice_period; x++) {
        for (int k = 0; k < fold_lanes; k++) {
            sums[0][k] += row[x] * cosine[x][k];
            sums[1][k] -= row[x] * sine[x][k];
        }
    }
    memcpy(real, sums[0], sizeof sums[0]);
    memcpy(imaginary, sums[1], sizeof sums[1]);
}

/* Sums along y of a frequency ky and of the mirrored frequency, for all frequencies along x. */
struct columns {
    float real[2][fold_lanes]; /* index 0: the frequency, 1: its mirror */
    float imaginary[2][fold_lanes];
};

ENGINE_CLONES
static void columns_transform(const struct fold_scratch *scratch, const float cosine[][fold_lanes],
                              const float sine[][fold_lanes], int ky, struct columns *columns)
{
    float even[2][fold_lanes] = {{0}};
    float odd[2][fold_lanes] = {{0}};

    for (int y = 0; y < lattice_period; y++) {
        for (int k = 0; k < fold_lanes; k++) {
            even[0][k] += scratch->real[y][k] * cosine[y][ky];
            even[1][k] += scratch->imaginary[y][k] * cosine[y][ky];
            odd[0][k] += scratch->real[y][k] * sine[y][ky];
            odd[1][k] += scratch->imaginary[y][k] * sine[y][ky];
        }
    }
    for (int k = 0; k < fold_lanes; k++) {
        columns->real[0][k] = even[0][k] + odd[1][k];
        columns->imaginary[0][k] = even[1][k] - odd[0][k];
        columns->real[1][k] = even[0][k] - odd[1][k];
        columns->imaginary[1][k] = even[1][k] + odd[0][k];
    }
}

/* Stores row ky in the field: values on the lattice's points, powers between them. */
static void field_put(const struct columns *columns, int mirror, int ky, bool is_between, double radius,
                      struct soft_field *field)
{
    int row = ky + lattice_reach;

    for (int kx = 0; kx <= lattice_reach; kx++) {
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

    for (int y = 0; y < lattice_period; y++)
        row_transform(scratch->period + (size_t)y * lattice_period, basis->cosine[is_between],
                      basis->sine[is_between], scratch->real[y], scratch->imaginary[y]);
    for (int ky = 0; ky <= lattice_reach; ky++) {
        int mirrored = is_between ? -ky - 1 : -ky; /* row of the mirrored frequency */

        columns_transform(scratch, basis->cosine[is_between], basis->sine[is_between], ky, &columns);
        field_put(&columns, 0, ky, is_between, radius, field);
        if (mirrored != 0 && mirrored >= -lattice_reach)
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
    soft_noise_fill(field);
}
