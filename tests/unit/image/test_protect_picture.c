/* Protection from decoder to encoder: the report describes the decoded result. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CUnit/Basic.h>

#include "engine/protect/change.h"
#include "image/protect_picture.h"
#include "picture_maker.h"

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
    return protect_picture_open(&context, path, NULL, &protect) == IW_OK ? 0 : 1;
}

static int suite_end(void)
{
    protect_free(protect);
    context_clear(&context);
    arena_free(arena);
    return 0;
}

static const struct made_spec pictures[] = {
    {.name = "JPEG",
     .format = FORMAT_JPEG,
     .width_px = 96,
     .height_px = 1072,
     .channels = 3,
     .sampling = 22,
     .quality = 75},
    {.name = "fine JPEG",
     .format = FORMAT_JPEG,
     .width_px = 75,
     .height_px = 2500,
     .channels = 3,
     .sampling = 11,
     .quality = 95,
     .has_metadata = true},
    {.name = "progressive JPEG",
     .format = FORMAT_JPEG,
     .width_px = 101,
     .height_px = 1201,
     .channels = 3,
     .sampling = 21,
     .quality = 85,
     .is_progressive = true},
    {.name = "grey JPEG",
     .format = FORMAT_JPEG,
     .width_px = 80,
     .height_px = 1300,
     .channels = 1,
     .sampling = 11,
     .quality = 80},
    {.name = "a row too few",
     .format = FORMAT_JPEG,
     .width_px = 90,
     .height_px = 1071,
     .channels = 3,
     .sampling = 22,
     .quality = 75},
    {.name = "CMYK",
     .format = FORMAT_JPEG,
     .width_px = 90,
     .height_px = 1200,
     .channels = 4,
     .quality = 90,
     .has_metadata = true,
     .has_ink_icc = true},
    {.name = "YCCK",
     .format = FORMAT_JPEG,
     .width_px = 90,
     .height_px = 1200,
     .channels = 4,
     .factors = {22, 11, 11, 22},
     .quality = 85,
     .is_ycck = true},
    {.name = "coarse JPEG",
     .format = FORMAT_JPEG,
     .width_px = 96,
     .height_px = 1072,
     .channels = 3,
     .sampling = 22,
     .quality = 10},
    {.name = "finest JPEG, 4:2:0",
     .format = FORMAT_JPEG,
     .width_px = 96,
     .height_px = 1072,
     .channels = 3,
     .sampling = 22,
     .quality = 98},
    {.name = "finest JPEG, 4:4:4",
     .format = FORMAT_JPEG,
     .width_px = 96,
     .height_px = 1072,
     .channels = 3,
     .sampling = 11,
     .quality = 96,
     .is_progressive = true},
    {.name = "JPEG with stripes",
     .format = FORMAT_JPEG,
     .width_px = 96,
     .height_px = 3201,
     .channels = 3,
     .sampling = 22,
     .quality = 85,
     .has_metadata = true},
    {.name = "progressive JPEG with stripes",
     .format = FORMAT_JPEG,
     .width_px = 75,
     .height_px = 1650,
     .channels = 3,
     .sampling = 21,
     .quality = 80,
     .is_progressive = true},
    {.name = "WebP", .format = FORMAT_WEBP, .width_px = 90, .height_px = 1200, .channels = 3, .quality = 90},
    {.name = "WebP, alpha",
     .format = FORMAT_WEBP,
     .width_px = 90,
     .height_px = 1200,
     .channels = 4,
     .quality = 60},
    {.name = "PNG", .format = FORMAT_PNG, .width_px = 90, .height_px = 1200, .channels = 4, .depth_bits = 8},
};

static void decode(const struct codec_bytes *file, struct codec_picture *picture)
{
    static const struct codec_limits limits = {0};
    CU_ASSERT_EQUAL_FATAL(codec_decode(&context, file->data, file->size, &limits, picture), IW_OK);
}

static const struct codec_limits no_limits = {0};

static struct protect_order order_of(const struct codec_bytes *file, enum protect_strength strength)
{
    return (struct protect_order){.data = file->data,
                                  .size = file->size,
                                  .limits = &no_limits,
                                  .strength = strength,
                                  .seed = 3,
                                  .growth_max_percent = 100};
}

/* A change of coefficients keeps the budget. Encoders of pixels add noise. */
static double shown_most(const struct made_spec *spec)
{
    return spec->format == FORMAT_JPEG && spec->channels < 4 ? 1.06 : 1.25;
}

