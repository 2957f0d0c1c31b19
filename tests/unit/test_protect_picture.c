/* Protection from decoder to encoder: the decoded result has the strength. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CUnit/Basic.h>

#include "picture_maker.h"
#include "codec/protect_picture.h"
#include "codec/protect_sample.h"

static struct arena *arena;
static struct context context;
static struct protect *protect;

static int suite_begin(void)
{
    char path[4096];
    const char *top = getenv("srcdir");
    snprintf(path, sizeof path, "%s/data/protect.weights", top != NULL ? top : ".");
    arena = arena_new(1 << 20);
    context_init(&context, arena, "test");
    return protect_open(&context, path, &protect) == IW_OK ? 0 : 1;
}

static int suite_end(void)
{
    protect_free(protect);
    context_clear(&context);
    arena_free(arena);
    return 0;
}

/* Pictures of at least 1,072 rows are tried on strips first. */
static const struct {
    struct made_spec spec;
    bool is_sampled;
} pictures[] = {
    {{.name = "JPEG",
      .format = CODEC_JPEG,
      .width_px = 96,
      .height_px = 1072,
      .channels = 3,
      .sampling = 22,
      .quality = 75},
     true},
    {{.name = "fine JPEG",
      .format = CODEC_JPEG,
      .width_px = 75,
      .height_px = 2500,
      .channels = 3,
      .sampling = 11,
      .quality = 95,
      .has_metadata = true},
     true},
    {{.name = "progressive JPEG",
      .format = CODEC_JPEG,
      .width_px = 101,
      .height_px = 1201,
      .channels = 3,
      .sampling = 21,
      .quality = 85,
      .is_progressive = true},
     true},
    {{.name = "grey JPEG",
      .format = CODEC_JPEG,
      .width_px = 80,
      .height_px = 1300,
      .channels = 1,
      .sampling = 11,
      .quality = 80},
     true},
    {{.name = "a row too few",
      .format = CODEC_JPEG,
      .width_px = 90,
      .height_px = 1071,
      .channels = 3,
      .sampling = 22,
      .quality = 75},
     false},
    {{.name = "CMYK",
      .format = CODEC_JPEG,
      .width_px = 90,
      .height_px = 1200,
      .channels = 4,
      .quality = 90,
      .has_metadata = true,
      .has_ink_icc = true},
     false},
    {{.name = "YCCK",
      .format = CODEC_JPEG,
      .width_px = 90,
      .height_px = 1200,
      .channels = 4,
      .factors = {22, 11, 11, 22},
      .quality = 85,
      .is_ycck = true},
     false},
    {{.name = "WebP", .format = CODEC_WEBP, .width_px = 90, .height_px = 1200, .channels = 3, .quality = 90},
     false},
    {{.name = "PNG", .format = CODEC_PNG, .width_px = 90, .height_px = 1200, .channels = 4, .depth_bits = 8},
     false},
};

static void decode(const struct codec_bytes *file, struct codec_picture *picture)
{
    static const struct codec_limits limits = {0};
    CU_ASSERT_EQUAL_FATAL(codec_decode(&context, file->data, file->size, &limits, picture), IW_OK);
}

/* Protect, check the decoded result, and return the report. */
static struct protect_report protect_and_look(struct codec_picture *picture, enum protect_strength strength)
{
    struct codec_bytes bytes;
    struct codec_picture result;
    struct protect_report report;
    CU_ASSERT_EQUAL_FATAL(protect_picture(&context, protect, picture, strength, 3, &bytes, &report), IW_OK);
    decode(&bytes, &result);
    CU_ASSERT(fabs(protect_psnr(&picture->image, &result.image) - report.psnr_db) < 0.01);
    codec_picture_free(&result);
    codec_bytes_free(&bytes);
    return report;
}

