#include "engine/protect_conv.h"

enum { conv_outputs_max = 48 };

/* A multiplication and its addition become one instruction where the processor has it. */
#pragma GCC optimize("fp-contract=fast")

#if defined(__x86_64__)

/* 16 outputs by 12 columns: 12 of 32 registers for sums leave the loads room to run ahead. */
#define CONV_NAME    conv_avx512
#define CONV_TARGET  __attribute__((target("avx512f,fma")))
#define CONV_LANES   16
#define CONV_PIXELS  12
#define CONV_VECTORS 1
#include "engine/protect_conv_body.h"
#undef CONV_NAME
#undef CONV_TARGET
#undef CONV_LANES
#undef CONV_PIXELS
#undef CONV_VECTORS

#define CONV_NAME    conv_avx2
#define CONV_TARGET  __attribute__((target("avx2,fma")))
#define CONV_LANES   8
#define CONV_PIXELS  6
#define CONV_VECTORS 2
#include "engine/protect_conv_body.h"
#undef CONV_NAME
#undef CONV_TARGET
#undef CONV_LANES
#undef CONV_PIXELS
#undef CONV_VECTORS

#endif

#define CONV_NAME conv_plain
#define CONV_TARGET
#define CONV_LANES   4
#define CONV_PIXELS  6
#define CONV_VECTORS 2
#include "engine/protect_conv_body.h"

const struct conv_kernels *conv_kernels_pick(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma"))
        return &conv_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &conv_avx2;
#endif
    return &conv_plain;
}

const struct conv_kernels *conv_kernels_plain(void)
{
    return &conv_plain;
}

/* ---- weights */

/* What the six products of a group multiply by, from the three taps of one kernel row. */
static const float filter[conv_group_planes][3] = {
    {1.f / 4, 0, 0},
    {-1.f / 6, -1.f / 6, -1.f / 6},
    {-1.f / 6, 1.f / 6, -1.f / 6},
    {1.f / 24, 1.f / 12, 1.f / 6},
    {1.f / 24, -1.f / 12, 1.f / 6},
    {0, 0, 1},
};

size_t conv_weights_count(const struct conv *conv)
{
    return (size_t)conv->inputs * conv->outputs * 3 * (conv->stride == 1 ? conv_group_planes : 3);
}

void conv_weights_fill(struct conv *conv, unsigned output, unsigned input, const float taps[9])
{
    if (conv->stride != 1) {
        for (unsigned tap = 0; tap < 9; tap++)
            conv->weights[((size_t)tap * conv->inputs + input) * conv->outputs + output] = taps[tap];
        return;
    }
    for (unsigned plane = 0; plane < conv_group_planes; plane++) {
        for (unsigned row = 0; row < 3; row++) {
            float value = 0;
            for (unsigned column = 0; column < 3; column++)
                value += filter[plane][column] * taps[row * 3 + column];
            conv->weights[(((size_t)plane * 3 + row) * conv->inputs + input) * conv->outputs + output] =
                value;
        }
    }
}