/* Protects, checks the decoded result, and returns the report. */
static struct protect_report protect_and_look(const struct codec_bytes *file, struct codec_picture *picture,
                                              enum protect_strength strength)
{
    const struct protect_order order = order_of(file, strength);
    struct codec_bytes bytes;
    struct codec_picture result;
    struct protect_report report;
    CU_ASSERT_EQUAL_FATAL(protect_picture(&context, protect, &order, picture, &bytes, &report), IW_OK);
    decode(&bytes, &result);
    CU_ASSERT(fabs(change_psnr(&picture->image, &result.image) - report.psnr_db) < 0.01);
    codec_picture_free(&result);
    bytes_free(&bytes);
    return report;
}

/* Compares the picture with an encoding without a change, both as coding noise and as a result. */
static struct protect_report plain_look(const struct codec_bytes *file, enum protect_strength strength)
{
    struct codec_picture picture, result;
    struct codec_bytes bytes;
    struct protect_plan *plan;
    struct protect_report report;
    struct change_sums sums;
    decode(file, &picture);
    CU_ASSERT_EQUAL_FATAL(protect_plan_new(&plan, protect, &picture.image, 3), IW_OK);
    change_add(plan, &picture.image, strength, 1, &report);
    change_undo(plan, &picture.image);
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &bytes), IW_OK);
    decode(&bytes, &result);
    for (unsigned i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(change_compare_begin(plan, &picture.image, &sums), IW_OK);
        change_compare(plan, &picture.image, 0, &result.image, &sums);
        if (i == 0)
            change_coding_end(plan, strength, &report);
        else
            change_compare_end(plan, &sums, &report);
    }
    CU_ASSERT(fabs(report.coding - report.shown) < 1e-9);
    protect_plan_free(plan);
    codec_picture_free(&result);
    codec_picture_free(&picture);
    bytes_free(&bytes);
    return report;
}

static void test_strengths(void)
{
    for (unsigned i = 0; i < sizeof pictures / sizeof pictures[0]; i++) {
        struct codec_bytes file = make_picture(&pictures[i]);
        struct codec_picture picture, before;
        decode(&file, &picture);
        decode(&file, &before);
        double before_db = 99;
        for (unsigned strength = 0; strength < protect_strength_count; strength++) {
            struct protect_report report = protect_and_look(&file, &picture, (enum protect_strength)strength);
            if (getenv("SHOW") != NULL)
                printf("  %s %u: PSNR %.2f, shown %.2f, coding %.2f, share %.2f\n", pictures[i].name,
                       strength, report.psnr_db, report.shown / report.visibility,
                       report.coding / report.visibility, report.share);
            CU_ASSERT(report.psnr_db <= before_db && report.psnr_db > 30);
            CU_ASSERT(report.shown < hypot(shown_most(&pictures[i]) * report.visibility, report.coding));
            CU_ASSERT(report.coding == 0 ||
                      fabs(report.coding - plain_look(&file, (enum protect_strength)strength).shown) < 1e-6);
            before_db = report.psnr_db;
        }
        CU_ASSERT_EQUAL(memcmp(picture.image.pixels, before.image.pixels,
                               picture.image.height_px * picture.image.stride_bytes),
                        0);
        codec_picture_free(&picture);
        codec_picture_free(&before);
        bytes_free(&file);
    }
}

static struct context_note *note_by_code(const char *code)
{
    struct context_note *note = context.notes;
    while (note != NULL && strcmp(note->code, code) != 0)
        note = note->next;
    return note;
}