static void test_strengths(void)
{
    for (unsigned i = 0; i < sizeof pictures / sizeof pictures[0]; i++) {
        struct codec_bytes file = make_picture(&pictures[i].spec);
        struct codec_picture picture, before;
        decode(&file, &picture);
        decode(&file, &before);
        CU_ASSERT_EQUAL(sample_is_worth(&picture), pictures[i].is_sampled);
        for (unsigned strength = 0; strength < protect_strength_count; strength++) {
            struct protect_report report = protect_and_look(&picture, (enum protect_strength)strength);
            if (fabs(report.psnr_db - report.target_db) > 0.3)
                printf("  %s: %.2f dB instead of %.0f\n", pictures[i].spec.name, report.psnr_db,
                       report.target_db);
            CU_ASSERT(fabs(report.psnr_db - report.target_db) <= 0.3);
            CU_ASSERT(!report.is_limited);
        }
        CU_ASSERT_EQUAL(memcmp(picture.image.pixels, before.image.pixels,
                               picture.image.height_px * picture.image.stride_bytes),
                        0);
        codec_picture_free(&picture);
        codec_picture_free(&before);
        codec_bytes_free(&file);
    }
}

static struct context_note *note_by_code(const char *code)
{
    struct context_note *note = context.notes;
    while (note != NULL && strcmp(note->code, code) != 0)
        note = note->next;
    return note;
}

/* A result below the strength, or without any change, has a note. */
static void test_notes(void)
{
    static const struct {
        struct made_spec spec;
        const char *word; /* NULL: no note */
    } files[] = {
        {{"fine", CODEC_JPEG, 256, 256, 3, false, .quality = 90}, NULL},
        {{"PNG", CODEC_PNG, 256, 256, 3, false, .depth_bits = 8}, NULL},
        {{"coarse", CODEC_JPEG, 256, 256, 3, false, .quality = 1}, "No pixel changed"},
        {{"flat", CODEC_PNG, 256, 256, 1, false, .depth_bits = 1}, "weaker"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct codec_bytes file = make_picture(&files[i].spec);
        struct codec_picture picture;
        decode(&file, &picture);
        context.notes = NULL;
        protect_and_look(&picture, PROTECT_LOW);
        struct context_note *note = note_by_code("PROTECTION_REDUCED");
        CU_ASSERT_EQUAL(note != NULL, files[i].word != NULL);
        if (note != NULL && files[i].word != NULL)
            CU_ASSERT_PTR_NOT_NULL(strstr(note->sentence, files[i].word));
        codec_picture_free(&picture);
        codec_bytes_free(&file);
    }
}

/*
 * Only rows between the strips have texture, so the strips are not representative. The result
 * must match a search on the whole picture, which hides little and may get less than the
 * strength.
 */
static void test_unlike_sample(void)
{
    struct codec_bytes file = make_picture(&pictures[0].spec);
    struct codec_picture picture;
    decode(&file, &picture);
    const struct image *image = &picture.image;
    for (uint32_t y = 0; y < image->height_px; y++)
        if (y % 192 >= 64 - 32 && y % 192 < 64 + 48 + 32)
            memset((unsigned char *)image->pixels + y * image->stride_bytes, 0, image->stride_bytes);
    struct protect_report whole, report = protect_and_look(&picture, PROTECT_STANDARD);
    CU_ASSERT_EQUAL(protect_apply(protect, &picture.image, PROTECT_STANDARD, 3, &whole), IW_OK);
    CU_ASSERT(fabs(report.psnr_db - whole.psnr_db) <= 0.3);
    CU_ASSERT_EQUAL(report.is_limited, whole.is_limited);
    codec_picture_free(&picture);
    codec_bytes_free(&file);
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("protect_picture", suite_begin, suite_end);
    CU_add_test(suite, "the strength is that of the encoded result", test_strengths);
    CU_add_test(suite, "a note tells of less than the strength", test_notes);
    CU_add_test(suite, "strips unlike the rest do not lead astray", test_unlike_sample);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failures == 0 ? 0 : 1;
}
