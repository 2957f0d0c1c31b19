/*
 * The body of a convolution for one width of vector.  Included by
 * protect_conv.c with CONV_NAME, CONV_TARGET, CONV_LANES (floats a vector),
 * CONV_PIXELS and CONV_VECTORS (the block of sums that fits the registers).
 */
#define CONV_PASTE(left, right) left##right
#define CONV_JOIN(left, right)  CONV_PASTE(left, right)
#define CONV_VECTOR             CONV_JOIN(CONV_NAME, _vector)
#define CONV_BLOCK              CONV_JOIN(CONV_NAME, _block)

typedef float CONV_VECTOR __attribute__((vector_size(CONV_LANES * 4), aligned(4), may_alias));

/* CONV_PIXELS columns times CONV_VECTORS vectors of outputs, all sums in registers. */
CONV_TARGET static inline __attribute__((always_inline)) void
CONV_BLOCK(const struct conv *conv, const float *const rows[3], float *out, unsigned first,
           const unsigned vectors, const unsigned pixels)
{
    CONV_VECTOR sums[CONV_PIXELS * CONV_VECTORS];
    const unsigned run = conv->inputs * 3, step = conv->inputs * conv->stride, outputs = conv->outputs;
#pragma GCC unroll 32
    for (unsigned i = 0; i < pixels * vectors; i++)
        sums[i] = *(const CONV_VECTOR *)(conv->bias + first + i % vectors * CONV_LANES);
    const float *weights = conv->weights + first;
    for (unsigned row = 0; row < 3; row++) {
        const float *input = rows[row];
        for (unsigned k = 0; k < run; k++, weights += outputs, input++) {
            CONV_VECTOR weight[CONV_VECTORS];
#pragma GCC unroll 4
            for (unsigned v = 0; v < vectors; v++)
                weight[v] = *(const CONV_VECTOR *)(weights + v * CONV_LANES);
#pragma GCC unroll 16
            for (unsigned p = 0; p < pixels; p++) {
#pragma GCC unroll 4
                for (unsigned v = 0; v < vectors; v++)
                    sums[p * vectors + v] += weight[v] * input[p * step];
            }
        }
    }
#pragma GCC unroll 16
    for (unsigned p = 0; p < pixels; p++) {
#pragma GCC unroll 4
        for (unsigned v = 0; v < vectors; v++)
            *(CONV_VECTOR *)(out + p * outputs + first + v * CONV_LANES) = sums[p * vectors + v];
    }
}

CONV_TARGET static void CONV_NAME(const struct conv *conv, const float *const rows[3], float *out,
                                  unsigned columns)
{
    const unsigned step = conv->inputs * conv->stride;
    for (unsigned column = 0; column < columns; column += CONV_PIXELS) {
        const float *const here[3] = {rows[0] + (size_t)column * step, rows[1] + (size_t)column * step,
                                      rows[2] + (size_t)column * step};
        for (unsigned first = 0; first < conv->outputs; first += CONV_VECTORS * CONV_LANES)
            CONV_BLOCK(conv, here, out + (size_t)column * conv->outputs, first, CONV_VECTORS, CONV_PIXELS);
    }
}

#undef CONV_PASTE
#undef CONV_JOIN
#undef CONV_VECTOR
#undef CONV_BLOCK
