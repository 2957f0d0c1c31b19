/* Numbers that may be in a picture. */
#include "engine/watermark/candidates.h"
#include "engine/watermark/polar.h"
#include "watermark_maker.h"

/* The best candidate is found by the sum of its word, at any position of the list. */
static void candidates_are_compared(void)
{
    enum { count = 300 };
    uint64_t seed = 77, list[count], number = 0;
    int8_t word[polar_length];
    float ratios[polar_length];
    const uint64_t mask = random_number(&seed);
    const struct watermark_candidates numbers = {count, list};
    struct polar *polar = polar_new();
    struct workspace workspace;

    CU_ASSERT_PTR_NOT_NULL_FATAL(polar);
    workspace_init(&workspace);
    for (unsigned i = 0; i < count; i++)
        list[i] = random_number(&seed);
    struct candidates *candidates = candidates_new(&numbers, mask, polar, &workspace);
    CU_ASSERT_PTR_NOT_NULL_FATAL(candidates);
    /* sqrt(2 ln(300 * 256 * 10^9)) */
    CU_ASSERT_DOUBLE_EQUAL(candidates_correlation_least(candidates), 7.997, 0.001);
    for (unsigned right = 0; right < count; right += 23) {
        double sum = 0;
        double squares = 0;

        polar_encode(polar, list[right] ^ mask, word);
        for (unsigned i = 0; i < polar_length; i++) {
            ratios[i] = (float)(0.3 * word[i] + random_gauss(&seed));
            sum += (double)(ratios[i] * (float)word[i]);
            squares += (double)(ratios[i] * ratios[i]);
        }
        CU_ASSERT_DOUBLE_EQUAL(candidates_best(candidates, ratios, sqrt(squares), &number), sum, 0.01);
        CU_ASSERT_EQUAL(number, list[right]);
    }
    /* A word that is not in the list does not reach the threshold in half of its bits. */
    for (unsigned i = 0; i < polar_length; i++)
        ratios[i] = 1;
    CU_ASSERT_EQUAL(candidates_best(candidates, ratios, sqrt(polar_length), &number), 0);
    workspace_fini(&workspace);
    polar_free(polar);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"candidates are compared", candidates_are_compared},
        CU_TEST_INFO_NULL,
    };
    return runner_run("candidates", tests);
}
