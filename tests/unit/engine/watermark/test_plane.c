/* Planes of a picture. */
#include <stdlib.h>

#include "engine/watermark/plane.h"
#include "watermark_maker.h"

static void blur_is_the_mean_around(void)
{
    enum { width = 300, height = 23, radius = 4 };
    static float from[width * height], to[width * height], scratch[width * height];
    uint64_t seed = 12;

    for (int i = 0; i < width * height; i++)
        from[i] = (float)(100 * random_uniform(&seed));
    plane_blur(from, to, width, height, radius, scratch);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            double sum = 0;
            int count = 0;

            for (int j = y - radius; j <= y + radius; j++)
                for (int i = x - radius; i <= x + radius; i++)
                    if (i >= 0 && j >= 0 && i < width && j < height) {
                        sum += (double)from[j * width + i];
                        count++;
                    }
            CU_ASSERT_DOUBLE_EQUAL((double)to[y * width + x], sum / count, 0.001);
        }
}

/* A reduction by a fractional step preserves mean and positions. */
static void planes_are_reduced_by_area(void)
{
    struct image image = image_make(300, 200, 1, 8);
    struct workspace workspace;
    struct plane plane;

    for (uint32_t y = 0; y < 200; y++)
        for (uint32_t x = 0; x < 300; x++)
            ((uint8_t *)image.pixels)[y * 300 + x] = (uint8_t)(x / 2 + y / 4);
    workspace_init(&workspace);
    CU_ASSERT_FATAL(plane_read(&image, PLANE_LUMA, 1.7, &workspace, &plane));
    CU_ASSERT_EQUAL(plane.width, 176);
    CU_ASSERT_EQUAL(plane.height, 117);
    for (int y = 0; y < plane.height; y++)
        for (int x = 0; x < plane.width; x++)
            CU_ASSERT_DOUBLE_EQUAL((double)plane.luma[y * plane.width + x],
                                   ((x + 0.5) * 1.7 - 0.5) / 2 + ((y + 0.5) * 1.7 - 0.5) / 4 - 0.625, 0.8);
    workspace_fini(&workspace);
    free(image.pixels);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"blur is the mean around", blur_is_the_mean_around},
        {"planes are reduced by area", planes_are_reduced_by_area},
        CU_TEST_INFO_NULL,
    };
    return runner_run("plane", tests);
}
