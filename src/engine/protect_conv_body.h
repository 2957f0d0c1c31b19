/*
 * The kernels for one width of vector.  Included by protect_conv.c with
 * CONV_NAME, CONV_TARGET, CONV_LANES (floats a vector), CONV_PIXELS and
 * CONV_VECTORS (the block of sums that fits the registers).
 */
#define CONV_PASTE(left, right) left##right
#define CONV_JOIN(left, right)  CONV_PASTE(left, right)
#define CONV_VECTOR             CONV_JOIN(CONV_NAME, _vector)
#define CONV_BLOCK              CONV_JOIN(CONV_NAME, _block)
#define CONV_ROW                CONV_JOIN(CONV_NAME, _row)
#define CONV_TRANSFORM          CONV_JOIN(CONV_NAME, _transform)
#define CONV_INVERSE            CONV_JOIN(CONV_NAME, _inverse)
#define CONV_GROUPS             CONV_JOIN(CONV_NAME, _groups)

typedef float CONV_VECTOR __attribute__((vector_size(CONV_LANES * 4), aligned(4), may_alias));

/*
 * CONV_PIXELS places times CONV_VECTORS vectors of outputs, all sums in
 * registers: from three rows, run values of each from the place's first on,
 * places step values apart.
 */
CONV_TARGET static inline __attribute__((always_inline)) void
CONV_BLOCK(const float *weights, const float *bias, unsigned outputs, const float *const rows[3],
           unsigned run, unsigned step, float *out)
{
    CONV_VECTOR sums[CONV_PIXELS * CONV_VECTORS];
#pragma GCC unroll 32
    for (unsigned i = 0; i < CONV_PIXELS * CONV_VECTORS; i++)
        sums[i] =
            bias != NULL ? *(const CONV_VECTOR *)(bias + i % CONV_VECTORS * CONV_LANES) : (CONV_VECTOR){0};
    for (unsigned row = 0; row < 3; row++) {
        const float *input = rows[row];
        for (unsigned k = 0; k < run; k++, weights += outputs, input++) {
            CONV_VECTOR weight[CONV_VECTORS];
#pragma GCC unroll 4
            for (unsigned v = 0; v < CONV_VECTORS; v++)
                weight[v] = *(const CONV_VECTOR *)(weights + v * CONV_LANES);
#pragma GCC unroll 16
            for (unsigned p = 0; p < CONV_PIXELS; p++) {
#pragma GCC unroll 4
                for (unsigned v = 0; v < CONV_VECTORS; v++)
                    sums[p * CONV_VECTORS + v] += weight[v] * input[p * step];
            }
        }
    }
#pragma GCC unroll 16
    for (unsigned p = 0; p < CONV_PIXELS; p++) {
#pragma GCC unroll 4
        for (unsigned v = 0; v < CONV_VECTORS; v++)
            *(CONV_VECTOR *)(out + p * outputs + v * CONV_LANES) = sums[p * CONV_VECTORS + v];
    }
}

CONV_TARGET static void CONV_ROW(const struct conv *conv, const float *const rows[3], float *out,
                                 unsigned columns)
{
    const unsigned step = conv->inputs * conv->stride;
    for (size_t column = 0; column < columns; column += CONV_PIXELS) {
        const float *const here[3] = {rows[0] + column * step, rows[1] + column * step,
                                      rows[2] + column * step};
        for (unsigned first = 0; first < conv->outputs; first += CONV_VECTORS * CONV_LANES)
            CONV_BLOCK(conv->weights + first, conv->bias + first, conv->outputs, here, conv->inputs * 3, step,
                       out + column * conv->outputs + first);
    }
}

