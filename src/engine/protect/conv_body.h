/*
 * The kernels for one vector width.  The including file, conv.c, defines CONV_NAME, CONV_TITLE,
 * CONV_TARGET and CONV_LANES (floats a vector).  It also defines CONV_PIXELS and CONV_VECTORS, the block of
 * sums that fits the registers.  All names that this file defines begin with CONV_NAME.
 */
typedef float CONV(vector) __attribute__((vector_size(CONV_LANES * 4), aligned(4), may_alias));
typedef int CONV(integers) __attribute__((vector_size(CONV_LANES * 4)));
typedef uint16_t CONV(steps) __attribute__((vector_size(CONV_LANES * 2), aligned(2), may_alias));

/* Lane by lane; the compiler emits one or two instructions. */
CONV_INLINE CONV(integers) CONV(clamped)(CONV(integers) value)
{
    for (unsigned i = 0; i < CONV_LANES; i++)
        value[i] = value[i] < gate_least ? gate_least : value[i];
    for (unsigned i = 0; i < CONV_LANES; i++)
        value[i] = value[i] > gate_steps ? gate_steps : value[i];
    return value;
}

CONV_INLINE CONV(vector) CONV(most)(CONV(vector) left, CONV(vector) right)
{
    for (unsigned i = 0; i < CONV_LANES; i++)
        left[i] = left[i] > right[i] ? left[i] : right[i];
    return left;
}

/* The place of a vector of outputs and of its operands in the rows of struct conv_rows. */
struct CONV(places) {
    const float *before;
    const uint16_t *factor;
    float *output;
    uint16_t *gate;
};

/*
 * The operation on a vector of sums after its bias is added (enum conv_end).  The compiler knows the value of
 * end, so the loop has no branch on it.  slope: in steps.
 */
CONV_INLINE void CONV(finish)(CONV(vector) sum, const enum conv_end end, float slope,
                              const struct CONV(places) places)
{
    if (end == CONV_SPLIT) {
        CONV(integers) gate = __builtin_convertvector(sum * slope + gate_middle, CONV(integers));
        *(CONV(steps) *)places.gate = __builtin_convertvector(CONV(clamped)(gate), CONV(steps));
    }
    if (end == CONV_SPLIT || end == CONV_LEAKY)
        sum = CONV(most)(sum, sum * leak);
    if (end == CONV_CHANGE)
        sum -= *(const CONV(vector) *)places.before;
    if (end == CONV_FACTOR) {
        CONV(steps) steps = *(const CONV(steps) *)places.factor;
        sum *= __builtin_convertvector(__builtin_convertvector(steps, CONV(integers)), CONV(vector)) *
               (1.f / gate_steps);
    }
    *(CONV(vector) *)places.output = sum;
}

/*
 * Adds to CONV_VECTORS vectors of sums for each of at most CONV_PIXELS places, all in registers.  The inputs
 * come from row_count rows, run values of each from the first place, places step values apart.
 */
CONV_INLINE void CONV(sums)(CONV(vector) sums[CONV_PIXELS * CONV_VECTORS], const float *weights,
                            const float *const *rows, const unsigned row_count, const unsigned run,
                            const unsigned step, const unsigned places)
{
    for (unsigned row = 0; row < row_count; row++) {
        const float *input = rows[row];
        for (unsigned k = 0; k < run; k++, weights += conv_slice, input++) {
            CONV(vector) weight[CONV_VECTORS];
            CONV_UNROLL(4)
            for (unsigned v = 0; v < CONV_VECTORS; v++)
                weight[v] = *(const CONV(vector) *)(weights + v * CONV_LANES);
            CONV_UNROLL(16)
            for (unsigned p = 0; p < places; p++) {
                CONV_UNROLL(4)
                for (unsigned v = 0; v < CONV_VECTORS; v++)
                    sums[p * CONV_VECTORS + v] += weight[v] * input[p * step];
            }
        }
    }
}

