/* Folded planes. */
#include <string.h>

#include "engine/watermark/fold.h"
#include "watermark_maker.h"

/* Compares the spectrum of a folded plane with the sum over all pixels. */
static void folds_are_the_spectrum(void)
{
    enum { width = 250, height = 215 };
    static float plane[width * height];
    static struct fold fold;
    static struct fold_basis basis;
    static struct fold_scratch scratch;
    static struct soft_field field;
    uint64_t seed = 16;

    for (int i = 0; i < width * height; i++)
        plane[i] = (float)random_gauss(&seed);
    memset(&fold, 0, sizeof fold);
    for (int y = 0; y < height; y++)
        fold_row(&fold, y, plane + y * width, width);
    fold_basis_fill(&basis);
    fold_field(&fold, &basis, lattice_reach, &scratch, &field);
    for (int kx = 0; kx <= lattice_reach; kx += 11)
        for (int ky = -30; ky <= 30; ky += 6) {
            double turn = M_PI * (kx * width + ky * height) / lattice_period;
            struct value at = field.on[kx][ky + lattice_reach];
            struct value slow = transform_slow(plane, width, height, (double)kx / lattice_period,
                                               (double)ky / lattice_period);
            struct value half = transform_slow(plane, width, height, (kx + 0.5) / lattice_period,
                                               (ky + 0.5) / lattice_period);

            if (!soft_is_needed(kx, ky, lattice_reach))
                continue;
            CU_ASSERT_DOUBLE_EQUAL((double)at.real,
                                   (double)slow.real * cos(turn) + (double)slow.imaginary * sin(turn), 0.05);
            CU_ASSERT_DOUBLE_EQUAL((double)at.imaginary,
                                   (double)slow.imaginary * cos(turn) - (double)slow.real * sin(turn), 0.05);
            CU_ASSERT_DOUBLE_EQUAL(sqrt((double)field.between[kx][ky + lattice_reach]),
                                   hypot((double)half.real, (double)half.imaginary), 0.05);
        }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"folds are the spectrum", folds_are_the_spectrum},
        CU_TEST_INFO_NULL,
    };
    return runner_run("fold", tests);
}
