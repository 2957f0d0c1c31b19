/*
 * The kernels for one vector width.  The including file, protect_conv.c, defines CONV_NAME, CONV_TITLE,
 * CONV_TARGET and CONV_LANES (floats a vector).  It also defines CONV_PIXELS and CONV_VECTORS, the block of
 * sums that fits the registers.  It holds the blocks of sums, the operations after them, and the layers that
 * change the resolution.  The tiles are in protect_conv_tiles_body.h.
 */
#define CONV_PASTE(left, right) left##right
#define CONV_JOIN(left, right)  CONV_PASTE(left, right)
#define CONV_VECTOR             CONV_JOIN(CONV_NAME, _vector)
#define CONV_INTEGERS           CONV_JOIN(CONV_NAME, _integers)
#define CONV_STEPS              CONV_JOIN(CONV_NAME, _steps)
#define CONV_LEAST              CONV_JOIN(CONV_NAME, _least)
#define CONV_MOST               CONV_JOIN(CONV_NAME, _most)
#define CONV_PLACES             CONV_JOIN(CONV_NAME, _places)
#define CONV_FINISH             CONV_JOIN(CONV_NAME, _finish)
#define CONV_SUMS               CONV_JOIN(CONV_NAME, _sums)
#define CONV_BLOCK              CONV_JOIN(CONV_NAME, _block)
#define CONV_MATRIX             CONV_JOIN(CONV_NAME, _matrix)
#define CONV_DOWN_MATRIX        CONV_JOIN(CONV_NAME, _down_matrix)
#define CONV_DOWN_ROW           CONV_JOIN(CONV_NAME, _down_row)
#define CONV_UP_ROWS            CONV_JOIN(CONV_NAME, _up_rows)
#define CONV_INLINE             CONV_TARGET static inline __attribute__((always_inline))

typedef float CONV_VECTOR __attribute__((vector_size(CONV_LANES * 4), aligned(4), may_alias));
typedef int CONV_INTEGERS __attribute__((vector_size(CONV_LANES * 4)));
typedef uint16_t CONV_STEPS __attribute__((vector_size(CONV_LANES * 2), aligned(2), may_alias));

/* Lane by lane; the compiler emits one instruction. */
CONV_INLINE CONV_VECTOR CONV_LEAST(CONV_VECTOR left, CONV_VECTOR right)
{
    for (unsigned i = 0; i < CONV_LANES; i++)
        left[i] = left[i] < right[i] ? left[i] : right[i];
    return left;
}

CONV_INLINE CONV_VECTOR CONV_MOST(CONV_VECTOR left, CONV_VECTOR right)
{
    for (unsigned i = 0; i < CONV_LANES; i++)
        left[i] = left[i] > right[i] ? left[i] : right[i];
    return left;
}

/* The place of a vector of outputs and of its operands in the rows of struct conv_rows. */
struct CONV_PLACES {
    const float *before;
    const uint16_t *factor;
    float *output;
    uint16_t *gate;
};

/*
 * The operation on a vector of sums after its bias is added (enum conv_end).  The compiler knows the value of
 * end, so the loop has no branch on it.  slope: in steps.
 */
CONV_INLINE void CONV_FINISH(CONV_VECTOR sum, const enum conv_end end, float slope,
                             const struct CONV_PLACES places)
{
    const CONV_VECTOR zero = {0}, least = zero + gate_least, most = zero + gate_most;
    if (end == CONV_SPLIT) {
        CONV_VECTOR gate = CONV_LEAST(CONV_MOST(sum * slope + gate_middle, least), most);
        *(CONV_STEPS *)places.gate =
            __builtin_convertvector(__builtin_convertvector(gate, CONV_INTEGERS), CONV_STEPS);
    }
    if (end == CONV_SPLIT || end == CONV_LEAKY)
        sum = CONV_MOST(sum, sum * leak);
    if (end == CONV_CHANGE)
        sum -= *(const CONV_VECTOR *)places.before;
    if (end == CONV_FACTOR) {
        CONV_STEPS steps = *(const CONV_STEPS *)places.factor;
        sum *= __builtin_convertvector(__builtin_convertvector(steps, CONV_INTEGERS), CONV_VECTOR) *
               (1 / gate_steps);
    }
    *(CONV_VECTOR *)places.output = sum;
}

/*
 * Adds to CONV_VECTORS vectors of sums for each of at most CONV_PIXELS places, all in registers.  The inputs
 * come from row_count rows, run values of each from the first place, places step values apart.
 */
CONV_INLINE void CONV_SUMS(CONV_VECTOR sums[CONV_PIXELS * CONV_VECTORS], const float *weights,
                           const float *const *rows, const unsigned row_count, const unsigned run,
                           const unsigned step, const unsigned places)
{
    for (unsigned row = 0; row < row_count; row++) {
        const float *input = rows[row];
        for (unsigned k = 0; k < run; k++, weights += conv_slice, input++) {
            CONV_VECTOR weight[CONV_VECTORS];
            CONV_UNROLL(4)
            for (unsigned v = 0; v < CONV_VECTORS; v++)
                weight[v] = *(const CONV_VECTOR *)(weights + v * CONV_LANES);
            CONV_UNROLL(16)
            for (unsigned p = 0; p < places; p++) {
                CONV_UNROLL(4)
                for (unsigned v = 0; v < CONV_VECTORS; v++)
                    sums[p * CONV_VECTORS + v] += weight[v] * input[p * step];
            }
        }
    }
}

