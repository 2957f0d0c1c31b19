/* The small floats that store a perturbation. */
#include "engine/protect/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/protect/change.h"
#include "runner.h"

enum { count = 1000 };

/* Values within fifteen octaves of the largest are restored to a sixteenth, for both signs. */
static void test_values_come_back(void)
{
    float values[count], read[count];
    int8_t units[count] = {0};
    for (unsigned i = 0; i < count; i++)
        values[i] = (float)ldexp(i % 2 == 0 ? 0.3 : -0.3, -(int)(i / 70)) * (float)(1 + i % 70 / 70.0);
    change_units_load(units, change_units_store(values, count, units), count, read);
    for (unsigned i = 0; i < count; i++)
        CU_ASSERT(fabsf(read[i] - values[i]) <= fabsf(values[i]) / 15.9f);
}

/* At any scale, the largest value determines the octave. Values of the same octave have the same units,
 * whatever the others are. */
static void test_scale(void)
{
    float values[count], large[2] = {0, 1};
    int8_t units[count], alone[2];
    for (int octave = -40; octave < 40; octave++) {
        for (unsigned i = 0; i < count; i++)
            values[i] = (float)ldexp(pow(1.02, -(double)i) * ((int)(i % 3) - 1), octave);
        large[0] = values[2], large[1] = values[0];
        const uint8_t scale = change_units_store(values, count, units);
        CU_ASSERT_EQUAL(change_units_store(large, 2, alone), scale);
        CU_ASSERT(alone[0] == units[2] && alone[1] == units[0]);
        CU_ASSERT(abs(units[0]) > unit_peak - 8 && abs(units[0]) <= unit_peak);
    }
}

static void test_nothing(void)
{
    static const float values[] = {0, -0.0f, 1e-30f, -1e-42f};
    float read[4];
    int8_t units[4] = {1, 1, 1, 1};
    change_units_load(units, change_units_store(values, 4, units), 4, read);
    for (unsigned i = 0; i < 4; i++)
        CU_ASSERT(units[i] == 0 && fabsf(read[i]) <= 0);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"values are restored to a sixteenth", test_values_come_back},
        {"the largest value determines the scale", test_scale},
        {"nothing is stored as 0", test_nothing},
        CU_TEST_INFO_NULL,
    };
    return runner_run("protect_unit", tests);
}