/* A result weaker than ordered, or without any change, has a note. */
static void test_notes(void)
{
    static const struct {
        struct made_spec spec;
        enum protect_strength strength;
        const char *word; /* NULL if there is no note */
    } files[] = {
        {{"finest", FORMAT_JPEG, 256, 256, 3, false, .quality = 100}, PROTECT_HIGH, NULL},
        {{"usual", FORMAT_JPEG, 256, 256, 3, false, .quality = 40}, PROTECT_STANDARD, "original export"},
        {{"PNG", FORMAT_PNG, 256, 256, 3, false, .depth_bits = 8}, PROTECT_LOW, NULL},
        {{"coarse", FORMAT_JPEG, 256, 256, 3, false, .quality = 1}, PROTECT_LOW, "No pixel changed"},
        {{"black and white", FORMAT_PNG, 256, 256, 1, false, .depth_bits = 1}, PROTECT_HIGH, "weaker"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct codec_bytes file = make_picture(&files[i].spec);
        struct codec_picture picture;
        decode(&file, &picture);
        context.notes = NULL;
        struct protect_report report = protect_and_look(&file, &picture, files[i].strength);
        if (getenv("SHOW") != NULL)
            printf("  %s: PSNR %.2f, share %.2f\n", files[i].spec.name, report.psnr_db, report.share);
        if (files[i].word != NULL)
            CU_ASSERT_STRING_EQUAL(context.notes->code, "PROTECTION_REDUCED");
        struct context_note *note = note_by_code("PROTECTION_REDUCED");
        CU_ASSERT_EQUAL(note != NULL, files[i].word != NULL);
        if (note != NULL && files[i].word != NULL)
            CU_ASSERT_PTR_NOT_NULL(strstr(note->sentence, files[i].word));
        codec_picture_free(&picture);
        bytes_free(&file);
    }
}

/* A lossy file keeps a smaller share than a PNG, and a coarser file less. Encoding without a change keeps
 * nearly nothing. */
static void test_shares(void)
{
    static const struct made_spec files[] = {
        {"PNG", FORMAT_PNG, 256, 256, 3, false, .depth_bits = 8},
        {"JPEG 75", FORMAT_JPEG, 256, 256, 3, false, .quality = 75},
        {"JPEG 40", FORMAT_JPEG, 256, 256, 3, false, .quality = 40},
        {"PNG", FORMAT_PNG, 256, 256, 3, false, .depth_bits = 8},
        {"WebP 80", FORMAT_WEBP, 256, 256, 3, false, .quality = 80},
        {"WebP 30", FORMAT_WEBP, 256, 256, 3, false, .quality = 30},
    };
    double before = 1;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct codec_bytes file = make_picture(&files[i]);
        struct codec_picture picture;
        decode(&file, &picture);
        const struct protect_report report = protect_and_look(&file, &picture, PROTECT_STANDARD),
                                    coding = plain_look(&file, PROTECT_STANDARD);
        if (getenv("SHOW") != NULL)
            printf("  %s: share %.2f, coding %.3f\n", files[i].name, report.share, coding.share);
        before = files[i].format == FORMAT_PNG ? 2 : before; /* the share of a PNG may be 1 */
        CU_ASSERT(report.share > 0 && report.share < before);
        CU_ASSERT(coding.share < .05);
        before = report.share;
        codec_picture_free(&picture);
        bytes_free(&file);
    }
}

/* At a higher quality, a JPEG or WebP keeps more of the change, within the limits of growth and visibility.
 * Two runs give the same bytes. */