CONV_INLINE void CONV_BLOCK(const struct matrix_row *matrix, const enum conv_end end,
                            const unsigned row_count, const unsigned run, size_t place, unsigned first,
                            const unsigned places)
{
    const float slope = matrix->slope;
    const unsigned slice = first / conv_slice * conv_slice;
    const float *weights = matrix->weights + (size_t)slice * row_count * run + (first - slice);
    const float *bias = matrix->bias + first;
    const float *rows[2] = {matrix->inputs[0] + place * run, NULL};
    CONV_VECTOR sums[CONV_PIXELS * CONV_VECTORS];
    if (row_count == 2)
        rows[1] = matrix->inputs[1] + place * run;
    CONV_UNROLL(32)
    for (unsigned i = 0; i < places * CONV_VECTORS; i++)
        sums[i] = *(const CONV_VECTOR *)(bias + i % CONV_VECTORS * CONV_LANES);
    CONV_SUMS(sums, weights, rows, row_count, run, run, places);
    CONV_UNROLL(32)
    for (unsigned i = 0; i < places * CONV_VECTORS; i++) {
        const size_t at = (place + i / CONV_VECTORS) * matrix->width + first + i % CONV_VECTORS * CONV_LANES;
        struct CONV_PLACES here = {.output = matrix->outputs + at};
        if (end == CONV_FACTOR)
            here.factor = matrix->factors + at;
        if (end == CONV_SPLIT)
            here.gate = matrix->gates + at;
        CONV_FINISH(sums[i], end, slope, here);
    }
}

/* run is a compile-time constant, so every place is at a fixed distance from the first. */
CONV_INLINE void CONV_MATRIX(const struct matrix_row *matrix, const enum conv_end end,
                             const unsigned row_count, const unsigned run, unsigned count)
{
    enum { rest = CONV_PIXELS / 3, step = CONV_VECTORS * CONV_LANES };
    const struct conv_rows rows = {
        .factors = {matrix->factors}, .outputs = {matrix->outputs}, .gates = {matrix->gates}};
    unsigned place = 0;
    for (; place + CONV_PIXELS <= count; place += CONV_PIXELS) {
        rows_fetch(&rows, (size_t)(place + CONV_PIXELS) * matrix->width, CONV_PIXELS * matrix->width);
        for (unsigned first = 0; first < matrix->width; first += step)
            CONV_BLOCK(matrix, end, row_count, run, place, first, CONV_PIXELS);
    }
    for (; place < count; place += rest)
        for (unsigned first = 0; first < matrix->width; first += step)
            CONV_BLOCK(matrix, end, row_count, run, place, first, rest);
}

/* The numbers of inputs of the network's layers are constants, so that each has its own loop. */
CONV_INLINE void CONV_DOWN_MATRIX(const struct conv *conv, const enum conv_end end,
                                  const struct conv_rows *rows, unsigned count)
{
    const struct matrix_row matrix = {.weights = conv->weights,
                                      .bias = conv->bias,
                                      .width = conv->outputs,
                                      .slope = conv->slope * gate_steps,
                                      .inputs = {rows->inputs[0], rows->inputs[1]},
                                      .outputs = rows->outputs[0],
                                      .gates = rows->gates[0]};
    if (conv->inputs == 3)
        CONV_MATRIX(&matrix, end, 2, 2 * 3, count);
    else if (conv->inputs == 16)
        CONV_MATRIX(&matrix, end, 2, 2 * 16, count);
    else if (conv->inputs == 32)
        CONV_MATRIX(&matrix, end, 2, 2 * 32, count);
    else
        CONV_MATRIX(&matrix, end, 2, 2 * conv->inputs, count);
}

CONV_TARGET static void CONV_DOWN_ROW(const struct conv *conv, enum conv_end end,
                                      const struct conv_rows *rows, unsigned count)
{
    if (end == CONV_SPLIT)
        CONV_DOWN_MATRIX(conv, CONV_SPLIT, rows, count);
    else
        CONV_DOWN_MATRIX(conv, CONV_LEAKY, rows, count);
}

CONV_TARGET static void CONV_UP_ROWS(const struct conv *conv, const struct conv_rows *rows, unsigned count)
{
    const unsigned width = 2 * conv->outputs;
    for (unsigned part = 0; part < 2; part++) {
        const struct matrix_row matrix = {.weights = conv->weights + (size_t)part * width * conv->inputs,
                                          .bias = conv->bias + part * width,
                                          .width = width,
                                          .inputs = {rows->inputs[0]},
                                          .factors = rows->factors[part],
                                          .outputs = rows->outputs[part]};
        if (conv->inputs == 32)
            CONV_MATRIX(&matrix, CONV_FACTOR, 1, 32, count);
        else if (conv->inputs == 64)
            CONV_MATRIX(&matrix, CONV_FACTOR, 1, 64, count);
        else
            CONV_MATRIX(&matrix, CONV_FACTOR, 1, conv->inputs, count);
    }
}

#include "engine/protect/protect_conv_tiles_body.h"

static const struct conv_kernels CONV_NAME = {CONV_TITLE, CONV_TILES, CONV_DOWN_ROW, CONV_UP_ROWS};

#undef CONV_PASTE
#undef CONV_JOIN
#undef CONV_VECTOR
#undef CONV_INTEGERS
#undef CONV_STEPS
#undef CONV_LEAST
#undef CONV_MOST
#undef CONV_PLACES
#undef CONV_FINISH
#undef CONV_SUMS
#undef CONV_BLOCK
#undef CONV_MATRIX
#undef CONV_DOWN_MATRIX
#undef CONV_DOWN_ROW
#undef CONV_UP_ROWS
#undef CONV_INLINE
