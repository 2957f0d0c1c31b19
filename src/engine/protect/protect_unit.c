#include "engine/protect/protect_unit.h"

#include <string.h>

#include "engine/watermark/clones.h"

/*
 * The rank of a value is its exponent and the upper three bits of its mantissa, counted from a value far
 * below any perturbation.  Unit 1 has the rank floor_rank + 1.
 */
enum {
    float_bits = 23,
    float_bias = 127,
    rank_bits = 20,
    rank_octave = -64, /* of rank 0 */
    rank_zero = (float_bias + rank_octave) << float_bits,
    rank_half = 1 << (rank_bits - 1)
};

_Static_assert(1 << (float_bits - rank_bits) == unit_octave_steps, "units are bits of a float");

/* The bits of a float without its sign; they increase with the size. */
static inline int32_t float_size_bits(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & INT32_MAX;
}

ENGINE_CLONES static int values_rank(const float *values, size_t count)
{
    int32_t most = 0;
    for (size_t i = 0; i < count; i++) {
        const int32_t bits = float_size_bits(values[i]);
        most = bits > most ? bits : most;
    }
    return (most - rank_zero) >> rank_bits;
}

ENGINE_CLONES static void run_lower(int8_t *units, size_t count, int ranks)
{
    for (size_t i = 0; i < count; i++) {
        int size = (units[i] < 0 ? -units[i] : units[i]) - ranks;
        size = size > 0 ? size : 0;
        units[i] = (int8_t)(units[i] < 0 ? -size : size);
    }
}

ENGINE_CLONES static void run_store(const float *values, size_t count, int floor_rank, int8_t *units)
{
    for (size_t i = 0; i < count; i++) {
        int size = ((float_size_bits(values[i]) - rank_zero) >> rank_bits) - floor_rank;
        size = size > 0 ? size : 0;
        size = size < unit_peak ? size : unit_peak;
        units[i] = (int8_t)(values[i] < 0 ? -size : size);
    }
}

void units_store(struct units *units, const float *values, size_t count, int8_t *stored)
{
    const int missing = values_rank(values, count) - unit_peak - units->floor_rank;
    if (missing > 0) {
        const int ranks = (missing + unit_octave_steps - 1) / unit_octave_steps * unit_octave_steps;
        for (unsigned run = 0; run < units->run_count; run++)
            run_lower(units->runs[run].values, units->runs[run].count, ranks);
        units->floor_rank += ranks;
    }
    run_store(values, count, units->floor_rank, stored);
}

ENGINE_CLONES void units_load(const int8_t *stored, int floor_rank, size_t count, float *values)
{
    const int32_t zero = rank_zero + rank_half + floor_rank * (1 << rank_bits);
    for (size_t i = 0; i < count; i++) {
        const int unit = stored[i], size = unit < 0 ? -unit : unit;
        const int32_t bits = unit == 0 ? 0 : (zero + (size << rank_bits)) | (unit < 0 ? INT32_MIN : 0);
        memcpy(values + i, &bits, sizeof bits);
    }
}
