/*
 * 3x3 convolutions in tiles for one vector width.  protect_conv_body.h includes this file; the names that it
 * defines for blocks of sums are used here.
 */
#define CONV_LINES    CONV_JOIN(CONV_NAME, _lines)
#define CONV_ALONG    CONV_JOIN(CONV_NAME, _along)
#define CONV_FORWARD  CONV_JOIN(CONV_NAME, _forward)
#define CONV_PRODUCT  CONV_JOIN(CONV_NAME, _product)
#define CONV_PLANE    CONV_JOIN(CONV_NAME, _plane)
#define CONV_PRODUCTS CONV_JOIN(CONV_NAME, _products)
#define CONV_OUTPUTS  CONV_JOIN(CONV_NAME, _outputs)
#define CONV_SLICE    CONV_JOIN(CONV_NAME, _slice)
#define CONV_ENDS     CONV_JOIN(CONV_NAME, _ends)
#define CONV_INVERSE  CONV_JOIN(CONV_NAME, _inverse)
#define CONV_TILES    CONV_JOIN(CONV_NAME, _tiles)

/* The input transform of six neighbouring values; the strides are large. */
CONV_INLINE void CONV_FORWARD(const CONV_VECTOR d[conv_tile_reads], float *to, size_t far)
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

/* Transforms six rows of count values vertically to six lines. */
CONV_TARGET static __attribute__((noinline)) void CONV_LINES(const float *const rows[conv_tile_reads],
                                                             size_t skip, size_t count, float *lines)
{
    const float *from[conv_tile_reads];
    CONV_UNROLL(6)
    for (unsigned row = 0; row < conv_tile_reads; row++)
        from[row] = rows[row] + skip;
    for (size_t i = 0; i < count; i += CONV_LANES) {
        CONV_VECTOR d[conv_tile_reads];
        CONV_UNROLL(6)
        for (unsigned row = 0; row < conv_tile_reads; row++)
            d[row] = *(const CONV_VECTOR *)(from[row] + i);
        CONV_FORWARD(d, lines + i, line_values);
    }
}

/* Transforms a line horizontally: the values of its tiles in six planes; the stride of a plane is large. */
CONV_TARGET static __attribute__((noinline)) void CONV_ALONG(const float *line, unsigned channels,
                                                             unsigned tiles, float *planes, size_t far)
{
    for (unsigned tile = 0; tile < tiles; tile++) {
        const float *from = line + (size_t)tile * conv_tile_side * channels;
        float *to = planes + (size_t)tile * channels;
        for (unsigned i = 0; i < channels; i += CONV_LANES) {
            CONV_VECTOR d[conv_tile_reads];
            CONV_UNROLL(6)
            for (unsigned k = 0; k < conv_tile_reads; k++)
                d[k] = *(const CONV_VECTOR *)(from + k * channels + i);
            CONV_FORWARD(d, to + i, far);
        }
    }
}

/* Computes products[tile][conv_slice] of some tiles for one plane and one slice of outputs. */
CONV_INLINE void CONV_PRODUCT(const float *weights, const float *values, const unsigned inputs,
                              const unsigned tiles, float *products)
{
    CONV_VECTOR sums[CONV_PIXELS * CONV_VECTORS];
    CONV_UNROLL(32)
    for (unsigned i = 0; i < tiles * CONV_VECTORS; i++)
        sums[i] = (CONV_VECTOR){0};
    CONV_SUMS(sums, weights, &values, 1, inputs, inputs, tiles);
    CONV_UNROLL(32)
    for (unsigned i = 0; i < tiles * CONV_VECTORS; i++)
        *(CONV_VECTOR *)(products + i / CONV_VECTORS * conv_slice + i % CONV_VECTORS * CONV_LANES) = sums[i];
}

/*
 * The same for a block of tiles.  inputs is a compile-time constant, so every tile is at a fixed distance
 * from the first.
 */
CONV_INLINE void CONV_PLANE(const float *weights, const float *values, const unsigned inputs, unsigned tiles,
                            float *products)
{
    enum { rest = CONV_PIXELS / 3 };
    for (unsigned first = 0; first < conv_slice; first += CONV_VECTORS * CONV_LANES) {
        unsigned tile = 0;
        for (; tile + CONV_PIXELS <= tiles; tile += CONV_PIXELS)
            CONV_PRODUCT(weights + first, values + (size_t)tile * inputs, inputs, CONV_PIXELS,
                         products + (size_t)tile * conv_slice + first);
        for (; tile < tiles; tile += rest)
            CONV_PRODUCT(weights + first, values + (size_t)tile * inputs, inputs, rest,
                         products + (size_t)tile * conv_slice + first);
    }
}

CONV_TARGET static __attribute__((noinline)) void CONV_PRODUCTS(const float *weights, unsigned inputs,
                                                                const float *planes, size_t far,
                                                                unsigned tiles, float *products)
{
    for (unsigned plane = 0; plane < tile_planes; plane++) {
        const float *here = weights + (size_t)plane * inputs * conv_slice, *values = planes + plane * far;
        float *out = products + (size_t)plane * product_values;
        if (inputs == 16)
            CONV_PLANE(here, values, 16, tiles, out);
        else if (inputs == 32)
            CONV_PLANE(here, values, 32, tiles, out);
        else if (inputs == 64)
            CONV_PLANE(here, values, 64, tiles, out);
        else
            CONV_PLANE(here, values, inputs, tiles, out);
    }
}

