#include "engine/protect/conv.h"

/* The leaky ReLU, and the gates (enum conv_end) in steps of 16 bits with half a step added for rounding. */
static const float leak = 0.01f, gate_middle = 0.5f * 65535 + 0.5f;

enum {
    gate_steps = 65535,
    gate_least = 655, /* .01 */
    tile_planes = conv_tile_reads * conv_tile_reads,
    block_tiles = 24, /* computed together; the products of one slice stay near the first-level cache */
    line_tiles = 6,   /* transformed together, and so are their lines */
    line_columns = line_tiles * conv_tile_side + conv_tile_reads - conv_tile_side,
    vector_slack = 16 /* values that the last vector of a line may write beyond its end */
};

/* The parts of a kernel's scratch, in values. */
enum {
    line_values = line_columns * conv_channels_max + vector_slack,
    plane_values = block_tiles * conv_channels_max + vector_slack,
    product_values = block_tiles * conv_slice,
    products_at = conv_tile_reads * line_values,
    planes_at = products_at + tile_planes * product_values,
    scratch_values = planes_at + tile_planes * plane_values
};

/* The distance of the planes of a block of tiles. */
static inline size_t plane_far(unsigned inputs)
{
    return (size_t)block_tiles * inputs + vector_slack;
}

/* One output row of a matrix product: places of width values, each from one or two input rows. */
struct matrix_row {
    const float *weights, *bias;
    unsigned width;
    float slope;
    const float *inputs[2];
    const uint16_t *factors;
    float *outputs;
    uint16_t *gates;
};

/*
 * Short loops over registers are unrolled, except under sanitizers, because compiling all their checks would
 * take minutes.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONV_UNROLL(count)
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define CONV_UNROLL(count)
#endif
#ifndef CONV_UNROLL
#define CONV_PRAGMA(words) _Pragma(#words)
#define CONV_UNROLL(count) CONV_PRAGMA(GCC unroll count)
#endif

/* Contracts a multiplication and an addition into one instruction (FMA) if the processor has it. */
#pragma GCC optimize("fp-contract=fast")

/* A name of the kernels for one vector width. */
#define CONV_PASTE(left, right) left##right
#define CONV_JOIN(left, right)  CONV_PASTE(left, right)
#define CONV(name)              CONV_JOIN(CONV_NAME, _##name)
#define CONV_INLINE             CONV_TARGET static inline __attribute__((always_inline))

#if defined(__x86_64__)

/* 16 outputs by 12 columns. The sums use 12 of 32 registers, so that loads can run ahead. */
#define CONV_NAME    conv_avx512
#define CONV_TITLE   "avx512f"
#define CONV_TARGET  __attribute__((target("avx512f,fma")))
#define CONV_LANES   16
#define CONV_PIXELS  12
#define CONV_VECTORS 1
#include "engine/protect/conv_body.h"

#define CONV_NAME    conv_avx2
#define CONV_TITLE   "avx2"
#define CONV_TARGET  __attribute__((target("avx2,fma")))
#define CONV_LANES   8
#define CONV_PIXELS  6
#define CONV_VECTORS 2
#include "engine/protect/conv_body.h"

#endif

#define CONV_NAME  conv_plain
#define CONV_TITLE "plain"
#define CONV_TARGET
#define CONV_LANES   4
#define CONV_PIXELS  6
#define CONV_VECTORS 2
#include "engine/protect/conv_body.h"

const struct conv_kernels *conv_kernels_at(unsigned place)
{
    const struct conv_kernels *runnable[3];
    unsigned count = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma"))
        runnable[count++] = &conv_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        runnable[count++] = &conv_avx2;
#endif
    runnable[count++] = &conv_plain;
    return place < count ? runnable[place] : NULL;
}

/* ---- weights */

/* The filter transform: the factors of the six values of a line, from three taps. */
static const double filter[conv_tile_reads][3] = {
    {1. / 4, 0, 0},
    {-1. / 6, -1. / 6, -1. / 6},
    {-1. / 6, 1. / 6, -1. / 6},
    {1. / 24, 1. / 12, 1. / 6},
    {1. / 24, -1. / 12, 1. / 6},
    {0, 0, 1},
};

size_t conv_scratch_values(void)
{
    return scratch_values;
}

static unsigned taps_of(const struct conv *conv)
{
    return conv->shape == CONV_3X3 ? tile_planes : 4;
}

size_t conv_weights_count(const struct conv *conv)
{
    return (size_t)conv->inputs * conv->outputs * taps_of(conv);
}

size_t conv_bias_count(const struct conv *conv)
{
    return (size_t)conv->outputs * (conv->shape == CONV_UP ? 4 : 1);
}

void conv_weights_fill(struct conv *conv, unsigned output, unsigned input, const float *taps)
{
    const size_t slice = output / conv_slice, lane = output % conv_slice;
    const size_t slices = conv->outputs / conv_slice, count = taps_of(conv);
    for (unsigned tap = 0; tap < count; tap++) {
        double value = conv->shape == CONV_3X3 ? 0 : taps[tap];
        /* The weight of one plane: the filter transformed in both directions. */
        for (unsigned at = 0; conv->shape == CONV_3X3 && at < 9; at++)
            value += filter[tap / conv_tile_reads][at / 3] * filter[tap % conv_tile_reads][at % 3] *
                     (double)taps[at];
        const size_t piece = conv->shape == CONV_UP ? tap * slices + slice : slice * count + tap;
        conv->weights[(piece * conv->inputs + input) * conv_slice + lane] = (float)value;
    }
}
