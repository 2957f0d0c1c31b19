/*
 * The kernels for one width of vector.  Included by protect_conv.c with
 * CONV_NAME, CONV_TITLE, CONV_TARGET, CONV_LANES (floats a vector), CONV_PIXELS and
 * CONV_VECTORS (the block of sums that fits the registers).
 */
#define CONV_PASTE(left, right) left##right
#define CONV_JOIN(left, right)  CONV_PASTE(left, right)
#define CONV_VECTOR             CONV_JOIN(CONV_NAME, _vector)
#define CONV_INTEGERS           CONV_JOIN(CONV_NAME, _integers)
#define CONV_BLOCK              CONV_JOIN(CONV_NAME, _block)
#define CONV_ROW                CONV_JOIN(CONV_NAME, _row)
#define CONV_DOWN               CONV_JOIN(CONV_NAME, _down)
#define CONV_ALONG              CONV_JOIN(CONV_NAME, _along)
#define CONV_FORWARD            CONV_JOIN(CONV_NAME, _forward)
#define CONV_PLANE              CONV_JOIN(CONV_NAME, _plane)
#define CONV_PRODUCTS           CONV_JOIN(CONV_NAME, _products)
#define CONV_OUTPUTS            CONV_JOIN(CONV_NAME, _outputs)
#define CONV_INVERSE            CONV_JOIN(CONV_NAME, _inverse)
#define CONV_TILES              CONV_JOIN(CONV_NAME, _tiles)

typedef float CONV_VECTOR __attribute__((vector_size(CONV_LANES * 4), aligned(4), may_alias));
typedef int CONV_INTEGERS __attribute__((vector_size(CONV_LANES * 4)));

/*
 * places (at most CONV_PIXELS) times CONV_VECTORS vectors of outputs, all sums in
 * registers: from row_count rows, run values of each from the place's first on,
 * places step values apart.  bias NULL: none.
 */
CONV_TARGET static inline __attribute__((always_inline)) void
CONV_BLOCK(const float *weights, const float *bias, unsigned outputs, const float *const *rows,
           const unsigned row_count, unsigned run, unsigned step, const unsigned places, float *out)
{
    CONV_VECTOR sums[CONV_PIXELS * CONV_VECTORS];
#pragma GCC unroll 32
    for (unsigned i = 0; i < places * CONV_VECTORS; i++)
        sums[i] =
            bias != NULL ? *(const CONV_VECTOR *)(bias + i % CONV_VECTORS * CONV_LANES) : (CONV_VECTOR){0};
    for (unsigned row = 0; row < row_count; row++) {
        const float *input = rows[row];
        for (unsigned k = 0; k < run; k++, weights += outputs, input++) {
            CONV_VECTOR weight[CONV_VECTORS];
#pragma GCC unroll 4
            for (unsigned v = 0; v < CONV_VECTORS; v++)
                weight[v] = *(const CONV_VECTOR *)(weights + v * CONV_LANES);
#pragma GCC unroll 16
            for (unsigned p = 0; p < places; p++) {
#pragma GCC unroll 4
                for (unsigned v = 0; v < CONV_VECTORS; v++)
                    sums[p * CONV_VECTORS + v] += weight[v] * input[p * step];
            }
        }
    }
#pragma GCC unroll 16
    for (unsigned p = 0; p < places; p++) {
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
            CONV_BLOCK(conv->weights + first, conv->bias + first, conv->outputs, here, 3, conv->inputs * 3,
                       step, CONV_PIXELS, out + column * conv->outputs + first);
    }
}

/* Six neighbours' values into the six that stand for them, far apart. */
CONV_TARGET static inline __attribute__((always_inline)) void
CONV_FORWARD(const CONV_VECTOR d[conv_tile_reads], float *to, size_t far)
{
    CONV_VECTOR even = d[4] - 4 * d[2], odd = d[3] - 4 * d[1];
    CONV_VECTOR even2 = d[4] - d[2], odd2 = d[3] - d[1];
    *(CONV_VECTOR *)to = 4 * d[0] + (d[4] - 5 * d[2]);
    *(CONV_VECTOR *)(to + 1 * far) = even + odd;
    *(CONV_VECTOR *)(to + 2 * far) = even - odd;
    *(CONV_VECTOR *)(to + 3 * far) = even2 + 2 * odd2;
    *(CONV_VECTOR *)(to + 4 * far) = even2 - 2 * odd2;
    *(CONV_VECTOR *)(to + 5 * far) = 4 * d[1] + (d[5] - 5 * d[3]);
}

