/*
 * Decodes files that are cut at every length, for reading only. The picture has the readable rows
 * from the top, and a note says that rows are missing. For other work the same files are refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture_maker.h"
#include "runner.h"

static struct context context;
static const struct codec_limits strict = {.engine.is_read_only = true};
static const struct codec_limits partial = {.engine.is_read_only = true, .is_partial_allowed = true};

enum { width_px = 96, height_px = 160 };

/* Kinds of files, and the number of rows that can be read from three quarters of the bytes, at least. */
static const struct {
    struct made_spec spec;
    uint32_t rows_least_px;
    bool is_top_down; /* rows of a cut file are those of the whole file */
} kinds[] = {
    {{"JPEG", FORMAT_JPEG, width_px, height_px, 3, false, .sampling = 22, .quality = 85}, 96, true},
    {{"JPEG grey", FORMAT_JPEG, width_px, height_px, 1, true, .quality = 85}, 80, true},
    {{"JPEG with restarts", FORMAT_JPEG, width_px, height_px, 3, false, .sampling = 11, .quality = 85,
      .restart = 5},
     96,
     true},
    {{"JPEG progressive", FORMAT_JPEG, width_px, height_px, 3, false, .sampling = 11, .quality = 85,
      .is_progressive = true},
     height_px,
     false},
    {{"JPEG arithmetic", FORMAT_JPEG, width_px, height_px, 3, false, .sampling = 11, .quality = 85,
      .is_arithmetic = true},
     96,
     true},
    {{"JPEG of three scans", FORMAT_JPEG, width_px, height_px, 3, false, .sampling = 11, .quality = 85,
      .is_split = true},
     height_px,
     false},
    {{"JPEG CMYK", FORMAT_JPEG, width_px, height_px, 4, false, .quality = 85}, 96, true},
    {{"JPEG YCCK", FORMAT_JPEG, width_px, height_px, 4, false, .quality = 85, .is_ycck = true}, 96, true},
    {{"PNG", FORMAT_PNG, width_px, height_px, 3, false, .depth_bits = 8}, 96, true},
    {{"PNG of 1 bit", FORMAT_PNG, width_px, height_px, 1, false, .depth_bits = 1}, 64, true},
    {{"PNG of 16 bits", FORMAT_PNG, width_px, height_px, 4, false, .depth_bits = 16}, 96, true},
    {{"PNG palette of 2 bits", FORMAT_PNG, width_px, height_px, 1, false, .depth_bits = 2,
      .is_palette = true},
     64,
     true},
    {{"PNG interlaced", FORMAT_PNG, width_px, height_px, 3, false, .depth_bits = 8, .is_progressive = true},
     height_px,
     false},
    {{"WebP", FORMAT_WEBP, width_px, height_px, 3, false, .quality = 85}, 64, true},
    {{"WebP alpha", FORMAT_WEBP, width_px, height_px, 4, false, .quality = 85},
     0,
     true}, /* the alpha plane comes first */
    {{"WebP lossless", FORMAT_WEBP, width_px, height_px, 3, false, .is_lossless = true, .quality = 50},
     64,
     true},
};
enum { kind_count = sizeof kinds / sizeof kinds[0] };

static enum iw_error decode(const struct codec_bytes *file, size_t size, const struct codec_limits *limits,
                            struct codec_picture *picture)
{
    arena_reset(context.arena);
    context_clear(&context);
    context.notes = NULL;
    /* An exact copy, so that a sanitizer sees reads past the end. */
    unsigned char *exact = malloc(size + 1);
    memcpy(exact, file->data, size);
    enum iw_error error = codec_decode(&context, exact, size, limits, picture);
    free(exact);
    return error;
}

static bool has_note(void)
{
    return context.notes != NULL && strcmp(context.notes->code, "IMAGE_INCOMPLETE") == 0;
}

/* Compares the rows with those of the whole picture, except the last two: a decoder may smooth missing rows
 * into them. */
static bool has_same_rows(const struct codec_picture *picture, const struct codec_picture *whole)
{
    uint32_t rows_px = picture->image.height_px;
    if (rows_px < whole->image.height_px)
        rows_px = rows_px > 2 ? rows_px - 2 : 0;
    return memcmp(picture->image.pixels, whole->image.pixels, rows_px * whole->image.stride_bytes) == 0;
}

