#include "engine/protect_conv.h"

enum {
    inputs_usual = 32,
    inputs_max = 56,
    outputs_max = 48,
    tile_planes = conv_tile_reads * conv_tile_reads,
    block_tiles = 12, /* computed together: as many as keep all they need in the second cache */
    line_tiles = 6,   /* transformed together: as many as keep their lines in the first cache */
    line_columns = line_tiles * conv_tile_side + conv_tile_reads - conv_tile_side,
    vector_slack = 16 /* values that the last vector of a line may write beyond it */
};

/* The scratch of a kernel, piece by piece, in values. */
enum {
    line_values = line_columns * inputs_max + vector_slack,
    plane_values = block_tiles * inputs_max + vector_slack,
    product_values = block_tiles * outputs_max,
    planes_at = conv_tile_reads * line_values,
    products_at = planes_at + tile_planes * plane_values,
    scratch_values = products_at + tile_planes * product_values
};

/* A multiplication and its addition become one instruction where the processor has it. */
#pragma GCC optimize("fp-contract=fast")

#if defined(__x86_64__)

/* 16 outputs by 12 columns: 12 of 32 registers for sums leave the loads room to run ahead. */
#define CONV_NAME    conv_avx512
#define CONV_TITLE   "avx512f"
#define CONV_TARGET  __attribute__((target("avx512f,fma")))
#define CONV_LANES   16
#define CONV_PIXELS  12
#define CONV_VECTORS 1
#include "engine/protect_conv_body.h"
#undef CONV_NAME
#undef CONV_TITLE
#undef CONV_TARGET
#undef CONV_LANES
#undef CONV_PIXELS
#undef CONV_VECTORS

#define CONV_NAME    conv_avx2
#define CONV_TITLE   "avx2"
#define CONV_TARGET  __attribute__((target("avx2,fma")))
#define CONV_LANES   8
#define CONV_PIXELS  6
#define CONV_VECTORS 2
#include "engine/protect_conv_body.h"
#undef CONV_NAME
#undef CONV_TITLE
#undef CONV_TARGET
#undef CONV_LANES
#undef CONV_PIXELS
#undef CONV_VECTORS

#endif

#define CONV_NAME  conv_plain
#define CONV_TITLE "plain"
#define CONV_TARGET
#define CONV_LANES   4
#define CONV_PIXELS  6
#define CONV_VECTORS 2
#include "engine/protect_conv_body.h"

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

/* What the six values of a line multiply by, from three taps. */
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

size_t conv_weights_count(const struct conv *conv)
{
    return (size_t)conv->inputs * conv->outputs * (conv->stride == 1 ? tile_planes : 9);
}

/* The weight of one plane: the filter down and along. */
static float plane_weight(unsigned plane, const float taps[9])
{
    const double *down = filter[plane / conv_tile_reads], *along = filter[plane % conv_tile_reads];
    double value = 0;
    for (unsigned tap = 0; tap < 9; tap++)
        value += down[tap / 3] * along[tap % 3] * (double)taps[tap];
    return (float)value;
}

void conv_weights_fill(struct conv *conv, unsigned output, unsigned input, const float taps[9])
{
    for (unsigned plane = 0; plane < (conv->stride == 1 ? tile_planes : 9u); plane++)
        conv->weights[((size_t)plane * conv->inputs + input) * conv->outputs + output] =
            conv->stride == 1 ? plane_weight(plane, taps) : taps[plane];
}
