#include "engine/protect_conv.h"

#include <stddef.h>

#if defined(__x86_64__)

/* 16 outputs by 12 columns: 12 of 32 registers for sums leave the loads room to run ahead. */
#define CONV_NAME    conv_row_avx512
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

#define CONV_NAME    conv_row_avx2
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

#define CONV_NAME conv_row_plain
#define CONV_TARGET
#define CONV_LANES   4
#define CONV_PIXELS  6
#define CONV_VECTORS 2
#include "engine/protect_conv_body.h"

conv_row_function conv_row_pick(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma"))
        return conv_row_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return conv_row_avx2;
#endif
    return conv_row_plain;
}
