/*
 * Formats that only extractions read: the files of tests/fuzz/reading.py, from the corpus of fuzz_reading.
 * A file decodes to the picture of `wanted`, as exactly as the format allows, or is refused with a sentence
 * that names the remedy.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"
#include "codec/thumbnail.h"
#include "runner.h"

enum { width_px = 64, height_px = 96, file_bytes_max = 1 << 16, all_formats = ~0U };

static struct context context;
static const struct codec_limits reading = {
    .engine.is_read_only = true, .formats_more = all_formats, .is_partial_allowed = true};

/* The number of readable rows, which are the lowest rows of a cut BMP; 0 if the file is refused. */
static const struct {
    const char *name;
    enum format format;
    uint32_t channels;
    uint32_t rows_px;
    unsigned error_most; /* mean of the absolute difference a sample, in hundredths; 9999: not compared */
    bool has_note;
    const char *sentence;
} files[] = {
    {"bmp-24.bmp", FORMAT_BMP, 3, 96, 0, false, NULL},
    {"bmp-down.bmp", FORMAT_BMP, 3, 96, 0, false, NULL},
    {"bmp-32.bmp", FORMAT_BMP, 3, 96, 0, false, NULL},
    {"bmp-core.bmp", FORMAT_BMP, 3, 96, 0, false, NULL},
    {"bmp-alpha.bmp", FORMAT_BMP, 4, 96, 0, false, NULL},
    {"bmp-8.bmp", FORMAT_BMP, 3, 96, 800, false, NULL},
    {"bmp-4.bmp", FORMAT_BMP, 3, 96, 2500, false, NULL},
    {"bmp-grey.bmp", FORMAT_BMP, 3, 96, 9999, false, NULL},
    {"bmp-1.bmp", FORMAT_BMP, 3, 96, 9999, false, NULL},
    {"bmp-555.bmp", FORMAT_BMP, 3, 96, 500, false, NULL},
    {"bmp-565.bmp", FORMAT_BMP, 3, 96, 500, false, NULL},
    {"bmp-cut.bmp", FORMAT_BMP, 3, 60, 0, true, NULL},
    {"bmp-rle.bmp", FORMAT_BMP, 0, 0, 0, false, "compressed BMP file, or one of 8 bits. Save it as PNG"},
    {"gif.gif", FORMAT_GIF, 3, 96, 800, false, NULL},
    {"gif-interlaced.gif", FORMAT_GIF, 3, 96, 800, false, NULL},
    {"gif-frames.gif", FORMAT_GIF, 3, 96, 800, false, NULL},
    {"gif-clear.gif", FORMAT_GIF, 4, 96, 800, false, NULL},
    {"gif-cut.gif", FORMAT_GIF, 3, 0, 800, true, NULL},
    {"gif-interlaced-cut.gif", FORMAT_GIF, 3, 96, 800, true, NULL},
    {"tiff-none.tif", FORMAT_TIFF, 3, 96, 0, false, NULL},
    {"tiff-lzw.tif", FORMAT_TIFF, 3, 96, 0, false, NULL},
    {"tiff-deflate.tif", FORMAT_TIFF, 3, 96, 0, false, NULL},
    {"tiff-packbits.tif", FORMAT_TIFF, 3, 96, 0, false, NULL},
    {"tiff-jpeg.tif", FORMAT_TIFF, 3, 96, 300, false, NULL},
    {"tiff-tiled.tif", FORMAT_TIFF, 3, 96, 0, false, NULL},
    {"tiff-planes.tif", FORMAT_TIFF, 3, 96, 0, false, NULL},
    {"tiff-strips.tif", FORMAT_TIFF, 3, 96, 0, false, NULL},
    {"tiff-big.tif", FORMAT_TIFF, 3, 96, 0, false, NULL},
    {"tiff-motorola.tif", FORMAT_TIFF, 3, 96, 0, false, NULL},
    {"tiff-pages.tif", FORMAT_TIFF, 3, 96, 0, false, NULL},
    {"tiff-turned.tif", FORMAT_TIFF, 3, 96, 0, false, NULL},
    {"tiff-cmyk.tif", FORMAT_TIFF, 3, 96, 0, false, NULL},
    {"tiff-alpha.tif", FORMAT_TIFF, 4, 96, 0, false, NULL},
    {"tiff-palette.tif", FORMAT_TIFF, 3, 96, 800, false, NULL},
    {"tiff-grey.tif", FORMAT_TIFF, 3, 96, 9999, false, NULL},
    {"tiff-grey16.tif", FORMAT_TIFF, 3, 96, 9999, false, NULL},
    {"tiff-bilevel.tif", FORMAT_TIFF, 3, 96, 9999, false, NULL},
    {"tiff-float.tif", FORMAT_TIFF, 0, 0, 0, false, "floating point samples. Export it as JPEG or PNG"},
    {"tiff-preview.tif", FORMAT_TIFF, 0, 0, 0, false, "a raw photo (DNG, NEF, ARW). Develop it"},
    {"heic.heic", FORMAT_HEIC, 3, 96, 300, false, NULL},
    {"heic-444.heic", FORMAT_HEIC, 3, 96, 300, false, NULL},
    {"heic-clear.heic", FORMAT_HEIC, 4, 96, 300, false, NULL},
    {"heic-cut.heic", FORMAT_HEIC, 0, 0, 0, false, "cut off after"},
    {"avif.avif", FORMAT_AVIF, 3, 96, 300, false, NULL},
    {"avif-clear.avif", FORMAT_AVIF, 4, 96, 300, false, NULL},
    {"avif-cut.avif", FORMAT_AVIF, 0, 0, 0, false, "cut off after"},
    {"avif-lies.avif", FORMAT_AVIF, 0, 0, 0, false, "damaged"},
};