/* Six rows, count values of each, transformed down: six lines. */
CONV_TARGET static __attribute__((noinline)) void CONV_DOWN(const float *const rows[conv_tile_reads],
                                                            size_t skip, size_t count, float *lines)
{
    const float *from[conv_tile_reads];
#pragma GCC unroll 6
    for (unsigned row = 0; row < conv_tile_reads; row++)
        from[row] = rows[row] + skip;
    for (size_t i = 0; i < count; i += CONV_LANES) {
        CONV_VECTOR d[conv_tile_reads];
#pragma GCC unroll 6
        for (unsigned row = 0; row < conv_tile_reads; row++)
            d[row] = *(const CONV_VECTOR *)(from[row] + i);
        CONV_FORWARD(d, lines + i, line_values);
    }
}

/* A line transformed along: the values of its tiles, six planes. */
CONV_TARGET static __attribute__((noinline)) void CONV_ALONG(const float *line, unsigned channels,
                                                             unsigned tiles, float *planes)
{
    for (unsigned tile = 0; tile < tiles; tile++) {
        const float *from = line + (size_t)tile * conv_tile_side * channels;
        float *to = planes + (size_t)tile * channels;
        for (unsigned i = 0; i < channels; i += CONV_LANES) {
            CONV_VECTOR d[conv_tile_reads];
#pragma GCC unroll 6
            for (unsigned k = 0; k < conv_tile_reads; k++)
                d[k] = *(const CONV_VECTOR *)(from + k * channels + i);
            CONV_FORWARD(d, to + i, plane_values);
        }
    }
}

/*
 * One plane of tiles times its weights: products[tile][outputs].  inputs is known
 * when this is compiled, so that every tile is at a fixed distance from the first.
 */
CONV_TARGET static inline __attribute__((always_inline)) void
CONV_PLANE(const float *weights, unsigned outputs, const float *values, const unsigned inputs, unsigned tiles,
           float *products)
{
    enum { rest = CONV_PIXELS / 3 };
    for (unsigned first = 0; first < outputs; first += CONV_VECTORS * CONV_LANES) {
        unsigned tile = 0;
        for (; tile + CONV_PIXELS <= tiles; tile += CONV_PIXELS) {
            const float *from = values + (size_t)tile * inputs;
            CONV_BLOCK(weights + first, NULL, outputs, &from, 1, inputs, inputs, CONV_PIXELS,
                       products + (size_t)tile * outputs + first);
        }
        for (; tile < tiles; tile += rest) {
            const float *from = values + (size_t)tile * inputs;
            CONV_BLOCK(weights + first, NULL, outputs, &from, 1, inputs, inputs, rest,
                       products + (size_t)tile * outputs + first);
        }
    }
}

CONV_TARGET static __attribute__((noinline)) void CONV_PRODUCTS(const struct conv *conv, const float *planes,
                                                                unsigned tiles, float *products)
{
    for (unsigned plane = 0; plane < tile_planes; plane++) {
        const float *weights = conv->weights + (size_t)plane * conv->inputs * conv->outputs;
        const float *values = planes + (size_t)plane * plane_values;
        float *out = products + (size_t)plane * product_values;
        if (conv->inputs == inputs_usual)
            CONV_PLANE(weights, conv->outputs, values, inputs_usual, tiles, out);
        else
            CONV_PLANE(weights, conv->outputs, values, inputs_max, tiles, out);
    }
}

/* Six products of a line for its four outputs. */
CONV_TARGET static inline __attribute__((always_inline)) void
CONV_INVERSE(const CONV_VECTOR m[conv_tile_reads], CONV_VECTOR out[conv_tile_side])
{
    CONV_VECTOR sum = m[1] + m[2], difference = m[1] - m[2];
    CONV_VECTOR sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    out[0] = m[0] + sum + sum2;
    out[1] = difference + 2 * difference2;
    out[2] = sum + 4 * sum2;
    out[3] = difference + 8 * difference2 + m[5];
}

