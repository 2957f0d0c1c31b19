#include "engine/watermark/jpegsim.h"

#include <stddef.h>

#include "engine/watermark/clones.h"

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

/* So many blocks side by side are worked on at once: they fit the nearest cache. */
#define BLOCKS 32
#define LANES  (SIDE * BLOCKS)

/* Cosines of k / 16 of half a turn, over 2: the transform's orthonormal factors. */
#define C1 0.49039264020161522f
#define C2 0.46193976625564337f
#define C3 0.41573480615127262f
#define C4 0.35355339059327379f
#define C5 0.27778511650980114f
#define C6 0.19134171618254492f
#define C7 0.09754516100806417f

/* Adding and taking this away rounds a number of less than 22 bits to the nearest whole, halves to even. */
#define ROUNDER 12582912.0f

/* SIDE rows of blocks, and the same with rows and columns of every block exchanged. */
struct strip {
    float lines[SIDE][LANES];
    float turned[SIDE][LANES];
};

/* The cosine transform down the columns; even and odd halves apart. */
ENGINE_CLONES
static void columns_transform(float lines[SIDE][LANES])
{
    int x;

    for (x = 0; x < LANES; x++) {
        float s0 = lines[0][x] + lines[7][x];
        float s1 = lines[1][x] + lines[6][x];
        float s2 = lines[2][x] + lines[5][x];
        float s3 = lines[3][x] + lines[4][x];
        float d0 = lines[0][x] - lines[7][x];
        float d1 = lines[1][x] - lines[6][x];
        float d2 = lines[2][x] - lines[5][x];
        float d3 = lines[3][x] - lines[4][x];

        lines[0][x] = ((s0 + s3) + (s1 + s2)) * C4;
        lines[4][x] = ((s0 + s3) - (s1 + s2)) * C4;
        lines[2][x] = (s0 - s3) * C2 + (s1 - s2) * C6;
        lines[6][x] = (s0 - s3) * C6 - (s1 - s2) * C2;
        lines[1][x] = (d0 * C1 + d1 * C3) + (d2 * C5 + d3 * C7);
        lines[3][x] = (d0 * C3 - d1 * C7) - (d2 * C1 + d3 * C5);
        lines[5][x] = (d0 * C5 - d1 * C1) + (d2 * C7 + d3 * C3);
        lines[7][x] = (d0 * C7 - d1 * C5) + (d2 * C3 - d3 * C1);
    }
}

ENGINE_CLONES
static void columns_restore(float lines[SIDE][LANES])
{
    int x;

    for (x = 0; x < LANES; x++) {
        float a = (lines[0][x] + lines[4][x]) * C4;
        float b = (lines[0][x] - lines[4][x]) * C4;
        float c = lines[2][x] * C2 + lines[6][x] * C6;
        float d = lines[2][x] * C6 - lines[6][x] * C2;
        float k1 = lines[1][x];
        float k3 = lines[3][x];
        float k5 = lines[5][x];
        float k7 = lines[7][x];
        float d0 = (k1 * C1 + k3 * C3) + (k5 * C5 + k7 * C7);
        float d1 = (k1 * C3 - k3 * C7) - (k5 * C1 + k7 * C5);
        float d2 = (k1 * C5 - k3 * C1) + (k5 * C7 + k7 * C3);
        float d3 = (k1 * C7 - k3 * C5) + (k5 * C3 - k7 * C1);

        lines[0][x] = a + c + d0;
        lines[7][x] = a + c - d0;
        lines[1][x] = b + d + d1;
        lines[6][x] = b + d - d1;
        lines[2][x] = b - d + d2;
        lines[5][x] = b - d - d2;
        lines[3][x] = a - c + d3;
        lines[4][x] = a - c - d3;
    }
}

/* Exchanges rows and columns within every block. */
static void blocks_turn(const float from[SIDE][LANES], float to[SIDE][LANES])
{
    int block;
    int i;
    int j;

    for (block = 0; block < LANES; block += SIDE)
        for (i = 0; i < SIDE; i++)
            for (j = 0; j < SIDE; j++)
                to[i][block + j] = from[j][block + i];
}

/* In blocks that are turned, line k holds the frequency k along x. */
ENGINE_CLONES
static void blocks_quantise(float turned[SIDE][LANES], const float *table, float coarseness)
{
    int block;
    int i;
    int k;

    for (k = 0; k < SIDE; k++) {
        float steps[SIDE];
        float factors[SIDE];

        for (i = 0; i < SIDE; i++) {
            steps[i] = table[i * SIDE + k] * coarseness;
            factors[i] = 1 / steps[i];
        }
        for (block = 0; block < LANES; block += SIDE)
            for (i = 0; i < SIDE; i++)
                turned[k][block + i] = ((turned[k][block + i] * factors[i] + ROUNDER) - ROUNDER) * steps[i];
    }
}

static void strip_pass(struct strip *strip, const float *table, float coarseness)
{
    columns_transform(strip->lines);
    blocks_turn(strip->lines, strip->turned);
    columns_transform(strip->turned);
    blocks_quantise(strip->turned, table, coarseness);
    columns_restore(strip->turned);
    blocks_turn(strip->turned, strip->lines);
    columns_restore(strip->lines);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Blocks over the right and the lower edge repeat the last sample. */
static void strip_load(struct strip *strip, const float *plane, int width, int rows, int columns,
                       float offset)
{
    int x;
    int y;

    for (y = 0; y < SIDE; y++) {
        const float *from = plane + (size_t)least(y, rows - 1) * (size_t)width;

        for (x = 0; x < columns; x++)
            strip->lines[y][x] = from[x] - offset;
        for (; x < LANES; x++)
            strip->lines[y][x] = from[columns - 1] - offset;
    }
}

/* In whole numbers and within what a byte holds, as a decoder gives them. */
ENGINE_CLONES
static void line_store(const float *restrict line, float *restrict to, int columns, float offset)
{
    float least_value = offset - 128;
    float most_value = offset + 127;
    int x;

    for (x = 0; x < columns; x++) {
        float value = ((line[x] + offset) + ROUNDER) - ROUNDER;

        to[x] = value < least_value ? least_value : value > most_value ? most_value : value;
    }
}

static void plane_pass(float *plane, int width, int height, const float *table, float coarseness,
                       float offset)
{
    struct strip strip;
    int left;
    int top;
    int y;

    for (top = 0; top < height; top += SIDE) {
        for (left = 0; left < width; left += LANES) {
            float *place = plane + (size_t)top * (size_t)width + left;
            int columns = least(width - left, LANES);
            int rows = least(height - top, SIDE);

            strip_load(&strip, place, width, rows, columns, offset);
            strip_pass(&strip, table, coarseness);
            for (y = 0; y < rows; y++)
                line_store(strip.lines[y], place + (size_t)y * (size_t)width, columns, offset);
        }
    }
}

void jpegsim_luma(float *plane, int width, int height, float coarseness)
{
    plane_pass(plane, width, height, luma_table, coarseness, 128);
}

void jpegsim_chroma(float *plane, int width, int height, float coarseness, float *half)
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
    plane_pass(half, half_width, half_height, chroma_table, coarseness, 0);
    for (y = 0; y < height; y++)
        for (x = 0; x < width; x++)
            plane[(size_t)y * (size_t)width + (size_t)x] =
                half[(size_t)(y / 2) * (size_t)half_width + (size_t)(x / 2)];
}