static void test_growth(void)
{
    for (size_t i = 0; i < sizeof pictures / sizeof pictures[0]; i++) {
        double before = 0;
        struct codec_bytes file = make_picture(&pictures[i]);
        for (unsigned growth = 100; growth <= 200; growth += 50) {
            struct codec_picture picture;
            struct codec_bytes bytes, again;
            struct protect_report report;
            struct protect_order order = order_of(&file, PROTECT_STANDARD);
            order.growth_max_percent = growth;
            decode(&file, &picture);
            context.notes = NULL;
            CU_ASSERT_EQUAL_FATAL(protect_picture(&context, protect, &order, &picture, &bytes, &report),
                                  IW_OK);
            const bool is_noted = note_by_code("ENCODED_FINER") != NULL;
            CU_ASSERT_EQUAL_FATAL(protect_picture(&context, protect, &order, &picture, &again, &report),
                                  IW_OK);
            CU_ASSERT(bytes.size == again.size && memcmp(bytes.data, again.data, bytes.size) == 0);
            CU_ASSERT(!is_noted || bytes.size <= file.size * growth / 100);
            CU_ASSERT(growth > 100 || !is_noted);
            CU_ASSERT(report.shown < hypot(shown_most(&pictures[i]) * report.visibility, report.coding));
            CU_ASSERT(report.share > before - 0.02);
            if (getenv("SHOW") != NULL)
                printf("  %s %u %%: x %.2f, shown %.2f, share %.2f%s\n", pictures[i].name, growth,
                       (double)bytes.size / (double)file.size, report.shown / report.visibility, report.share,
                       is_noted ? ", finer" : "");
            before = report.share;
            codec_picture_free(&picture);
            bytes_free(&bytes);
            bytes_free(&again);
        }
        bytes_free(&file);
    }
}

/* Data after the picture, such as the film of a motion photo, does not count as bytes of the picture. */
static void test_trailer(void)
{
    static const struct made_spec spec = {"photo", FORMAT_JPEG,    256,          256, 3,
                                          false,   .sampling = 22, .quality = 85};
    enum { trailer_bytes = 300000 };
    struct codec_bytes file = make_picture(&spec), results[2];
    const size_t size = file.size;
    file.data = realloc(file.data, size + trailer_bytes);
    memset((char *)file.data + size, 'f', trailer_bytes);
    for (int i = 0; i < 2; i++) {
        struct codec_picture picture;
        struct protect_report report;
        file.size = size + (i == 0 ? 0 : trailer_bytes);
        struct protect_order order = order_of(&file, PROTECT_STANDARD);
        order.growth_max_percent = 150;
        decode(&file, &picture);
        context.notes = NULL;
        CU_ASSERT_EQUAL_FATAL(protect_picture(&context, protect, &order, &picture, &results[i], &report),
                              IW_OK);
        CU_ASSERT_PTR_NOT_NULL(note_by_code("ENCODED_FINER"));
        codec_picture_free(&picture);
    }
    CU_ASSERT_EQUAL(results[0].size, results[1].size);
    CU_ASSERT_EQUAL(memcmp(results[0].data, results[1].data, results[0].size), 0);
    bytes_free(&results[0]);
    bytes_free(&results[1]);
    bytes_free(&file);
}

/* Encodes a WebP whose left half has alpha 0. */
static struct codec_bytes hidden_make(void)
{
    const struct made_spec spec = {"hidden", FORMAT_WEBP, 256, 128, 4, false, .quality = 60};
    struct codec_bytes made = make_picture(&spec), file = {NULL, 0};
    struct codec_picture picture;
    decode(&made, &picture);
    for (uint32_t y = 0; y < spec.height_px; y++)
        for (uint32_t x = 0; x < spec.width_px; x++)
            ((uint8_t *)image_row(&picture.image, y))[x * 4 + 3] = x < spec.width_px / 2 ? 0 : 255;
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &file), IW_OK);
    codec_picture_free(&picture);
    bytes_free(&made);
    return file;
}

/* The report does not count hidden pixels, whose colours the encoder changes. */
static void test_hidden(void)
{
    struct codec_bytes file = hidden_make();
    struct codec_picture picture;
    decode(&file, &picture);
    const struct protect_report report = protect_and_look(&file, &picture, PROTECT_STANDARD);
    CU_ASSERT(report.share > 0 && report.share < 1);
    codec_picture_free(&picture);
    bytes_free(&file);
}

/*
 * With more growth, the share of a WebP rises. The size stays within the limit or is that of 100 %, and only
 * a larger file has the note. The opt-out makes a tiny file exceed the limit. Shares may differ by rounding,
 * because the sums of the last encoding depend on the encodings before.
 */
static const double share_rounding = 1e-6;

