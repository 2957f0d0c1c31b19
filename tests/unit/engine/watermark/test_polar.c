/* The code of a number. */
#include "engine/watermark/polar.h"
#include "watermark_maker.h"

/* Sanitizers and valgrind (TEST_FEW) are ten times slower, so the count is reduced. */
#if defined __SANITIZE_ADDRESS__ || defined TEST_FEW
enum { words_count = 40 };
#else
enum { words_count = 300 };
#endif

/* Share of words that are not decoded over a Gaussian channel. A wrong word fails the test. */
static double words_lost(struct polar *polar, double decibel, int count, uint64_t seed)
{
    double deviation = sqrt(polar_length / (2.0 * polar_message_bits * pow(10, decibel / 10)));
    int lost = 0;

    for (int i = 0; i < count; i++) {
        uint64_t number = random_number(&seed), seen = 0;
        int8_t word[polar_length];
        float ratios[polar_length];

        polar_encode(polar, number, word);
        for (unsigned j = 0; j < polar_length; j++)
            ratios[j] = (float)(2 * (word[j] + deviation * random_gauss(&seed)) / (deviation * deviation));
        if (!polar_decode(polar, ratios, &seen))
            lost++;
        else
            CU_ASSERT_EQUAL(seen, number);
    }
    return (double)lost / count;
}

/*
 * At this rate (88 / 1024) no code works below an Eb/N0 of about -1.4 dB. For so short a word
 * the normal approximation gives 1 % loss near 1.3 dB. A list of 32 is within 1.7 dB of that.
 */
static void code_reads_at_given_noise(void)
{
    struct polar *polar = polar_new();

    CU_ASSERT_PTR_NOT_NULL_FATAL(polar);
    CU_ASSERT_EQUAL(words_lost(polar, 12, words_count, 1), 0);
    CU_ASSERT(words_lost(polar, 3.0, words_count, 2) <= 0.02);
    CU_ASSERT(words_lost(polar, 2.0, words_count, 3) <= 0.25);
    CU_ASSERT(words_lost(polar, -2.0, words_count, 4) >= 0.97);
    polar_free(polar);
}

static void code_words_differ_in_many_places(void)
{
    struct polar *polar = polar_new();
    int8_t first[polar_length], second[polar_length];

    CU_ASSERT_PTR_NOT_NULL_FATAL(polar);
    polar_encode(polar, 0, first);
    for (unsigned bit = 0; bit < 64; bit++) {
        unsigned different = 0;

        polar_encode(polar, (uint64_t)1 << bit, second);
        for (unsigned i = 0; i < polar_length; i++)
            different += first[i] != second[i];
        CU_ASSERT(different >= 64);
    }
    polar_free(polar);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"the code reads at given noise", code_reads_at_given_noise},
        {"code words differ in many places", code_words_differ_in_many_places},
        CU_TEST_INFO_NULL,
    };
    return runner_run("polar", tests);
}
