/* The code of a number. */
#include "engine/watermark/polar.h"
#include "watermark_maker.h"

/* Sanitizers and valgrind (TEST_FEW) are ten times slower, so the count is reduced. */
#if defined __SANITIZE_ADDRESS__ || defined TEST_FEW
enum { words_count = 40 };
#else
enum { words_count = 300 };
#endif

/* Fills the ratios of a word after a Gaussian channel. Returns the sum of the word. */
static double ratios_receive(const struct polar *polar, uint64_t number, double decibel, uint64_t *seed,
                             float ratios[polar_length])
{
    double deviation = sqrt(polar_length / (2.0 * polar_message_bits * pow(10, decibel / 10)));
    int8_t word[polar_length];
    double sum = 0;

    polar_encode(polar, number, word);
    for (unsigned i = 0; i < polar_length; i++) {
        ratios[i] = (float)(2 * (word[i] + deviation * random_gauss(seed)) / (deviation * deviation));
        sum += (double)(ratios[i] * (float)word[i]);
    }
    return sum;
}

/* Returns the share of words that are not decoded. A wrong word fails the test. */
static double words_lost(struct polar *polar, double decibel, int count, uint64_t seed)
{
    int lost = 0;

    for (int i = 0; i < count; i++) {
        uint64_t number = random_number(&seed), seen = 0;
        float ratios[polar_length];

        ratios_receive(polar, number, decibel, &seed, ratios);
        if (!polar_decode(polar, ratios, 0, &seen))
            lost++;
        else
            CU_ASSERT_EQUAL(seen, number);
    }
    return (double)lost / count;
}

/*
 * At this rate (88 / 1024) no code works far below an Eb/N0 of -1.4 dB. For a word of 64 bits and a check the
 * normal approximation (Polyanskiy et al. 2010) gives 1 % loss between -1 and 0.3 dB.
 */
static void code_reads_at_given_noise(void)
{
    struct polar *polar = polar_new();

    CU_ASSERT_PTR_NOT_NULL_FATAL(polar);
    CU_ASSERT_EQUAL(words_lost(polar, 12, words_count, 1), 0);
    CU_ASSERT(words_lost(polar, 1.0, words_count, 2) <= 0.02);
    CU_ASSERT(words_lost(polar, 0.0, words_count, 3) <= 0.12);
    CU_ASSERT(words_lost(polar, -6.0, words_count, 4) >= 0.97);
    polar_free(polar);
}

static void weak_words_are_given_up(void)
{
    struct polar *polar = polar_new();
    uint64_t seed = 5;

    CU_ASSERT_PTR_NOT_NULL_FATAL(polar);
    for (int i = 0; i < words_count; i++) {
        uint64_t number = random_number(&seed), seen = 0;
        float ratios[polar_length];
        double sum = ratios_receive(polar, number, 1.5, &seed, ratios);

        CU_ASSERT(polar_decode(polar, ratios, 0.999 * sum, &seen) == polar_decode(polar, ratios, 0, &seen));
        CU_ASSERT_FALSE(polar_decode(polar, ratios, sum + 10, &seen));
    }
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
        {"weak words are given up", weak_words_are_given_up},
        {"code words differ in many places", code_words_differ_in_many_places},
        CU_TEST_INFO_NULL,
    };
    return runner_run("polar", tests);
}
