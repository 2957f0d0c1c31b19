/* The mask and the texture of a plane. */
#include <stdlib.h>

#include "engine/watermark/plane.h"
#include "engine/watermark/texture.h"
#include "watermark_maker.h"

/* The left half is flat, the right half busy; the middle rows are transparent. */
static void mask_follows_texture(void)
{
    enum { width = 200, height = 90, flat = 20 * width + 60, busy = 20 * width + 150 };
    static float gentle[width * height], strong[width * height], blue[width * height];
    struct image image = image_make(width, height, 4, 8);
    struct workspace workspace;
    struct texture texture;
    struct plane plane;
    uint64_t seed = 14;

    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            uint8_t *pixel = (uint8_t *)image.pixels + (y * width + x) * 4;

            pixel[0] = pixel[1] = pixel[2] = (uint8_t)(x < 100 ? 120 : 128 + 20 * random_gauss(&seed));
            pixel[3] = y >= 40 && y < 50 ? 0 : 255;
            if (x < 20)
                pixel[0] = pixel[1] = pixel[2] = 255;
        }
    workspace_init(&workspace);
    CU_ASSERT_FATAL(plane_read(&image, PLANE_LUMA, 1, &workspace, &plane));
    CU_ASSERT_FATAL(texture_measure(plane.luma, width, height, texture_luma_radius, &workspace, &texture));
    struct texture_mask mask = {&plane, texture.activity, 0.25f, false};
    texture_mask_row(&mask, 0, width * height, 0.1f, gentle, NULL);
    texture_mask_row(&mask, 0, width * height, 100, strong, blue); /* all caps reached */
    CU_ASSERT(gentle[flat] > 0);                                   /* flat: minimum */
    CU_ASSERT(gentle[busy] > 2 * gentle[flat]);                    /* busy: more */
    CU_ASSERT(strong[flat] < 1.5f);                                /* flat: a cap */
    CU_ASSERT(strong[busy] > 4 * strong[flat]);
    CU_ASSERT(blue[busy] > blue[flat] && blue[busy] < strong[busy]);
    CU_ASSERT(gentle[20 * width + 8] < 0.5f * gentle[flat]); /* white: less */
    CU_ASSERT_EQUAL(gentle[45 * width + 60], 0);             /* transparent: none */
    CU_ASSERT_EQUAL(strong[45 * width + 60], 0);
    workspace_fini(&workspace);
    free(image.pixels);
}

static int tap(int place, int length)
{
    return place < 0 ? -1 - place : place >= length ? 2 * length - 1 - place : place;
}

/* Returns the mean over a square of a plane that is mirrored at the edges. */
static double square_mean(const double *plane, int width, int height, int x, int y, int radius)
{
    double sum = 0;

    for (int j = y - radius; j <= y + radius; j++)
        for (int i = x - radius; i <= x + radius; i++)
            sum += plane[tap(j, height) * width + tap(i, width)];
    return sum / ((2 * radius + 1) * (2 * radius + 1));
}

/* Compares with direct means, twice over squares, for luma and for Cb. */
static void texture_is_detail_and_activity(void)
{
    enum { width = 61, height = 50, count = width * height };
    static float plane[count];
    static double exact[count], first[count], mean[count], roots[count];
    uint64_t seed = 15;

    for (int i = 0; i < count; i++)
        plane[i] = (float)(exact[i] = 256 * random_uniform(&seed) - (i % width < 30 ? 0 : 128));
    for (int radius = texture_luma_radius; radius <= texture_blue_radius; radius += 3) {
        struct workspace workspace;
        struct texture texture;

        workspace_init(&workspace);
        CU_ASSERT_FATAL(texture_measure(plane, width, height, radius, &workspace, &texture));
        for (int i = 0; i < count; i++)
            first[i] = square_mean(exact, width, height, i % width, i / width, radius);
        for (int i = 0; i < count; i++) {
            mean[i] = square_mean(first, width, height, i % width, i / width, radius);
            roots[i] = sqrt(fabs(exact[i] - mean[i]));
            CU_ASSERT_DOUBLE_EQUAL((double)texture.detail[i], exact[i] - mean[i], 0.01);
        }
        for (int i = 0; i < count; i++)
            first[i] = square_mean(roots, width, height, i % width, i / width, 4);
        for (int i = 0; i < count; i++) {
            double root = square_mean(first, width, height, i % width, i / width, 4);

            CU_ASSERT_DOUBLE_EQUAL((double)texture.activity[i], root * root, 0.02);
        }
        workspace_fini(&workspace);
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"the mask follows texture", mask_follows_texture},
        {"texture is detail and activity", texture_is_detail_and_activity},
        CU_TEST_INFO_NULL,
    };
    return runner_run("texture", tests);
}