static void test_webp_growth(void)
{
    static const struct {
        struct made_spec spec;
        bool is_finer; /* if 150 % is allowed */
    } files[] = {
        {{"coarse", FORMAT_WEBP, 768, 768, 3, false, .quality = 40}, true},
        {{"usual", FORMAT_WEBP, 256, 256, 3, false, .quality = 80}, true},
        {{"alpha", FORMAT_WEBP, 256, 256, 4, false, .quality = 80}, true},
        {{"finest", FORMAT_WEBP, 256, 256, 3, false, .quality = 100}, false},
        {{"tiny", FORMAT_WEBP, 64, 64, 3, false, .quality = 80}, false},
        {{"lossless", FORMAT_WEBP, 256, 256, 3, false, .is_lossless = true}, false},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct codec_bytes file = make_picture(&files[i].spec);
        double share = 0;
        size_t usual = 0;
        for (unsigned growth = 100; growth <= 150; growth += 25) {
            struct codec_picture picture;
            struct codec_bytes bytes;
            struct protect_report report;
            struct protect_order order = order_of(&file, PROTECT_STANDARD);
            order.growth_max_percent = growth;
            decode(&file, &picture);
            context.notes = NULL;
            CU_ASSERT_EQUAL_FATAL(protect_picture(&context, protect, &order, &picture, &bytes, &report),
                                  IW_OK);
            const bool is_noted = note_by_code("ENCODED_FINER") != NULL;
            if (getenv("SHOW") != NULL)
                printf("  %s %u %%: %zu bytes, x %.2f, shown %.2f, share %.2f%s\n", files[i].spec.name,
                       growth, file.size, (double)bytes.size / (double)file.size,
                       report.shown / report.visibility, report.share, is_noted ? ", finer" : "");
            usual = growth == 100 ? bytes.size : usual;
            CU_ASSERT(bytes.size == usual || bytes.size * 100 <= file.size * growth);
            CU_ASSERT(!is_noted || (growth > 100 && bytes.size > file.size));
            if (growth == 100)
                share = report.share;
            if (growth == 150)
                CU_ASSERT(files[i].is_finer ? is_noted && report.share > share
                                            : !is_noted && report.share > share - share_rounding);
            codec_picture_free(&picture);
            bytes_free(&bytes);
        }
        bytes_free(&file);
    }
}

/* ---- drawings */

enum { drawing_px = 256, disc_px = 80 };

/* Encodes a disc on a ground, with a grey outline of one pixel. With alpha, two fifths of the picture are
 * hidden. */
static struct codec_bytes drawing_make(enum format format, uint32_t channels)
{
    const struct made_spec spec = {.format = format,
                                   .width_px = drawing_px,
                                   .height_px = drawing_px,
                                   .channels = channels,
                                   .depth_bits = 8,
                                   .is_lossless = true};
    struct codec_bytes made = make_picture(&spec), file = {NULL, 0};
    struct codec_picture picture;
    decode(&made, &picture);
    for (uint32_t y = 0; y < drawing_px; y++)
        for (uint32_t x = 0; x < drawing_px; x++) {
            const double far = hypot(x - drawing_px / 2.0, y - drawing_px / 2.0) - disc_px;
            const uint8_t tone = far < 0 ? 90 : far < 1 ? 128 : 180;
            uint8_t *pixel = (uint8_t *)image_row(&picture.image, y) + x * channels;
            for (uint32_t i = 0; i < channels; i++)
                pixel[i] = i == 3 ? 255 : (uint8_t)(tone + 20 * i);
            if (channels == 4 && y >= drawing_px * 3 / 5)
                memset(pixel, 0, channels);
        }
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &file), IW_OK);
    codec_picture_free(&picture);
    bytes_free(&made);
    return file;
}

