/* The scale of a chart: four to six round steps, above every value, never empty. */
#include <stdlib.h>

#include "api/usage.h"
#include "base/crypto.h"
#include "runner.h"

static bool is_round(int64_t step)
{
    while (step % 10 == 0)
        step /= 10;
    return step == 1 || step == 2 || step == 5;
}

static void check(int64_t largest)
{
    struct usage_scale scale = usage_scale_for(largest);
    CU_ASSERT(scale.steps >= 4 && scale.steps <= 6);
    CU_ASSERT(scale.step > 0 && is_round(scale.step));
    CU_ASSERT(scale.step * scale.steps >= largest);
}

static void test_every_value_has_a_scale(void)
{
    for (int64_t value = 0; value < 20000; value++)
        check(value);
    for (int i = 0; i < 20000; i++)
        check((int64_t)(crypto_random_u64() >> (8 + i % 50)));
}

static void test_scales_are_small_enough(void)
{
    static const int64_t largest[] = {0, 1, 4, 5, 6, 7, 12, 13, 31, 60, 61, 100, 1000};
    static const int64_t top[] = {4, 4, 4, 5, 6, 8, 12, 20, 40, 60, 80, 100, 1000};
    for (size_t i = 0; i < sizeof top / sizeof top[0]; i++) {
        struct usage_scale scale = usage_scale_for(largest[i]);
        CU_ASSERT_EQUAL(scale.step * scale.steps, top[i]);
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"every value has a scale", test_every_value_has_a_scale},
        {"scales are small enough", test_scales_are_small_enough},
        CU_TEST_INFO_NULL,
    };
    return runner_run("statistics", tests);
}