/* An exact copy, so that a sanitizer detects reads past the end. */
static unsigned char *file_read(const char *name, size_t *size)
{
    char path[256];
    static unsigned char bytes[file_bytes_max];
    snprintf(path, sizeof path, "fuzz-corpus/fuzz_reading/%s", name);
    FILE *file = fopen(path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    *size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    unsigned char *exact = malloc(*size);
    memcpy(exact, bytes, *size);
    return exact;
}

static enum iw_error decode(const char *name, const struct codec_limits *limits,
                            struct codec_picture *picture)
{
    size_t size;
    unsigned char *data = file_read(name, &size);
    arena_reset(context.arena);
    context_clear(&context);
    context.notes = NULL;
    enum iw_error error = codec_decode(&context, data, size, limits, picture);
    free(data);
    return error;
}

/* Returns the sample of the picture that reading.py draws. */
static int wanted(uint32_t x, uint32_t y, uint32_t c)
{
    return c == 0 ? (int)x * 4 : c == 1 ? (int)y * 2 : 255 - (int)x - (int)y;
}

/* Returns the mean of the absolute differences in hundredths. */
static unsigned difference(const struct image *image, uint32_t first_row_px)
{
    uint64_t sum = 0;
    for (uint32_t y = 0; y < image->height_px; y++)
        for (uint32_t x = 0; x < image->width_px; x++)
            for (uint32_t c = 0; c < 3; c++) {
                const unsigned char *row = (const unsigned char *)image->pixels + y * image->stride_bytes;
                sum += (uint64_t)abs(row[x * image->channels + c] - wanted(x, y + first_row_px, c));
            }
    return (unsigned)(sum * 100 / ((uint64_t)image->width_px * image->height_px * 3));
}

static void file_check(size_t i)
{
    struct codec_picture picture;
    enum iw_error error = decode(files[i].name, &reading, &picture);
    bool is_bmp = files[i].format == FORMAT_BMP;
    if (files[i].sentence != NULL) {
        if (error == IW_OK || strstr(context.sentence, files[i].sentence) == NULL)
            printf("  %s: %s\n", files[i].name, error == IW_OK ? "is read" : context.sentence);
        CU_ASSERT_NOT_EQUAL_FATAL(error, IW_OK);
        CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, files[i].sentence));
        return;
    }
    if (error != IW_OK)
        printf("  %s: %s (%s)\n", files[i].name, context.sentence, context.cause);
    CU_ASSERT_EQUAL_FATAL(error, IW_OK);
    const struct image *image = &picture.image;
    unsigned found = difference(image, is_bmp ? height_px - image->height_px : 0);
    if (found > files[i].error_most && files[i].error_most < 9999)
        printf("  %s: differs by %u hundredths\n", files[i].name, found);
    CU_ASSERT(found <= files[i].error_most || files[i].error_most == 9999);
    CU_ASSERT_EQUAL(picture.header.format, files[i].format);
    CU_ASSERT_EQUAL(image->channels, files[i].channels);
    CU_ASSERT_EQUAL(image->width_px, width_px);
    CU_ASSERT(files[i].rows_px == 0 ? image->height_px < height_px : image->height_px == files[i].rows_px);
    CU_ASSERT_EQUAL(context.notes != NULL, files[i].has_note);
    codec_picture_free(&picture);
}