/* Counts the colours of the pixels that have one of the three tones in the original. */
static unsigned colors_count(const struct image *before, const struct image *after, uint8_t tone)
{
    uint32_t seen[64];
    unsigned count = 0;
    for (uint32_t y = 0; y < drawing_px; y++)
        for (uint32_t x = 0; x < drawing_px; x++) {
            const uint8_t *one = (const uint8_t *)image_row(before, y) + x * before->channels;
            uint32_t color = 0;
            unsigned i = 0;
            memcpy(&color, (const uint8_t *)image_row(after, y) + x * after->channels, before->channels);
            while (i < count && seen[i] != color)
                i++;
            if (one[0] == tone && i == count && count < 64)
                seen[count++] = color;
        }
    return count;
}

static void drawing_look(enum format format, uint32_t channels)
{
    struct codec_bytes file = drawing_make(format, channels), bytes, again;
    struct codec_picture picture, before, result;
    struct protect_report report;
    const struct protect_order order = order_of(&file, PROTECT_STANDARD);
    decode(&file, &picture);
    decode(&file, &before);
    const size_t size = picture.image.height_px * picture.image.stride_bytes;
    CU_ASSERT(picture.header.is_small);
    CU_ASSERT_EQUAL_FATAL(protect_picture(&context, protect, &order, &picture, &bytes, &report), IW_OK);
    CU_ASSERT_EQUAL(memcmp(picture.image.pixels, before.image.pixels, size), 0);
    CU_ASSERT_EQUAL_FATAL(protect_picture(&context, protect, &order, &picture, &again, &report), IW_OK);
    CU_ASSERT(bytes.size == again.size && memcmp(bytes.data, again.data, bytes.size) == 0);
    decode(&bytes, &result);
    if (getenv("SHOW") != NULL)
        printf("  %u channels: %zu bytes become %zu, shown %.2f, share %.2f, PSNR %.1f\n", channels,
               file.size, bytes.size, report.shown / report.visibility, report.share, report.psnr_db);
    CU_ASSERT(bytes.size < (format == FORMAT_PNG ? 4 : 5) * file.size); /* a WebP of 500 bytes */
    CU_ASSERT(report.shown > 0.5 * report.visibility && report.shown < 1.1 * report.visibility);
    CU_ASSERT(fabs(change_psnr(&before.image, &result.image) - report.psnr_db) < 0.01);
    CU_ASSERT_EQUAL(colors_count(&before.image, &result.image, 128), 1);
    for (unsigned disc = 0; disc < 2; disc++) {
        const unsigned count = colors_count(&before.image, &result.image, disc > 0 ? 90 : 180);
        CU_ASSERT(count > 1 && count <= 4);
    }
    codec_picture_free(&picture);
    codec_picture_free(&before);
    codec_picture_free(&result);
    bytes_free(&file);
    bytes_free(&bytes);
    bytes_free(&again);
}

/* A flat colour becomes at most four colours, an outline stays, and the file stays small. */
static void test_drawings(void)
{
    drawing_look(FORMAT_PNG, 1);
    drawing_look(FORMAT_PNG, 3);
    drawing_look(FORMAT_PNG, 4);
    drawing_look(FORMAT_WEBP, 3);
}

/* Protects a small file with a form, or without if is_small is false. */
static struct protect_report small_protect(const struct codec_bytes *file, bool is_small,
                                           struct codec_picture *picture, struct codec_picture *result)
{
    const struct protect_order order = order_of(file, PROTECT_STANDARD);
    struct codec_bytes bytes;
    struct protect_report report;
    decode(file, picture);
    CU_ASSERT(picture->header.is_small);
    picture->header.is_small = is_small;
    CU_ASSERT_EQUAL_FATAL(protect_picture(&context, protect, &order, picture, &bytes, &report), IW_OK);
    decode(&bytes, result);
    if (getenv("SHOW") != NULL)
        printf("  small %d: %zu bytes become %zu, shown %.2f, share %.2f\n", is_small, file->size, bytes.size,
               report.shown / report.visibility, report.share);
    bytes_free(&bytes);
    return report;
}