/* Decodes the first size bytes. Returns the number of rows, or 0 if the file is refused. */
static uint32_t cut_check(size_t kind, const struct codec_bytes *file, size_t size,
                          const struct codec_picture *whole)
{
    struct codec_picture picture;
    bool is_strict_fine = decode(file, size, &strict, &picture) == IW_OK;
    codec_picture_free(&picture);
    enum iw_error error = decode(file, size, &partial, &picture);
    if (error != IW_OK) {
        if (error != IW_IMAGE_CORRUPT || is_strict_fine)
            printf("  %s: %zu of %zu bytes: %s\n", kinds[kind].spec.name, size, file->size, context.sentence);
        CU_ASSERT_EQUAL(error, IW_IMAGE_CORRUPT);
        CU_ASSERT_FALSE(is_strict_fine);
        return 0;
    }
    uint32_t rows_px = picture.image.height_px;
    CU_ASSERT_EQUAL(picture.header.height_px, rows_px);
    CU_ASSERT(rows_px >= codec_partial_rows_least && rows_px <= height_px);
    CU_ASSERT(is_strict_fine || has_note());
    CU_ASSERT(!kinds[kind].is_top_down || has_same_rows(&picture, whole));
    codec_picture_free(&picture);
    return rows_px;
}

static void test_cut_files(void)
{
    enum { bytes_least = 20, steps = 97 };
    for (size_t kind = 0; kind < kind_count; kind++) {
        const struct made_spec *spec = &kinds[kind].spec;
        struct codec_bytes file = make_picture(spec);
        struct codec_picture whole;
        CU_ASSERT_EQUAL_FATAL(decode(&file, file.size, &partial, &whole), IW_OK);
        CU_ASSERT_PTR_NULL(context.notes);
        CU_ASSERT_EQUAL(whole.image.height_px, height_px);
        uint32_t before_px = 0;
        for (size_t size = bytes_least; size < file.size; size += 1 + file.size / steps) {
            uint32_t rows_px = cut_check(kind, &file, size, &whole);
            if (rows_px < before_px)
                printf("  %s: %zu of %zu bytes: %u rows: %s\n", spec->name, size, file.size, rows_px,
                       context.sentence);
            CU_ASSERT(rows_px >= before_px);
            before_px = rows_px;
        }
        uint32_t rows_px = cut_check(kind, &file, file.size * 3 / 4, &whole);
        if (rows_px < kinds[kind].rows_least_px)
            printf("  %s: %u rows of three quarters\n", kinds[kind].spec.name, rows_px);
        CU_ASSERT(rows_px >= kinds[kind].rows_least_px);
        codec_picture_free(&whole);
        bytes_free(&file);
    }
}

static void test_note(void)
{
    struct codec_picture picture;
    struct codec_bytes file = make_picture(&kinds[0].spec);
    CU_ASSERT_EQUAL_FATAL(decode(&file, file.size / 2, &partial, &picture), IW_OK);
    CU_ASSERT(has_note());
    char sentence[128];
    snprintf(sentence, sizeof sentence, "The file is cut short: %u %% of its rows could be read.",
             picture.image.height_px * 100 / height_px);
    CU_ASSERT_STRING_EQUAL(context.notes->sentence, sentence);
    codec_picture_free(&picture);
    bytes_free(&file);
}

/* A JPEG with a damaged block keeps all rows; a damaged PNG keeps the rows above the damage. */
static void test_damaged_inside(void)
{
    for (size_t kind = 0; kind < kind_count; kind++) {
        const struct made_spec *spec = &kinds[kind].spec;
        struct codec_bytes file = make_picture(spec);
        struct codec_picture picture;
        memset(file.data + file.size * 3 / 4, 0x55, 16);
        if (decode(&file, file.size, &strict, &picture) == IW_OK) {
            codec_picture_free(&picture);
        } else if (spec->format != FORMAT_WEBP) {
            CU_ASSERT_EQUAL(decode(&file, file.size, &partial, &picture), IW_OK);
            if (!has_note())
                printf("  %s: %s\n", spec->name, context.sentence);
            CU_ASSERT(has_note());
            codec_picture_free(&picture);
        }
        bytes_free(&file);
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"files cut at every length", test_cut_files},
        {"the note has the share of the rows", test_note},
        {"files with damage inside", test_damaged_inside},
        CU_TEST_INFO_NULL,
    };
    context_init(&context, arena_new(0), NULL);
    int code = runner_run("codec partial", tests);
    arena_free(context.arena);
    return code;
}
