/* Names of formats, and the formats that an order takes. */
#include "base/config.h"
#include "runner.h"
#include "model/format.h"

static void test_formats_have_a_name_everywhere(void)
{
    for (int i = FORMAT_NONE + 1; i < FORMAT_COUNT; i++) {
        enum format format = (enum format)i;
        CU_ASSERT_EQUAL(format_by_name(format_name(format)), format);
        CU_ASSERT_EQUAL(format_by_extension(format_extension(format)), format);
        CU_ASSERT(format_word(format) != NULL && format_media_type(format) != NULL);
        CU_ASSERT_PTR_NOT_NULL(format_title(format));
    }
    CU_ASSERT_EQUAL(format_by_extension(".JPEG"), FORMAT_JPEG);
    CU_ASSERT_EQUAL(format_by_extension(".HEIF"), FORMAT_HEIC);
    CU_ASSERT_EQUAL(format_by_extension(".jxl"), FORMAT_NONE);
    CU_ASSERT_EQUAL(format_by_name(""), FORMAT_NONE);
    CU_ASSERT_EQUAL(format_by_name(NULL), FORMAT_NONE);
    CU_ASSERT(!format_is_picture(FORMAT_NONE));
}

static void test_formats_of_an_extraction(void)
{
    struct config config = {.image_read_tiff = true, .image_read_bmp = true};
    struct arena *arena = arena_new(0);
    const unsigned usual = 1U << FORMAT_JPEG | 1U << FORMAT_PNG | 1U << FORMAT_WEBP;
    const unsigned read = 1U << FORMAT_TIFF | 1U << FORMAT_BMP;
    unsigned taken = formats_taken(&config, ORDER_WATERMARK_EXTRACT);
    CU_ASSERT_STRING_EQUAL(formats_extensions(arena, usual | read),
                           ".jpg, .jpeg, .png, .webp, .tif, .tiff or .bmp");
    CU_ASSERT_STRING_EQUAL(formats_titles(arena, usual), "JPEG, PNG or WebP");
    CU_ASSERT_STRING_EQUAL(formats_titles(arena, 1U << FORMAT_GIF), "GIF");
    CU_ASSERT_EQUAL(formats_changed() & usual, usual);
    CU_ASSERT_EQUAL(formats_taken(&config, ORDER_WATERMARK_EMBED), formats_changed());
    CU_ASSERT_EQUAL(taken, formats_changed() | read);
    for (int i = 0; i < FORMAT_COUNT; i++)
        CU_ASSERT_EQUAL(format_is_picture((enum format)i), format_is_in((enum format)i, formats_changed()));
    arena_free(arena);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"formats have a name everywhere", test_formats_have_a_name_everywhere},
        {"formats of an extraction", test_formats_of_an_extraction},
        CU_TEST_INFO_NULL,
    };
    return runner_run("format", tests);
}
