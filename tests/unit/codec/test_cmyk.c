/* CMYK stays CMYK. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/cmyk.h"
#include "damage_maker.h"

/* Samples without ink are white, whether they are plain or inverted. */
static void test_cmyk_ways(void)
{
    for (int is_unmarked = 0; is_unmarked <= 1; is_unmarked++) {
        const struct made_spec spec = {
            "CMYK", FORMAT_JPEG, 64, 64, 4, false, .quality = 95, .is_unmarked = is_unmarked};
        struct codec_bytes file = make_picture(&spec);
        struct codec_picture picture;
        CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
        CU_ASSERT(picture.header.is_cmyk);
        const unsigned char *rgb = picture.image.pixels;
        for (uint32_t c = 0; c < 3; c++) {
            unsigned color = made_sample(0, 0, c), black = made_sample(0, 0, 3);
            unsigned wanted = is_unmarked ? (255 - color) * (255 - black) / 255 : color * black / 255;
            CU_ASSERT(abs((int)rgb[c] - (int)wanted) < 12);
        }
        codec_picture_free(&picture);
        bytes_free(&file);
    }
}

/* Checks that the new inks, converted to RGB, show the engine's change. */
static void check_carry(const struct cmyk_grid *grid)
{
    enum { count = 20000 };
    double wanted_sum = 0, missed_sum = 0;
    unsigned state = 1;
    for (unsigned i = 0; i < count; i++) {
        unsigned char ink[4], out[4], before[3], rgb[3], after[3];
        for (int k = 0; k < 4; k++, state = state * 1103515245 + 12345)
            ink[k] = (unsigned char)((state >> 16) % (k == 3 ? 180 : 256));
        cmyk_to_rgb(grid, ink, 1, before);
        cmyk_carry(grid, ink, before, 1, out);
        CU_ASSERT_EQUAL(memcmp(ink, out, sizeof ink), 0);
        for (int c = 0; c < 3; c++, state = state * 1103515245 + 12345) {
            int moved = before[c] + (int)((state >> 16) % 25) - 12;
            rgb[c] = (unsigned char)(moved < 0 ? 0 : moved > 255 ? 255 : moved);
        }
        cmyk_carry(grid, ink, rgb, 1, out);
        cmyk_to_rgb(grid, out, 1, after);
        for (int c = 0; c < 3; c++) {
            wanted_sum += (rgb[c] - before[c]) * (rgb[c] - before[c]);
            missed_sum += (rgb[c] - after[c]) * (rgb[c] - after[c]);
        }
    }
    CU_ASSERT(missed_sum < 0.05 * wanted_sum);
    printf("  carried but for %.1f %% of the energy\n", 100 * missed_sum / wanted_sum);
}

static void test_cmyk_carries(void)
{
    size_t size = 0;
    unsigned char *icc = made_ink_icc(&size), *other = NULL;
    struct cmyk_grid *plain = cmyk_grid_new(NULL, 0), *press = cmyk_grid_new(icc, size);
    unsigned char half[4] = {128, 0, 0, 0}, by_plain[3], by_press[3];
    check_carry(plain);
    check_carry(press);
    cmyk_to_rgb(plain, half, 1, by_plain);
    cmyk_to_rgb(press, half, 1, by_press);
    CU_ASSERT_EQUAL(by_plain[0], 127);
    CU_ASSERT(by_press[0] < 110); /* the press's profile is darker */
    free(plain);
    free(press);
    /* A damaged profile is ignored, and so is a profile of another colour space. */
    other = made_icc(&size);
    plain = cmyk_grid_new(other, size);
    cmyk_to_rgb(plain, half, 1, by_press);
    CU_ASSERT_EQUAL(by_press[0], 127);
    free(plain);
    plain = cmyk_grid_new(icc, 200);
    cmyk_to_rgb(plain, half, 1, by_press);
    CU_ASSERT_EQUAL(by_press[0], 127);
    free(plain);
    free(icc);
    free(other);
}

/* The result is CMYK of the same kind, with the same marker and profile. */
static void test_cmyk_stays(void)
{
    const struct made_spec spec = {
        "YCCK",          FORMAT_JPEG,        97, 71, 4, true, .factors = {22, 11, 11, 22}, .quality = 90,
        .is_ycck = true, .has_ink_icc = true};
    struct codec_bytes file = make_picture(&spec), again = recode(&file);
    size_t frame = find(&again, "\xff\xc0", 2), adobe = find(&again, "Adobe", 5);
    CU_ASSERT_EQUAL(again.data[frame + 9], 4);
    CU_ASSERT_EQUAL(again.data[frame + 11], 0x22);
    CU_ASSERT_EQUAL(again.data[adobe + 11], 2);
    CU_ASSERT(holds(&again, "ICC_PROFILE"));
    bytes_free(&file);
    bytes_free(&again);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"CMYK: both ways to count", test_cmyk_ways},
        {"CMYK: changes are carried into the inks", test_cmyk_carries},
        {"CMYK: stays CMYK", test_cmyk_stays},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("CMYK", tests);
}
