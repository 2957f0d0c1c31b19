#include "engine/jpegsim.h"

#include <math.h>
#include <stddef.h>

#include "engine/clones.h"

#define PI   3.14159265358979323846
#define SIDE 8

/* The example tables of T.81 (K.1 and K.2) are those of quality 50. */
static const float luma_table[SIDE * SIDE] = {
    16, 11,  10,  16, 24, 40, 51, 61, 12,  12,  14,  19,  26, 58, 60, 55,  14,  13,  16,  24, 40, 57,
    69, 56,  14,  17, 22, 29, 51, 87, 80,  62,  18,  22,  37, 56, 68, 109, 103, 77,  24,  35, 55, 64,
    81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98,  112, 100, 103, 99};
static const float chroma_table[SIDE * SIDE] = {
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
    99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99};

struct basis {
    float rows[SIDE * SIDE]; /* rows[k * SIDE + x] */
    float columns[SIDE * SIDE];
};

static void basis_fill(struct basis *basis)
{
    int k;
    int x;

    for (k = 0; k < SIDE; k++) {
        for (x = 0; x < SIDE; x++) {
            double value = sqrt((k == 0 ? 1.0 : 2.0) / SIDE) * cos((2 * x + 1) * k * PI / (2 * SIDE));

            basis->rows[k * SIDE + x] = (float)value;
            basis->columns[x * SIDE + k] = (float)value;
        }
    }
}

/* product = left * right, all SIDE by SIDE. */
static inline void multiply(const float *left, const float *right, float *product)
{
    int i;
    int j;
    int k;

    for (i = 0; i < SIDE; i++) {
        float line[SIDE] = {0};

        for (k = 0; k < SIDE; k++)
            for (j = 0; j < SIDE; j++)
                line[j] += left[i * SIDE + k] * right[k * SIDE + j];
        for (j = 0; j < SIDE; j++)
            product[i * SIDE + j] = line[j];
    }
}

ENGINE_CLONES
static void block_pass(float *block, const struct basis *basis, const float *table)
{
    float half[SIDE * SIDE];
    float coefficients[SIDE * SIDE];
    int i;

    multiply(basis->rows, block, half);
    multiply(half, basis->columns, coefficients);
    for (i = 0; i < SIDE * SIDE; i++)
        coefficients[i] = rintf(coefficients[i] / table[i]) * table[i];
    multiply(basis->columns, coefficients, half);
    multiply(half, basis->rows, block);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Blocks over the right and the lower edge repeat the last sample. */
static void plane_pass(float *plane, int width, int height, const float *table, float offset)
{
    struct basis basis;
    int left;
    int top;
    int i;

    basis_fill(&basis);
    for (top = 0; top < height; top += SIDE) {
        for (left = 0; left < width; left += SIDE) {
            float block[SIDE * SIDE];

            for (i = 0; i < SIDE * SIDE; i++)
                block[i] = plane[(size_t)least(top + i / SIDE, height - 1) * (size_t)width +
                                 (size_t)least(left + i % SIDE, width - 1)] -
                           offset;
            block_pass(block, &basis, table);
            for (i = 0; i < SIDE * SIDE; i++)
                if (top + i / SIDE < height && left + i % SIDE < width)
                    plane[(size_t)(top + i / SIDE) * (size_t)width + (size_t)(left + i % SIDE)] =
                        rintf(block[i] + offset);
        }
    }
}

void jpegsim_luma(float *plane, int width, int height)
{
    plane_pass(plane, width, height, luma_table, 128);
}

void jpegsim_chroma(float *plane, int width, int height, float *half)
{
    int half_width = (width + 1) / 2;
    int half_height = (height + 1) / 2;
    int x;
    int y;

    for (y = 0; y < half_height; y++) {
        for (x = 0; x < half_width; x++) {
            const float *upper = plane + (size_t)(2 * y) * (size_t)width;
            const float *lower = plane + (size_t)least(2 * y + 1, height - 1) * (size_t)width;
            int right = least(2 * x + 1, width - 1);

            half[(size_t)y * (size_t)half_width + (size_t)x] =
                (upper[2 * x] + upper[right] + lower[2 * x] + lower[right]) / 4;
        }
    }
    plane_pass(half, half_width, half_height, chroma_table, 0);
    for (y = 0; y < height; y++)
        for (x = 0; x < width; x++)
            plane[(size_t)y * (size_t)width + (size_t)x] =
                half[(size_t)(y / 2) * (size_t)half_width + (size_t)(x / 2)];
}
