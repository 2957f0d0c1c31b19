#include "engine/watermark/jpegsim.h"

#include <stddef.h>

#include "engine/clones.h"

enum {
    block_side = 8,
    strip_blocks = 32, /* processed together; they fit the L1 cache */
    strip_lanes = block_side * strip_blocks
};

/* The example tables K.1 and K.2 of T.81, which libjpeg uses at quality 50. */
static const float luma_table[block_side * block_side] = {
    16, 11,  10,  16, 24, 40, 51, 61, 12,  12,  14,  19,  26, 58, 60, 55,  14,  13,  16,  24, 40, 57,
    69, 56,  14,  17, 22, 29, 51, 87, 80,  62,  18,  22,  37, 56, 68, 109, 103, 77,  24,  35, 55, 64,
    81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98,  112, 100, 103, 99};
static const float chroma_table[block_side * block_side] = {
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
    99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99};

/* cos(k pi / 16) / 2: the factors of the orthonormal DCT-II (T.81, A.3.3). */
static const float c1 = 0.49039264020161522f;
static const float c2 = 0.46193976625564337f;
static const float c3 = 0.41573480615127262f;
static const float c4 = 0.35355339059327379f;
static const float c5 = 0.27778511650980114f;
static const float c6 = 0.19134171618254492f;
static const float c7 = 0.09754516100806417f;

/* 3 * 2^22: adding and subtracting it rounds a number below 2^22 to the nearest integer, halves to even. */
static const float rounder = 12582912.0f;

/* A row of blocks, and the same row with every block transposed. */
struct strip {
    float lines[block_side][strip_lanes];
    float transposed[block_side][strip_lanes];
};

/* Applies the DCT down the columns, even and odd halves separately. */
ENGINE_CLONES
static void dct_columns(float lines[block_side][strip_lanes])
{
    for (int x = 0; x < strip_lanes; x++) {
        float s0 = lines[0][x] + lines[7][x];
        float s1 = lines[1][x] + lines[6][x];
        float s2 = lines[2][x] + lines[5][x];
        float s3 = lines[3][x] + lines[4][x];
        float d0 = lines[0][x] - lines[7][x];
        float d1 = lines[1][x] - lines[6][x];
        float d2 = lines[2][x] - lines[5][x];
        float d3 = lines[3][x] - lines[4][x];

        lines[0][x] = ((s0 + s3) + (s1 + s2)) * c4;
        lines[4][x] = ((s0 + s3) - (s1 + s2)) * c4;
        lines[2][x] = (s0 - s3) * c2 + (s1 - s2) * c6;
        lines[6][x] = (s0 - s3) * c6 - (s1 - s2) * c2;
        lines[1][x] = (d0 * c1 + d1 * c3) + (d2 * c5 + d3 * c7);
        lines[3][x] = (d0 * c3 - d1 * c7) - (d2 * c1 + d3 * c5);
        lines[5][x] = (d0 * c5 - d1 * c1) + (d2 * c7 + d3 * c3);
        lines[7][x] = (d0 * c7 - d1 * c5) + (d2 * c3 - d3 * c1);
    }
}

