/* The small floats that store a perturbation. */
#include "engine/protect/protect_unit.h"

#include <math.h>
#include <string.h>

#include "runner.h"

enum { count = 1000 };

static struct units units_of(int8_t *stored)
{
    struct units units = {.run_count = 1, .floor_rank = 0};
    units.runs[0].values = stored;
    units.runs[0].count = count;
    return units;
}

/* Values within fifteen octaves of the largest are restored to a sixteenth, for both signs. */
static void test_values_come_back(void)
{
    float values[count], read[count];
    int8_t stored[count] = {0};
    struct units units = units_of(stored);
    for (unsigned i = 0; i < count; i++)
        values[i] = (float)ldexp(i % 2 == 0 ? 0.3 : -0.3, -(int)(i / 70)) * (float)(1 + i % 70 / 70.0);
    units_store(&units, values, count, stored);
    units_load(stored, units.floor_rank, count, read);
    for (unsigned i = 0; i < count; i++)
        CU_ASSERT(fabsf(read[i] - values[i]) <= fabsf(values[i]) / 15.9f);
}

/* A larger value rescales the stored units. The result equals that of a scale known from the start. */
static void test_lower(void)
{
    float values[count];
    int8_t stored[count] = {0}, again[count] = {0}, last;
    struct units units = units_of(stored), other = units_of(again);
    const float large = 1e6f;
    for (unsigned i = 0; i < count; i++)
        values[i] = (float)pow(1.02, -(double)i) * (float)((int)(i % 3) - 1);
    units_store(&units, values, count, stored);
    units_store(&units, &large, 1, &last);
    units_store(&other, &large, 1, &last);
    units_store(&other, values, count, again);
    CU_ASSERT_EQUAL(units.floor_rank, other.floor_rank);
    CU_ASSERT_EQUAL(memcmp(stored, again, count), 0);
    CU_ASSERT(last > unit_peak - unit_octave_steps);
}

static void test_nothing(void)
{
    static const float values[] = {0, -0.0f, 1e-30f, -1e-42f};
    float read[4];
    int8_t stored[4] = {1, 1, 1, 1};
    struct units units = {.run_count = 0, .floor_rank = 256};
    units_store(&units, values, 4, stored);
    units_load(stored, units.floor_rank, 4, read);
    for (unsigned i = 0; i < 4; i++)
        CU_ASSERT(stored[i] == 0 && fabsf(read[i]) <= 0);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"values are restored to a sixteenth", test_values_come_back},
        {"stored units are lowered", test_lower},
        {"nothing is stored as 0", test_nothing},
        CU_TEST_INFO_NULL,
    };
    return runner_run("protect_unit", tests);
}