/* Returns the sum of the squared means of the change over blocks of 8x8 px, of all colours. */
static double block_squares(const struct image *before, const struct image *after)
{
    double squares = 0;
    for (uint32_t block = 0; block < drawing_px / 8 * (drawing_px / 8) * before->channels; block++) {
        const uint32_t channel = block % before->channels, place = block / before->channels;
        const uint32_t left = place % (drawing_px / 8) * 8, top = place / (drawing_px / 8) * 8;
        double mean = 0;
        for (uint32_t i = 0; i < 64; i++) {
            const size_t at = (left + i % 8) * before->channels + channel;
            mean += (((const uint8_t *)image_row(after, top + i / 8))[at] -
                     ((const uint8_t *)image_row(before, top + i / 8))[at]) /
                    64.0;
        }
        squares += mean * mean;
    }
    return squares;
}

/* JPEG keeps the means of blocks, so the form of a drawing must have as much of them as the change without a
 * form. */
static void test_drawing_means(void)
{
    struct codec_bytes file = drawing_make(FORMAT_PNG, 3);
    double squares[2];
    for (unsigned is_small = 0; is_small < 2; is_small++) {
        struct codec_picture picture, result;
        small_protect(&file, is_small > 0, &picture, &result);
        squares[is_small] = block_squares(&picture.image, &result.image);
        codec_picture_free(&picture);
        codec_picture_free(&result);
    }
    if (getenv("SHOW") != NULL)
        printf("  means of blocks: %.0f, without a form %.0f\n", squares[1], squares[0]);
    CU_ASSERT(squares[1] > 0.9 * squares[0]);
    bytes_free(&file);
}

/* Makes a file of the samples that a function returns for their place and a random number. */
static struct codec_bytes samples_make(const struct made_spec *spec,
                                       uint8_t (*sample)(uint32_t y, uint32_t at, uint32_t random))
{
    struct codec_bytes made = make_picture(spec), file = {NULL, 0};
    struct codec_picture picture;
    uint32_t random = 1;
    decode(&made, &picture);
    for (uint32_t y = 0; y < spec->height_px; y++)
        for (uint32_t at = 0; at < spec->width_px * spec->channels; at++) {
            random = random * 1664525 + 1013904223; /* Numerical Recipes, "quick and dirty" */
            ((uint8_t *)image_row(&picture.image, y))[at] = sample(y, at, random);
        }
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &file), IW_OK);
    codec_picture_free(&picture);
    bytes_free(&made);
    return file;
}

static const struct made_spec grey_png = {
    .format = FORMAT_PNG, .width_px = drawing_px, .height_px = drawing_px, .channels = 1, .depth_bits = 8};

static uint8_t white_above_noise(uint32_t y, uint32_t at, uint32_t random)
{
    (void)at;
    return y < drawing_px * 4 / 5 ? UINT8_MAX : (uint8_t)(random >> 24);
}

static uint8_t white_beside_gradient(uint32_t y, uint32_t at, uint32_t random)
{
    (void)y, (void)random;
    return at < drawing_px / 2 ? UINT8_MAX : (uint8_t)at;
}

/* A form changes white less and noise not at all, so the change without a form is used. */
static void test_white(void)
{
    struct codec_bytes file = samples_make(&grey_png, white_above_noise);
    struct codec_picture picture, result;
    const struct protect_report report = small_protect(&file, true, &picture, &result);
    CU_ASSERT(memcmp(image_row(&picture.image, drawing_px - 1), image_row(&result.image, drawing_px - 1),
                     drawing_px) != 0);
    CU_ASSERT(fabs(change_psnr(&picture.image, &result.image) - report.psnr_db) < 0.01);
    codec_picture_free(&picture);
    codec_picture_free(&result);
    const struct protect_report plain = small_protect(&file, false, &picture, &result);
    CU_ASSERT(report.share == plain.share && report.shown == plain.shown);
    codec_picture_free(&picture);
    codec_picture_free(&result);
    bytes_free(&file);
}

/* The search for flat colours does not change the report of another picture. */
static void test_gradient(void)
{
    struct codec_bytes file = samples_make(&grey_png, white_beside_gradient);
    struct codec_picture picture, result;
    struct protect_report reports[2];
    for (unsigned i = 0; i < 2; i++) {
        reports[i] = small_protect(&file, i > 0, &picture, &result);
        codec_picture_free(&picture);
        codec_picture_free(&result);
    }
    CU_ASSERT(reports[0].shown == reports[1].shown && reports[0].share == reports[1].share);
    bytes_free(&file);
}