ENGINE_CLONES
static void idct_columns(float lines[block_side][strip_lanes])
{
    for (int x = 0; x < strip_lanes; x++) {
        float a = (lines[0][x] + lines[4][x]) * c4;
        float b = (lines[0][x] - lines[4][x]) * c4;
        float c = lines[2][x] * c2 + lines[6][x] * c6;
        float d = lines[2][x] * c6 - lines[6][x] * c2;
        float k1 = lines[1][x];
        float k3 = lines[3][x];
        float k5 = lines[5][x];
        float k7 = lines[7][x];
        float d0 = (k1 * c1 + k3 * c3) + (k5 * c5 + k7 * c7);
        float d1 = (k1 * c3 - k3 * c7) - (k5 * c1 + k7 * c5);
        float d2 = (k1 * c5 - k3 * c1) + (k5 * c7 + k7 * c3);
        float d3 = (k1 * c7 - k3 * c5) + (k5 * c3 - k7 * c1);

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

static void blocks_transpose(const float from[block_side][strip_lanes], float to[block_side][strip_lanes])
{
    for (int block = 0; block < strip_lanes; block += block_side)
        for (int i = 0; i < block_side; i++)
            for (int j = 0; j < block_side; j++)
                to[i][block + j] = from[j][block + i];
}

/* In transposed blocks, line k holds the frequency k along x. */
ENGINE_CLONES
static void blocks_quantise(float transposed[block_side][strip_lanes], const float *table, float coarseness)
{
    for (int k = 0; k < block_side; k++) {
        float steps[block_side];
        float factors[block_side];

        for (int i = 0; i < block_side; i++) {
            steps[i] = table[i * block_side + k] * coarseness;
            factors[i] = 1 / steps[i];
        }
        for (int block = 0; block < strip_lanes; block += block_side)
            for (int i = 0; i < block_side; i++)
                transposed[k][block + i] =
                    ((transposed[k][block + i] * factors[i] + rounder) - rounder) * steps[i];
    }
}

static void strip_pass(struct strip *strip, const float *table, float coarseness)
{
    dct_columns(strip->lines);
    blocks_transpose(strip->lines, strip->transposed);
    dct_columns(strip->transposed);
    blocks_quantise(strip->transposed, table, coarseness);
    idct_columns(strip->transposed);
    blocks_transpose(strip->transposed, strip->lines);
    idct_columns(strip->lines);
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Loads a strip. Blocks beyond the right and the lower edge repeat the last sample. */
static void strip_load(struct strip *strip, const float *plane, int width, int rows, int columns,
                       float offset)
{
    int x;

    for (int y = 0; y < block_side; y++) {
        const float *from = plane + (size_t)smaller(y, rows - 1) * (size_t)width;

        for (x = 0; x < columns; x++)
            strip->lines[y][x] = from[x] - offset;
        for (; x < strip_lanes; x++)
            strip->lines[y][x] = from[columns - 1] - offset;
    }
}

/* Rounds and clips to the range of a byte, as a decoder does. */
ENGINE_CLONES
static void line_store(const float *restrict line, float *restrict to, int columns, float offset)
{
    float least_value = offset - 128;
    float most_value = offset + 127;

    for (int x = 0; x < columns; x++) {
        float value = ((line[x] + offset) + rounder) - rounder;

        to[x] = value < least_value ? least_value : value > most_value ? most_value : value;
    }
}

static void plane_pass(float *plane, int width, int height, const float *table, float coarseness,
                       float offset)
{
    struct strip strip;

    for (int top = 0; top < height; top += block_side) {
        for (int left = 0; left < width; left += strip_lanes) {
            float *place = plane + (size_t)top * (size_t)width + left;
            int columns = smaller(width - left, strip_lanes);
            int rows = smaller(height - top, block_side);

            strip_load(&strip, place, width, rows, columns, offset);
            strip_pass(&strip, table, coarseness);
            for (int y = 0; y < rows; y++)
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

    for (int y = 0; y < half_height; y++) {
        for (int x = 0; x < half_width; x++) {
            const float *upper = plane + (size_t)(2 * y) * (size_t)width;
            const float *lower = plane + (size_t)smaller(2 * y + 1, height - 1) * (size_t)width;
            int right = smaller(2 * x + 1, width - 1);

            half[(size_t)y * (size_t)half_width + (size_t)x] =
                (upper[2 * x] + upper[right] + lower[2 * x] + lower[right]) / 4;
        }
    }
    plane_pass(half, half_width, half_height, chroma_table, coarseness, 0);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            plane[(size_t)y * (size_t)width + (size_t)x] =
                half[(size_t)(y / 2) * (size_t)half_width + (size_t)(x / 2)];
}