/* The output transform: six products of a line to its four outputs. */
CONV_INLINE void CONV_INVERSE(const CONV_VECTOR m[conv_tile_reads], CONV_VECTOR out[conv_tile_side])
{
    CONV_VECTOR sum = m[1] + m[2], difference = m[1] - m[2];
    CONV_VECTOR sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    out[0] = m[0] + sum + sum2;
    out[1] = difference + 2 * difference2;
    out[2] = sum + 4 * sum2;
    out[3] = difference + 8 * difference2 + m[5];
}

/* Transforms products to outputs: a vector of channels of 4x4 outputs. */
CONV_INLINE void CONV_OUTPUTS(const struct conv *conv, const struct conv_rows *rows, const float *products,
                              size_t place, unsigned channel, const enum conv_end end, float slope)
{
    const size_t outputs = conv->outputs;
    CONV_VECTOR lines[conv_tile_side][conv_tile_reads], out[conv_tile_side];
    CONV_UNROLL(6)
    for (unsigned column = 0; column < conv_tile_reads; column++) {
        CONV_VECTOR m[conv_tile_reads];
        CONV_UNROLL(6)
        for (unsigned line = 0; line < conv_tile_reads; line++)
            m[line] = *(const CONV_VECTOR *)(products + (line * conv_tile_reads + column) * product_values);
        CONV_INVERSE(m, out);
        CONV_UNROLL(4)
        for (unsigned row = 0; row < conv_tile_side; row++)
            lines[row][column] = out[row];
    }
    const CONV_VECTOR base = *(const CONV_VECTOR *)(conv->bias + channel);
    CONV_UNROLL(4)
    for (unsigned row = 0; row < conv_tile_side; row++) {
        CONV_INVERSE(lines[row], out);
        CONV_UNROLL(4)
        for (unsigned column = 0; column < conv_tile_side; column++) {
            const size_t at = place + column * outputs;
            struct CONV_PLACES here = {.output = rows->outputs[row] + at};
            if (end == CONV_CHANGE)
                here.before = rows->before[row] + at;
            if (end == CONV_FACTOR)
                here.factor = rows->factors[row] + at;
            if (end == CONV_SPLIT)
                here.gate = rows->gates[row] + at;
            CONV_FINISH(out[column] + base, end, slope, here);
        }
    }
}

/* One slice of the outputs of tiles, starting at first. */
CONV_INLINE void CONV_SLICE(const struct conv *conv, const struct conv_rows *rows, const float *products,
                            unsigned slice, unsigned first, unsigned tiles, const enum conv_end end)
{
    const float slope = conv->slope * gate_steps;
    for (unsigned tile = 0; tile < tiles; tile++) {
        const size_t skip = (size_t)(first + tile) * conv_tile_side * conv->outputs;
        for (unsigned lane = 0; lane < conv_slice; lane += CONV_LANES)
            CONV_OUTPUTS(conv, rows, products + (size_t)tile * conv_slice + lane, skip + slice + lane,
                         slice + lane, end, slope);
    }
}

CONV_TARGET static __attribute__((noinline)) void CONV_ENDS(const struct conv *conv, enum conv_end end,
                                                            const struct conv_rows *rows,
                                                            const float *products, unsigned slice,
                                                            unsigned first, unsigned tiles)
{
    if (end == CONV_SPLIT)
        CONV_SLICE(conv, rows, products, slice, first, tiles, CONV_SPLIT);
    else if (end == CONV_LEAKY)
        CONV_SLICE(conv, rows, products, slice, first, tiles, CONV_LEAKY);
    else if (end == CONV_FACTOR)
        CONV_SLICE(conv, rows, products, slice, first, tiles, CONV_FACTOR);
    else if (end == CONV_CHANGE)
        CONV_SLICE(conv, rows, products, slice, first, tiles, CONV_CHANGE);
    else
        CONV_SLICE(conv, rows, products, slice, first, tiles, CONV_PLAIN);
}

CONV_TARGET static void CONV_TILES(const struct conv *conv, enum conv_end end, const struct conv_rows *rows,
                                   unsigned tiles, float *scratch)
{
    const unsigned inputs = conv->inputs;
    const size_t far = (size_t)block_tiles * inputs + vector_slack;
    float *products = scratch + products_at, *planes = scratch + planes_at;
    for (unsigned first = 0; first < tiles; first += block_tiles) {
        const unsigned count = tiles - first < block_tiles ? tiles - first : block_tiles;
        for (unsigned tile = 0; tile < count; tile += line_tiles) {
            const unsigned along = count - tile < line_tiles ? count - tile : line_tiles;
            CONV_LINES(rows->inputs, (size_t)(first + tile) * conv_tile_side * inputs,
                       ((size_t)along * conv_tile_side + conv_tile_reads - conv_tile_side) * inputs, scratch);
            for (unsigned line = 0; line < conv_tile_reads; line++)
                CONV_ALONG(scratch + (size_t)line * line_values, inputs, along,
                           planes + line * conv_tile_reads * far + (size_t)tile * inputs, far);
        }
        rows_fetch(rows, (size_t)first * conv_tile_side * conv->outputs,
                   (size_t)count * conv_tile_side * conv->outputs);
        for (unsigned slice = 0; slice < conv->outputs; slice += conv_slice) {
            CONV_PRODUCTS(conv->weights + (size_t)slice * tile_planes * inputs, inputs, planes, far, count,
                          products);
            CONV_ENDS(conv, end, rows, products, slice, first, count);
        }
    }
}

#undef CONV_LINES
#undef CONV_ALONG
#undef CONV_FORWARD
#undef CONV_PRODUCT
#undef CONV_PLANE
#undef CONV_PRODUCTS
#undef CONV_OUTPUTS
#undef CONV_SLICE
#undef CONV_ENDS
#undef CONV_INVERSE