static struct made_spec noise_spec(uint32_t height_px)
{
    return (struct made_spec){.format = FORMAT_JPEG,
                              .width_px = 160,
                              .height_px = height_px,
                              .channels = 3,
                              .sampling = 22,
                              .quality = 92};
}

/* Only the rows that a search of 4608 rows tries have noise. */
static uint8_t striped_sky(uint32_t y, uint32_t at, uint32_t random)
{
    static const uint8_t sky[3] = {120, 160, 210};
    return (uint8_t)(sky[at % 3] + (y / image_stripe_px % 6 == 3 ? random >> 24 : 0));
}

static uint8_t grey_noise(uint32_t y, uint32_t at, uint32_t random)
{
    (void)y, (void)at;
    return (uint8_t)(90 + (random >> 26));
}

static struct protect_report noise_protect(const struct codec_bytes *file, unsigned growth,
                                           struct codec_picture *before, struct codec_picture *after)
{
    struct codec_bytes bytes;
    struct protect_report report;
    struct codec_picture picture;
    struct protect_order order = order_of(file, PROTECT_STANDARD);
    order.growth_max_percent = growth;
    decode(file, &picture);
    CU_ASSERT_EQUAL_FATAL(protect_picture(&context, protect, &order, &picture, &bytes, &report), IW_OK);
    decode(file, before);
    decode(&bytes, after);
    codec_picture_free(&picture);
    bytes_free(&bytes);
    return report;
}

/* The search tries stripes that are unlike the rest; the picture still gets the ordered strength. */
static void test_stripes_unlike(void)
{
    const struct made_spec spec = noise_spec(4608);
    struct codec_bytes file = samples_make(&spec, striped_sky);
    struct codec_picture before, after;
    const struct protect_report report = noise_protect(&file, 150, &before, &after);
    if (getenv("SHOW") != NULL)
        printf("  share %.2f\n", report.share);
    CU_ASSERT(report.share > 0.5);
    codec_picture_free(&before);
    codec_picture_free(&after);
    bytes_free(&file);
}

/* In noise, finer steps show more of the change than they keep, so a higher quality must not reduce the
 * share. */
static void test_noise(void)
{
    const struct made_spec spec = noise_spec(400);
    struct codec_bytes file = samples_make(&spec, grey_noise);
    double shares[2];
    for (unsigned i = 0; i < 2; i++) {
        struct codec_picture before, after;
        shares[i] = noise_protect(&file, i == 0 ? 100 : 150, &before, &after).share;
        codec_picture_free(&before);
        codec_picture_free(&after);
    }
    if (getenv("SHOW") != NULL)
        printf("  noise: share %.2f, at 150 %% %.2f\n", shares[0], shares[1]);
    CU_ASSERT(shares[1] > shares[0] - 0.02);
    bytes_free(&file);
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("protect_picture", suite_begin, suite_end);
    CU_add_test(suite, "the report is that of the encoded result", test_strengths);
    CU_add_test(suite, "a JPEG has a smaller share than a PNG", test_shares);
    CU_add_test(suite, "a larger JPEG keeps more", test_growth);
    CU_add_test(suite, "data behind a JPEG do not count", test_trailer);
    CU_add_test(suite, "hidden pixels do not count", test_hidden);
    CU_add_test(suite, "a larger WebP keeps more", test_webp_growth);
    CU_add_test(suite, "a note tells of less than the strength", test_notes);
    CU_add_test(suite, "a drawing stays a file of a drawing", test_drawings);
    CU_add_test(suite, "a drawing keeps the means of blocks", test_drawing_means);
    CU_add_test(suite, "a drawing on white keeps the stronger change", test_white);
    CU_add_test(suite, "a gradient is no drawing", test_gradient);
    CU_add_test(suite, "stripes may be unlike the rest", test_stripes_unlike);
    CU_add_test(suite, "a higher quality keeps the share of noise", test_noise);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failures == 0 ? 0 : 1;
}
