/* The spectrum of a plane. */
#include "watermark_maker.h"

/* Compares with the direct sum, at frequencies between the bins, for even and odd sides. */
static void spectrum_is_right_anywhere(void)
{
    static const int sides[3][2] = {{40, 30}, {41, 37}, {64, 33}};
    uint64_t seed = 11;

    for (unsigned i = 0; i < 3; i++) {
        int width = sides[i][0], height = sides[i][1];
        float samples[64 * 37], copy[64 * 37];
        struct workspace workspace;
        struct spectrum spectrum;
        double norm = 0;

        for (int at = 0; at < width * height; at++) {
            samples[at] = copy[at] = (float)random_gauss(&seed);
            norm += (double)(samples[at] * samples[at]);
        }
        workspace_init(&workspace);
        CU_ASSERT_FATAL(spectrum_make(samples, width, height, &workspace, &spectrum));
        for (unsigned turn = 0; turn < 200; turn++) {
            double fx = random_uniform(&seed) * 0.9 - 0.45, fy = random_uniform(&seed) * 0.9 - 0.45;
            struct value fast = spectrum_at(&spectrum, fx, fy);
            struct value slow = transform_slow(copy, width, height, fx, fy);

            CU_ASSERT(hypot((double)(fast.real - slow.real), (double)(fast.imaginary - slow.imaginary)) <
                      0.03 * sqrt(norm));
        }
        workspace_fini(&workspace);
    }
}

/* At a frequency of the padded grid the taps lie on the grid. Old values in the memory have no effect. */
static void spectrum_is_right_on_the_grid(void)
{
    float samples[40 * 30], copy[40 * 30];
    struct workspace workspace;
    struct spectrum spectrum;
    uint64_t seed = 12;
    double norm = 0;

    for (int at = 0; at < 40 * 30; at++) {
        samples[at] = copy[at] = (float)random_gauss(&seed);
        norm += (double)(samples[at] * samples[at]);
    }
    workspace_init(&workspace);
    void *old = workspace_take_unset(&workspace, 1 << 20, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(old);
    memset(old, 0xff, 1 << 20); /* floats that are NaN */
    workspace_rewind(&workspace, 0);
    CU_ASSERT_FATAL(spectrum_make(samples, 40, 30, &workspace, &spectrum));
    for (int at = 0; at < 12; at++) {
        double fx = (double)at / spectrum.columns, fy = (double)(at - 6) / spectrum.rows;
        struct value fast = spectrum_at(&spectrum, fx, fy);
        struct value slow = transform_slow(copy, 40, 30, fx, fy);

        CU_ASSERT(hypot((double)(fast.real - slow.real), (double)(fast.imaginary - slow.imaginary)) <
                  0.03 * sqrt(norm));
    }
    workspace_fini(&workspace);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"the spectrum is right anywhere", spectrum_is_right_anywhere},
        {"the spectrum is right on the grid", spectrum_is_right_on_the_grid},
        CU_TEST_INFO_NULL,
    };
    return runner_run("spectrum", tests);
}
