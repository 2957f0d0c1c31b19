/* Results keep palettes and greys if the changed picture fits them. */
#include <string.h>

#include "codec/color.h"
#include "codec/metadata/keep.h"
#include "damage_maker.h"

/* A palette and few greys stay if the result fits; otherwise a note reports the change. */
static void test_png_palette(void)
{
    static const struct made_spec specs[] = {
        {"palette 1", FORMAT_PNG, 97, 71, 1, false, .depth_bits = 1, .is_palette = true,
         .has_transparency = true},
        {"palette 4", FORMAT_PNG, 97, 71, 1, false, .depth_bits = 4, .is_palette = true},
        {"palette 8", FORMAT_PNG, 97, 71, 1, false, .depth_bits = 8, .is_palette = true,
         .has_transparency = true},
        {"grey 1", FORMAT_PNG, 97, 71, 1, false, .depth_bits = 1},
        {"grey 2", FORMAT_PNG, 97, 71, 1, false, .depth_bits = 2, .is_progressive = true},
        {"grey 4", FORMAT_PNG, 97, 71, 1, false, .depth_bits = 4},
    };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct codec_bytes file = make_picture(&specs[i]), again = recode(&file);
        CU_ASSERT_EQUAL(again.data[25], file.data[25]);
        CU_ASSERT(again.data[24] <= file.data[24]);
        CU_ASSERT_PTR_NULL(context.notes);
        check_same(&specs[i], &again);
        bytes_free(&file);
        bytes_free(&again);
    }
}

/* A palette of greys is a grey picture, with its alpha. */
static void test_png_palette_of_greys(void)
{
    for (int is_clear = 0; is_clear <= 1; is_clear++) {
        struct codec_bytes file = make_picture(&colored), again;
        struct codec_picture picture;
        size_t at = png_at(&file, "PLTE"), count = (png_bytes(&file, at) - 12) / 3;
        for (size_t i = 0; i < count * 3; i++)
            file.data[at + 8 + i] = (unsigned char)(i / 3 * 13);
        png_seal(&file, at);
        if (is_clear)
            png_insert(&file, png_at(&file, "IDAT"), "tRNS", "\x80", 1);
        CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
        CU_ASSERT_EQUAL(picture.image.channels, is_clear ? 2 : 1);
        const unsigned char *samples = picture.image.pixels;
        for (size_t i = 0; i < picture.image.height_px * picture.image.stride_bytes;
             i += picture.image.channels)
            CU_ASSERT_EQUAL(samples[i] % 13, 0);
        CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &again), IW_OK);
        CU_ASSERT_EQUAL(again.data[25], 3);
        codec_picture_free(&picture);
        bytes_free(&again);
        bytes_free(&file);
    }
}

/* After a small change, a page of few colours is smaller without filters. A picture of gradients is not, so
 * it keeps the filters. */
static void test_png_growth(void)
{
    static const struct made_spec page = {"page", FORMAT_PNG, 400, 300, 1, false, .depth_bits = 8};
    struct codec_bytes file = make_picture(&page), small, large;
    struct codec_picture picture;
    unsigned state = 1;
    CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
    unsigned char *samples = picture.image.pixels;
    for (size_t i = 0; i < picture.image.height_px * picture.image.stride_bytes; i++) {
        state = state * 1103515245 + 12345;
        samples[i] = (unsigned char)(((i % 400 / 10 + i / 4000) % 9 == 0 ? 2 : 255) - (state >> 16) % 3);
    }
    picture.header.is_small = false;
    picture.keep->color_count = 2;
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &small), IW_OK);
    picture.keep->color_count = 0;
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &large), IW_OK);
    CU_ASSERT(small.size < large.size * 9 / 10);
    bytes_free(&small);
    bytes_free(&large);
    for (size_t i = 0; i < picture.image.height_px * picture.image.stride_bytes; i++)
        samples[i] = (unsigned char)(i % 400 / 2 + i / 4000);
    picture.keep->color_count = 2;
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &small), IW_OK);
    picture.keep->color_count = 0;
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &large), IW_OK);
    CU_ASSERT(small.size <= large.size);
    codec_picture_free(&picture);
    bytes_free(&small);
    bytes_free(&large);
    bytes_free(&file);
}

static void test_png_palette_expanded(void)
{
    struct codec_bytes file = make_picture(&colored), again;
    struct codec_picture picture;
    CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
    unsigned char *rgb = picture.image.pixels;
    for (unsigned i = 0; i < 300; i++)
        rgb[3 * i] = (unsigned char)(i / 2), rgb[3 * i + 1] = (unsigned char)(i % 2);
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &again), IW_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(context.notes);
    CU_ASSERT_STRING_EQUAL(context.notes->code, "PALETTE_EXPANDED");
    CU_ASSERT_PTR_NOT_NULL(strstr(context.notes->sentence, "more than 256"));
    CU_ASSERT_EQUAL(again.data[25], 2);
    codec_picture_free(&picture);
    bytes_free(&again);
    bytes_free(&file);
}

static void test_png_grey_expanded(void)
{
    const struct made_spec spec = {"grey 2", FORMAT_PNG, 97, 71, 1, false, .depth_bits = 2};
    struct codec_bytes file = make_picture(&spec), again;
    struct codec_picture picture;
    CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
    ((unsigned char *)picture.image.pixels)[5] = 84;
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &again), IW_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(context.notes);
    CU_ASSERT_STRING_EQUAL(context.notes->code, "PALETTE_EXPANDED");
    CU_ASSERT_PTR_NOT_NULL(strstr(context.notes->sentence, "at most 4 colours; the result has 5"));
    CU_ASSERT(again.data[24] == 4 && again.data[25] == 3);
    bytes_free(&again);
    context_clear(&context);
    context.notes = NULL;
    picture.header.is_small = false;
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &again), IW_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(context.notes);
    CU_ASSERT_PTR_NOT_NULL(strstr(context.notes->sentence, "4 levels of grey"));
    CU_ASSERT(again.data[24] == 8 && again.data[25] == 0);
    codec_picture_free(&picture);
    bytes_free(&again);
    bytes_free(&file);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"PNG: a palette that fits", test_png_palette},
        {"PNG: a palette of greys", test_png_palette_of_greys},
        {"PNG: few colours grow little", test_png_growth},
        {"PNG: a palette that does not", test_png_palette_expanded},
        {"PNG: grey that does not fit", test_png_grey_expanded},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("palettes", tests);
}
