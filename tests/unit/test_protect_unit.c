/* The small floats that store a perturbation. */
#include "engine/protect/protect_unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runner.h"

static long size_of(int unit, uint32_t y)
{
    return (long)unit_mantissa(unit, unit_odd(y)) << unit_octave(unit);
}

static void test_sizes_rise(void)
{
    for (uint32_t y = 0; y < unit_rows; y++)
        for (int unit = 2; unit <= unit_peak; unit++)
            CU_ASSERT(size_of(unit, y) > size_of(unit - 1, y));
}

/* At the scale where a size crosses a rounding threshold, no odd part of it crosses one. */
static void test_no_odd_multiples(void)
{
    for (uint32_t y = 0; y < unit_rows; y++)
        for (int unit = 2; unit <= unit_peak; unit++)
            for (int less = 1; less < unit; less++)
                CU_ASSERT(size_of(unit, y) % size_of(less, y) != 0 ||
                          size_of(unit, y) / size_of(less, y) % 2 == 0);
}

/* The rows' sizes are all different, in even steps. */
static void test_rows_differ(void)
{
    for (int unit = 1; unit <= unit_peak; unit++) {
        for (uint32_t y = 1; y < unit_rows; y++)
            CU_ASSERT_EQUAL(size_of(unit, y) - size_of(unit, y - 1), 2L << unit_octave(unit));
        CU_ASSERT(unit == unit_peak || size_of(unit + 1, 0) > size_of(unit, unit_rows - 1));
    }
}

/* The value of a unit where 1 is the largest that fits. */
static double value_of(int unit, uint32_t y, double largest)
{
    double size = unit == 0 ? 0 : (double)size_of(unit < 0 ? -unit : unit, y);
    return copysign(size * largest / (double)size_of(unit_peak, y), (double)unit);
}

/* Half a step of the octave of a value or its unit, the larger of both; sizes of a row's first octave begin
 * with 128. */
static double half_step(double value, double read, uint32_t y, double largest)
{
    double size = fmax(fabs(value), fabs(read)) / largest * (double)size_of(unit_peak, y);
    return ldexp(1, ilogb(size / 128)) * unit_step / 2 * largest / (double)size_of(unit_peak, y);
}

/* Values of fifteen octaves are restored within half a step, for both signs. */
static void test_values_come_back(void)
{
    for (uint32_t y = 0; y < unit_rows; y++) {
        double largest = (14 + unit_odd(y) / 16.0) / 8 * 0.25;
        int8_t unit;
        float value = (float)largest;
        int floor_rank = units_rank(&value, 1, unit_odd(y)) - unit_peak;
        CU_ASSERT_EQUAL(floor_rank % unit_octave_steps, 0);
        for (double size = largest; size > ldexp(largest, -15); size *= 0.9991) {
            value = (float)size;
            units_store(&value, 1, unit_odd(y), floor_rank, &unit);
            double read = value_of(unit, y, largest);
            CU_ASSERT(fabs(read - (double)value) <= 1.0001 * half_step((double)value, read, y, largest));
            float opposite = -value;
            int8_t other;
            units_store(&opposite, 1, unit_odd(y), floor_rank, &other);
            CU_ASSERT_EQUAL(other, -unit);
        }
    }
}

/* Lowered units equal those that would have been stored, including small ones and 0. */
static void test_lower(void)
{
    enum { count = 1000 };
    float values[count];
    int8_t units[count], again[count];
    for (int i = 0; i < count; i++)
        values[i] = (float)(pow(1.02, -i) * (i % 3 - 1));
    for (uint32_t y = 0; y < unit_rows; y++) {
        int rank = units_rank(values, count, unit_odd(y));
        int floor_rank = (rank - unit_peak + unit_octave_steps) / unit_octave_steps * unit_octave_steps;
        for (int ranks = 0; ranks <= 160; ranks += unit_octave_steps) {
            units_store(values, count, unit_odd(y), floor_rank, units);
            units_lower(units, count, ranks);
            units_store(values, count, unit_odd(y), floor_rank + ranks, again);
            CU_ASSERT_EQUAL(memcmp(units, again, count), 0);
        }
    }
}

/* No change is stored as 0.  Values too large for units and NaN become the largest unit. */
static void test_ends(void)
{
    float values[] = {0, -0.0f, 1e-30f, -1e-42f, 1e30f, -INFINITY, NAN};
    static const int8_t wanted[] = {0, 0, 0, 0, unit_peak, -unit_peak, unit_peak};
    int8_t units[sizeof wanted];
    units_store(values, sizeof wanted, unit_odd(0), 256, units);
    CU_ASSERT_EQUAL(memcmp(units, wanted, sizeof wanted), 0);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"sizes rise", test_sizes_rise},
        {"no size is an odd multiple of another", test_no_odd_multiples},
        {"the sizes of eight rows interleave", test_rows_differ},
        {"values are restored within half a step", test_values_come_back},
        {"units are lowered by octaves", test_lower},
        {"values out of range", test_ends},
        CU_TEST_INFO_NULL,
    };
    return runner_run("protect_unit", tests);
}