CONV_INLINE void CONV(block)(const struct matrix_row *matrix, const enum conv_end end,
                             const unsigned row_count, const unsigned run, size_t place, unsigned first,
                             const unsigned places)
{
    const float slope = matrix->slope;
    const unsigned slice = first / conv_slice * conv_slice;
    const float *weights = matrix->weights + (size_t)slice * row_count * run + (first - slice);
    const float *bias = matrix->bias + first;
    const float *rows[2] = {matrix->inputs[0] + place * run, NULL};
    CONV(vector) sums[CONV_PIXELS * CONV_VECTORS];
    if (row_count == 2)
        rows[1] = matrix->inputs[1] + place * run;
    CONV_UNROLL(32)
    for (unsigned i = 0; i < places * CONV_VECTORS; i++)
        sums[i] = *(const CONV(vector) *)(bias + i % CONV_VECTORS * CONV_LANES);
    CONV(sums)(sums, weights, rows, row_count, run, run, places);
    CONV_UNROLL(32)
    for (unsigned i = 0; i < places * CONV_VECTORS; i++) {
        const size_t at = (place + i / CONV_VECTORS) * matrix->width + first + i % CONV_VECTORS * CONV_LANES;
        struct CONV(places) here = {.output = matrix->outputs + at};
        if (end == CONV_FACTOR)
            here.factor = matrix->factors + at;
        if (end == CONV_SPLIT)
            here.gate = matrix->gates + at;
        CONV(finish)(sums[i], end, slope, here);
    }
}

/* run is a compile-time constant, so every place is at a fixed distance from the first. */
CONV_INLINE void CONV(matrix)(const struct matrix_row *matrix, const enum conv_end end,
                              const unsigned row_count, const unsigned run, unsigned count)
{
    enum { rest = CONV_PIXELS / 3, step = CONV_VECTORS * CONV_LANES };
    unsigned place = 0;
    for (; place + CONV_PIXELS <= count; place += CONV_PIXELS) {
        for (unsigned first = 0; first < matrix->width; first += step)
            CONV(block)(matrix, end, row_count, run, place, first, CONV_PIXELS);
    }
    for (; place < count; place += rest)
        for (unsigned first = 0; first < matrix->width; first += step)
            CONV(block)(matrix, end, row_count, run, place, first, rest);
}

/* The runs of the network's layers are constants, so that each has its own loop. */
CONV_INLINE void CONV(matrix_of)(const struct matrix_row *matrix, const enum conv_end end,
                                 const unsigned row_count, unsigned run, unsigned count)
{
    if (run == 2 * 3)
        CONV(matrix)(matrix, end, row_count, 2 * 3, count);
    else if (run == 16)
        CONV(matrix)(matrix, end, row_count, 16, count);
    else if (run == 32)
        CONV(matrix)(matrix, end, row_count, 32, count);
    else if (run == 64)
        CONV(matrix)(matrix, end, row_count, 64, count);
    else
        CONV(matrix)(matrix, end, row_count, run, count);
}

CONV_TARGET static void CONV(down)(const struct conv *conv, enum conv_end end, const struct conv_rows *rows,
                                   unsigned count)
{
    const struct matrix_row matrix = {.weights = conv->weights,
                                      .bias = conv->bias,
                                      .width = conv->outputs,
                                      .slope = conv->slope * gate_steps,
                                      .inputs = {rows->inputs[0], rows->inputs[1]},
                                      .outputs = rows->outputs[0],
                                      .gates = rows->gates[0]};
    if (end == CONV_SPLIT)
        CONV(matrix_of)(&matrix, CONV_SPLIT, 2, 2 * conv->inputs, count);
    else
        CONV(matrix_of)(&matrix, CONV_LEAKY, 2, 2 * conv->inputs, count);
}

CONV_TARGET static void CONV(up)(const struct conv *conv, const struct conv_rows *rows, unsigned count)
{
    const unsigned width = 2 * conv->outputs;
    for (unsigned part = 0; part < 2; part++) {
        const struct matrix_row matrix = {.weights = conv->weights + (size_t)part * width * conv->inputs,
                                          .bias = conv->bias + part * width,
                                          .width = width,
                                          .inputs = {rows->inputs[0]},
                                          .factors = rows->factors[part],
                                          .outputs = rows->outputs[part]};
        CONV(matrix_of)(&matrix, CONV_FACTOR, 1, conv->inputs, count);
    }
}

/* ---- 3x3 convolutions in tiles */