CONV_TARGET static void CONV_TRANSFORM(const float *row, unsigned channels, unsigned groups, float *planes,
                                       size_t plane_values)
{
    for (unsigned group = 0; group < groups; group++) {
        const float *from = row + (size_t)group * conv_group_columns * channels;
        float *to = planes + (size_t)group * channels;
        for (unsigned i = 0; i < channels; i += CONV_LANES) {
            CONV_VECTOR d[conv_group_planes];
#pragma GCC unroll 6
            for (unsigned k = 0; k < conv_group_planes; k++)
                d[k] = *(const CONV_VECTOR *)(from + k * channels + i);
            CONV_VECTOR even = d[4] - 4 * d[2], odd = d[3] - 4 * d[1];
            CONV_VECTOR even2 = d[4] - d[2], odd2 = 2 * (d[3] - d[1]);
            *(CONV_VECTOR *)(to + i) = 4 * d[0] - 5 * d[2] + d[4];
            *(CONV_VECTOR *)(to + 1 * plane_values + i) = even + odd;
            *(CONV_VECTOR *)(to + 2 * plane_values + i) = even - odd;
            *(CONV_VECTOR *)(to + 3 * plane_values + i) = even2 + odd2;
            *(CONV_VECTOR *)(to + 4 * plane_values + i) = even2 - odd2;
            *(CONV_VECTOR *)(to + 5 * plane_values + i) = 4 * d[1] - 5 * d[3] + d[5];
        }
    }
}

/* Four outputs of each of CONV_PIXELS groups from products[plane][group][outputs]. */
CONV_TARGET static inline __attribute__((always_inline)) void
CONV_INVERSE(const float *products, const float *bias, unsigned outputs, float *out)
{
    const size_t plane = (size_t)CONV_PIXELS * outputs;
    for (unsigned group = 0; group < CONV_PIXELS; group++) {
        for (unsigned i = 0; i < outputs; i += CONV_LANES) {
            CONV_VECTOR m[conv_group_planes], base = *(const CONV_VECTOR *)(bias + i);
#pragma GCC unroll 6
            for (unsigned k = 0; k < conv_group_planes; k++)
                m[k] = *(const CONV_VECTOR *)(products + k * plane + (size_t)group * outputs + i);
            CONV_VECTOR sum = m[1] + m[2], difference = m[1] - m[2];
            CONV_VECTOR sum2 = m[3] + m[4], difference2 = m[3] - m[4];
            float *to = out + (size_t)group * conv_group_columns * outputs + i;
            *(CONV_VECTOR *)to = base + m[0] + sum + sum2;
            *(CONV_VECTOR *)(to + outputs) = base + difference + 2 * difference2;
            *(CONV_VECTOR *)(to + 2 * outputs) = base + sum + 4 * sum2;
            *(CONV_VECTOR *)(to + 3 * outputs) = base + difference + 8 * difference2 + m[5];
        }
    }
}

CONV_TARGET static void CONV_GROUPS(const struct conv *conv, const float *const rows[3], size_t plane_values,
                                    float *out, unsigned groups)
{
    float products[conv_group_planes * CONV_PIXELS * conv_outputs_max] __attribute__((aligned(64)));
    const unsigned inputs = conv->inputs, outputs = conv->outputs;
    for (size_t group = 0; group < groups; group += CONV_PIXELS) {
        for (unsigned plane = 0; plane < conv_group_planes; plane++) {
            const size_t skip = plane * plane_values + group * inputs;
            const float *const here[3] = {rows[0] + skip, rows[1] + skip, rows[2] + skip};
            const float *weights = conv->weights + (size_t)plane * 3 * inputs * outputs;
            for (unsigned first = 0; first < outputs; first += CONV_VECTORS * CONV_LANES)
                CONV_BLOCK(weights + first, NULL, outputs, here, inputs, inputs,
                           products + (size_t)plane * CONV_PIXELS * outputs + first);
        }
        CONV_INVERSE(products, conv->bias, outputs, out + group * conv_group_columns * outputs);
    }
}

static const struct conv_kernels CONV_NAME = {CONV_ROW, CONV_TRANSFORM, CONV_GROUPS};

#undef CONV_PASTE
#undef CONV_JOIN
#undef CONV_VECTOR
#undef CONV_BLOCK
#undef CONV_ROW
#undef CONV_TRANSFORM
#undef CONV_INVERSE
#undef CONV_GROUPS
