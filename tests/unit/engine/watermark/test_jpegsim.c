/* JPEG, simulated. */
#include "engine/watermark/jpegsim.h"
#include "watermark_maker.h"

/* A second pass changes little, because the input is quantised. */
static void jpeg_is_simulated(void)
{
    enum { width = 43, height = 29 };
    float plane[width * height], again[width * height], flat[width * height];
    double change = 0, second = 0;
    uint64_t seed = 13;

    for (int i = 0; i < width * height; i++) {
        plane[i] = (float)floor(128 + 30 * random_gauss(&seed));
        flat[i] = 128;
        again[i] = plane[i];
    }
    jpegsim_luma(plane, width, height, 1);
    for (int i = 0; i < width * height; i++) {
        change += fabs((double)(plane[i] - again[i]));
        again[i] = plane[i];
    }
    jpegsim_luma(again, width, height, 1);
    for (int i = 0; i < width * height; i++)
        second += fabs((double)(plane[i] - again[i]));
    CU_ASSERT(change > 5.0 * width * height);
    CU_ASSERT(second < change / 4);
    jpegsim_luma(flat, width, height, 1);
    for (int i = 0; i < width * height; i++)
        CU_ASSERT_EQUAL(flat[i], 128);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"JPEG is simulated", jpeg_is_simulated},
        CU_TEST_INFO_NULL,
    };
    return runner_run("jpegsim", tests);
}