/* The input transform: six rows of count values to six that are far apart. */
CONV_INLINE void CONV(six)(const float *const rows[conv_tile_reads], size_t count, float *to, size_t far)
{
    for (size_t i = 0; i < count; i += CONV_LANES) {
        CONV(vector) d[conv_tile_reads];
        CONV_UNROLL(6)
        for (unsigned k = 0; k < conv_tile_reads; k++)
            d[k] = *(const CONV(vector) *)(rows[k] + i);
        const CONV(vector) even = d[4] - 4 * d[2], odd = d[3] - 4 * d[1];
        const CONV(vector) even2 = d[4] - d[2], odd2 = d[3] - d[1];
        *(CONV(vector) *)(to + i) = 4 * d[0] + (d[4] - 5 * d[2]);
        *(CONV(vector) *)(to + i + 1 * far) = even + odd;
        *(CONV(vector) *)(to + i + 2 * far) = even - odd;
        *(CONV(vector) *)(to + i + 3 * far) = even2 + 2 * odd2;
        *(CONV(vector) *)(to + i + 4 * far) = even2 - 2 * odd2;
        *(CONV(vector) *)(to + i + 5 * far) = 4 * d[1] + (d[5] - 5 * d[3]);
    }
}

/* The inputs of some tiles: six rows vertically to lines, then each line horizontally to six planes. */
CONV_TARGET static __attribute__((noinline)) void CONV(forward)(const float *const inputs[conv_tile_reads],
                                                                size_t skip, unsigned channels,
                                                                unsigned tiles, float *lines, float *planes)
{
    const size_t columns = (size_t)tiles * conv_tile_side + conv_tile_reads - conv_tile_side;
    const size_t far = plane_far(channels);
    const float *from[conv_tile_reads];
    for (unsigned k = 0; k < conv_tile_reads; k++)
        from[k] = inputs[k] + skip;
    CONV(six)(from, columns * channels, lines, line_values);
    for (unsigned line = 0; line < conv_tile_reads; line++) {
        for (unsigned tile = 0; tile < tiles; tile++) {
            CONV_UNROLL(6)
            for (unsigned k = 0; k < conv_tile_reads; k++)
                from[k] = lines + line * line_values + ((size_t)tile * conv_tile_side + k) * channels;
            CONV(six)(from, channels, planes + line * conv_tile_reads * far + (size_t)tile * channels, far);
        }
    }
}

/* The products of all planes of some tiles for one slice of outputs. */
CONV_TARGET static __attribute__((noinline)) void
CONV(products)(const float *weights, unsigned inputs, const float *planes, unsigned tiles, float *products)
{
    static const float none[conv_slice] = {0};
    for (unsigned plane = 0; plane < tile_planes; plane++) {
        const struct matrix_row matrix = {.weights = weights + (size_t)plane * inputs * conv_slice,
                                          .bias = none,
                                          .width = conv_slice,
                                          .inputs = {planes + plane * plane_far(inputs)},
                                          .outputs = products + (size_t)plane * product_values};
        CONV(matrix_of)(&matrix, CONV_PLAIN, 1, inputs, tiles);
    }
}

/* The output transform: six products of a line to its four outputs. */
CONV_INLINE void CONV(inverse)(const CONV(vector) m[conv_tile_reads], CONV(vector) out[conv_tile_side])
{
    CONV(vector) sum = m[1] + m[2], difference = m[1] - m[2];
    CONV(vector) sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    out[0] = m[0] + sum + sum2;
    out[1] = difference + 2 * difference2;
    out[2] = sum + 4 * sum2;
    out[3] = difference + 8 * difference2 + m[5];
}