/*
 * Products into outputs, a vector of channels of 4x4 outputs at a time, with
 * bias, residual and activation.  What is added and done is known when this is
 * compiled, so that the many vectors of a tile are not told it one by one.
 */
CONV_TARGET static inline __attribute__((always_inline)) void
CONV_OUTPUTS(const struct conv *conv, const struct conv_quad *quad, const float *products, unsigned first,
             unsigned tiles, const bool is_residual, const bool is_relu)
{
    const size_t outputs = conv->outputs, skip = (size_t)first * conv_tile_side * outputs;
    const CONV_VECTOR zero = {0};
    for (size_t i = 0; i < tiles * outputs; i += CONV_LANES) {
        CONV_VECTOR lines[conv_tile_side][conv_tile_reads], out[conv_tile_side];
#pragma GCC unroll 6
        for (unsigned column = 0; column < conv_tile_reads; column++) {
            CONV_VECTOR m[conv_tile_reads];
#pragma GCC unroll 6
            for (unsigned line = 0; line < conv_tile_reads; line++)
                m[line] =
                    *(const CONV_VECTOR *)(products + (line * conv_tile_reads + column) * product_values + i);
            CONV_INVERSE(m, out);
#pragma GCC unroll 4
            for (unsigned row = 0; row < conv_tile_side; row++)
                lines[row][column] = out[row];
        }
        const size_t channel = i % outputs, place = skip + (i - channel) * conv_tile_side + channel;
        const CONV_VECTOR base = *(const CONV_VECTOR *)(conv->bias + channel);
#pragma GCC unroll 4
        for (unsigned row = 0; row < conv_tile_side; row++) {
            const float *residual = is_residual ? quad->residuals[row] + place : NULL;
            float *to = quad->outputs[row] + place;
            CONV_INVERSE(lines[row], out);
#pragma GCC unroll 4
            for (unsigned column = 0; column < conv_tile_side; column++) {
                CONV_VECTOR value = out[column] + base;
                if (is_residual)
                    value += *(const CONV_VECTOR *)(residual + column * outputs);
                if (is_relu)
                    value = (CONV_VECTOR)((CONV_INTEGERS)value & (value > zero));
                *(CONV_VECTOR *)(to + column * outputs) = value;
            }
        }
    }
}

CONV_TARGET static void CONV_TILES(const struct conv *conv, const struct conv_quad *quad, unsigned tiles,
                                   float *scratch)
{
    const unsigned inputs = conv->inputs;
    float *planes = scratch + planes_at, *products = scratch + products_at;
    for (unsigned first = 0; first < tiles; first += block_tiles) {
        const unsigned count = tiles - first < block_tiles ? tiles - first : block_tiles;
        for (unsigned tile = 0; tile < count; tile += line_tiles) {
            const unsigned along = count - tile < line_tiles ? count - tile : line_tiles;
            CONV_DOWN(quad->inputs, (size_t)(first + tile) * conv_tile_side * inputs,
                      ((size_t)along * conv_tile_side + conv_tile_reads - conv_tile_side) * inputs, scratch);
            for (unsigned line = 0; line < conv_tile_reads; line++)
                CONV_ALONG(scratch + (size_t)line * line_values, inputs, along,
                           planes + (size_t)line * conv_tile_reads * plane_values + (size_t)tile * inputs);
        }
        CONV_PRODUCTS(conv, planes, count, products);
        if (quad->residuals[0] != NULL)
            CONV_OUTPUTS(conv, quad, products, first, count, true, true);
        else if (quad->is_relu)
            CONV_OUTPUTS(conv, quad, products, first, count, false, true);
        else
            CONV_OUTPUTS(conv, quad, products, first, count, false, false);
    }
}

static const struct conv_kernels CONV_NAME = {CONV_TITLE, CONV_ROW, CONV_TILES};

#undef CONV_PASTE
#undef CONV_JOIN
#undef CONV_VECTOR
#undef CONV_INTEGERS
#undef CONV_BLOCK
#undef CONV_ROW
#undef CONV_DOWN
#undef CONV_ALONG
#undef CONV_FORWARD
#undef CONV_PLANE
#undef CONV_PRODUCTS
#undef CONV_OUTPUTS
#undef CONV_INVERSE
#undef CONV_TILES