static void test_files(void)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        file_check(i);
}

/* A format is refused if it is switched off, and for any work except reading. */
static void test_refused(void)
{
    struct codec_picture picture;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct codec_limits off = reading, work = reading;
        off.formats_more &= ~(1U << files[i].format);
        work.engine.is_read_only = work.is_partial_allowed = false;
        CU_ASSERT_EQUAL(decode(files[i].name, &off, &picture), IW_IMAGE_FORMAT_UNSUPPORTED);
        CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, "upload it again."));
        CU_ASSERT_EQUAL(decode(files[i].name, &work, &picture), IW_IMAGE_FORMAT_UNSUPPORTED);
    }
}

/* A HEIF file with the brand of one codec does not use another codec that is switched off. */
static void test_codec_of_another_brand(void)
{
    size_t size;
    struct codec_header header;
    struct codec_limits off = reading;
    unsigned char *data = file_read("avif.avif", &size);
    off.formats_more &= ~(1U << FORMAT_AVIF);
    memcpy(data + 8, "heic", 4);
    context_clear(&context);
    CU_ASSERT_EQUAL(codec_probe(&context, data, size, &off, &header), IW_IMAGE_FORMAT_UNSUPPORTED);
    CU_ASSERT_EQUAL(codec_probe(&context, data, size, &reading, &header), IW_OK);
    free(data);
}

/* The picture has the rows as stored; the thumbnail is upright. */
static void test_orientation(void)
{
    struct codec_picture picture, small;
    struct codec_bytes bytes;
    CU_ASSERT_EQUAL_FATAL(decode("tiff-turned.tif", &reading, &picture), IW_OK);
    CU_ASSERT_EQUAL(picture.image.width_px, 64);
    CU_ASSERT_EQUAL_FATAL(thumbnail_webp(&context, &picture, 96, &bytes), IW_OK);
    codec_picture_free(&picture);
    CU_ASSERT_EQUAL_FATAL(codec_decode(&context, bytes.data, bytes.size, &reading, &small), IW_OK);
    bytes_free(&bytes);
    CU_ASSERT_EQUAL(small.image.width_px, 96);
    CU_ASSERT_EQUAL_FATAL(small.image.height_px, 64);
    /* Orientation 6: the left edge was the lower edge, which is green. */
    const unsigned char *row = small.image.pixels;
    CU_ASSERT(row[1] > 150);
    CU_ASSERT(row[(size_t)95 * small.image.channels + 1] < 40);
    codec_picture_free(&small);
}

/* The header is checked before a pixel is decoded. */
static void test_limits(void)
{
    struct codec_picture picture;
    struct codec_limits limits = reading;
    limits.side_max_px = 95;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i].sentence == NULL)
            CU_ASSERT_EQUAL(decode(files[i].name, &limits, &picture), IW_IMAGE_TOO_LARGE);
    limits = reading;
    limits.memory_max_bytes = 20000;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i].sentence == NULL && files[i].channels > 3 && files[i].format != FORMAT_TIFF)
            CU_ASSERT_EQUAL(decode(files[i].name, &limits, &picture), IW_IMAGE_TOO_LARGE);
    /* Memory for one strip, as samples and as RGBA, and for the picture: 10 bytes a pixel. */
    limits.memory_max_bytes = 61439;
    CU_ASSERT_EQUAL(decode("tiff-deflate.tif", &limits, &picture), IW_IMAGE_TOO_LARGE);
    limits = reading;
    limits.side_max_px = 16384;
    CU_ASSERT_EQUAL(decode("avif-bomb.avif", &limits, &picture), IW_IMAGE_TOO_LARGE);
    CU_ASSERT_STRING_EQUAL(context.sentence,
                           "The picture is 30000 x 30000 px; at most 16384 px a side are allowed.");
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"each kind of each format", test_files},
        {"formats that are switched off, and other work", test_refused},
        {"a codec under another brand", test_codec_of_another_brand},
        {"the orientation of a TIFF", test_orientation},
        {"limits from the header", test_limits},
        CU_TEST_INFO_NULL,
    };
    context_init(&context, arena_new(0), NULL);
    codec_open(all_formats);
    int code = runner_run("codec reading", tests);
    arena_free(context.arena);
    return code;
}