/* Transforms products to outputs: a vector of channels of 4x4 outputs. */
CONV_INLINE void CONV(outputs)(const struct conv *conv, const struct conv_rows *rows, const float *products,
                               size_t skip, unsigned channel, const enum conv_end end)
{
    const float slope = conv->slope * gate_steps;
    CONV(vector) lines[conv_tile_side][conv_tile_reads], out[conv_tile_side];
    CONV_UNROLL(6)
    for (unsigned column = 0; column < conv_tile_reads; column++) {
        CONV(vector) m[conv_tile_reads];
        CONV_UNROLL(6)
        for (unsigned line = 0; line < conv_tile_reads; line++)
            m[line] = *(const CONV(vector) *)(products + (line * conv_tile_reads + column) * product_values);
        CONV(inverse)(m, out);
        CONV_UNROLL(4)
        for (unsigned row = 0; row < conv_tile_side; row++)
            lines[row][column] = out[row];
    }
    const CONV(vector) base = *(const CONV(vector) *)(conv->bias + channel);
    CONV_UNROLL(4)
    for (unsigned row = 0; row < conv_tile_side; row++) {
        CONV(inverse)(lines[row], out);
        CONV_UNROLL(4)
        for (unsigned column = 0; column < conv_tile_side; column++) {
            const size_t at = skip + channel + column * conv->outputs;
            struct CONV(places) here = {.output = rows->outputs[row] + at};
            if (end == CONV_CHANGE)
                here.before = rows->before[row] + at;
            if (end == CONV_FACTOR)
                here.factor = rows->factors[row] + at;
            if (end == CONV_SPLIT)
                here.gate = rows->gates[row] + at;
            CONV(finish)(out[column] + base, end, slope, here);
        }
    }
}

/* One slice of the outputs of tiles, starting at first. */
CONV_INLINE void CONV(slice)(const struct conv *conv, const struct conv_rows *rows, const float *products,
                             unsigned slice, unsigned first, unsigned tiles, const enum conv_end end)
{
    const struct conv layer = *conv; /* copies: stores cannot change them */
    const struct conv_rows places = *rows;
    for (unsigned tile = 0; tile < tiles; tile++) {
        const size_t skip = (size_t)(first + tile) * conv_tile_side * layer.outputs;
        const float *sums = products + (size_t)tile * conv_slice;
        for (unsigned lane = 0; lane < conv_slice; lane += CONV_LANES)
            CONV(outputs)(&layer, &places, sums + lane, skip, slice + lane, end);
    }
}

CONV_TARGET static __attribute__((noinline)) void CONV(ends)(const struct conv *conv, enum conv_end end,
                                                             const struct conv_rows *rows,
                                                             const float *products, unsigned slice,
                                                             unsigned first, unsigned tiles)
{
    if (end == CONV_SPLIT)
        CONV(slice)(conv, rows, products, slice, first, tiles, CONV_SPLIT);
    else if (end == CONV_LEAKY)
        CONV(slice)(conv, rows, products, slice, first, tiles, CONV_LEAKY);
    else if (end == CONV_FACTOR)
        CONV(slice)(conv, rows, products, slice, first, tiles, CONV_FACTOR);
    else if (end == CONV_CHANGE)
        CONV(slice)(conv, rows, products, slice, first, tiles, CONV_CHANGE);
    else
        CONV(slice)(conv, rows, products, slice, first, tiles, CONV_PLAIN);
}

CONV_TARGET static void CONV(tiles)(const struct conv *conv, enum conv_end end, const struct conv_rows *rows,
                                    unsigned tiles, float *scratch)
{
    const unsigned inputs = conv->inputs;
    float *products = scratch + products_at, *planes = scratch + planes_at;
    for (unsigned first = 0; first < tiles; first += block_tiles) {
        const unsigned count = tiles - first < block_tiles ? tiles - first : block_tiles;
        for (unsigned tile = 0; tile < count; tile += line_tiles) {
            const unsigned along = count - tile < line_tiles ? count - tile : line_tiles;
            const size_t skip = (size_t)(first + tile) * conv_tile_side * inputs;
            float *to = planes + (size_t)tile * inputs;
            CONV(forward)(rows->inputs, skip, inputs, along, scratch, to);
        }
        for (unsigned slice = 0; slice < conv->outputs; slice += conv_slice) {
            const float *weights = conv->weights + (size_t)slice * tile_planes * inputs;
            CONV(products)(weights, inputs, planes, count, products);
            CONV(ends)(conv, end, rows, products, slice, first, count);
        }
    }
}

static const struct conv_kernels CONV_NAME = {CONV_TITLE, CONV(tiles), CONV(down), CONV(up)};

#undef CONV_NAME
#undef CONV_TITLE
#undef CONV_TARGET
#undef CONV_LANES
#undef CONV_PIXELS
#undef CONV_VECTORS
