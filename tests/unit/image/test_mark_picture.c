/* Every delivered picture can be read: drawings in all formats, and pictures that cannot be marked are
 * refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture_maker.h"
#include "texture_maker.h"
#include "image/mark_picture.h"
#include "runner.h"

static const uint8_t key[WATERMARK_KEY_BYTES] = {3, 1, 4, 1, 5};
static const struct codec_limits limits = {.side_min_px = WATERMARK_SIDE_MIN_PX};

enum { number = 0x5eed };

/* Backgrounds of the drawings; the foreground is dark. */
enum ground {
    GROUND_BARE,
    GROUND_SQUARES,
    GROUND_LINES,
    GROUND_AREAS,
    GROUND_SCREENTONE,
    GROUND_DOTS,
    GROUND_CODE,
    GROUND_DISCS
};

/* Returns a sample of discs with a smooth edge, in squares of 80 px. */
static uint8_t disc(uint32_t x, uint32_t y, uint32_t channel)
{
    uint32_t square = x / 80 + y / 80 * 7;
    double away = hypot(x % 80 - 39.5, y % 80 - 39.5) - (20 + square % 17);
    double share = away < -0.5 ? 1 : away > 0.5 ? 0 : 0.5 - away;
    double ink = 40 * (double)((square * 5 + channel * 3) % 6);

    return (uint8_t)(235 + share * (ink - 235));
}

static uint8_t drawn(enum ground ground, uint32_t x, uint32_t y, uint32_t channel)
{
    switch (ground) {
    case GROUND_SQUARES: /* a QR code in the middle of the page */
        return x / 12 * 7919 % 31 * (y / 12) % 3 == 1 && x > 60 && x < 340 && y > 60 && y < 260 ? 0 : 255;
    case GROUND_LINES:
        return y % 20 < 9 && (x * x / 7 + y * 13) % 11 < 4 ? 20 : 255;
    case GROUND_SCREENTONE: /* a comic page: dots, with white around them */
        return y > 280 || x < 20 || x > 380 || (x % 5 > 1 && y % 5 > 1) ? 255 : 0;
    case GROUND_DOTS: /* without white */
        return x % 4 < 2 && y % 4 < 2 ? 0 : 255;
    case GROUND_CODE: /* a QR code with modules of 10 px */
        return x < 95 || x >= 545 || y < 95 || y >= 545 ||
                       (x / 10 * 2654435761u ^ y / 10 * 2246822519u) >> 7 & 1
                   ? 255
                   : 0;
    case GROUND_DISCS:
        return disc(x, y, channel);
    case GROUND_AREAS:
        return (uint8_t)(60 + 35 * ((x / 100 + y / 80) % 5) + 10 * channel);
    default:
        return 255;
    }
}

/* Makes a file of the format with the drawing. */
static struct codec_bytes drawing_make(struct context *context, const struct made_spec *spec,
                                       enum ground ground)
{
    struct codec_bytes made = make_picture(spec), bytes = {NULL, 0};
    struct codec_picture picture;
    CU_ASSERT_EQUAL_FATAL(codec_decode(context, made.data, made.size, &limits, &picture), IW_OK);
    for (uint32_t y = 0; y < picture.image.height_px; y++)
        for (uint32_t i = 0; i < picture.image.width_px * picture.image.channels; i++)
            ((uint8_t *)picture.image.pixels)[y * picture.image.stride_bytes + i] =
                drawn(ground, i / picture.image.channels, y, i % picture.image.channels);
    CU_ASSERT_EQUAL_FATAL(codec_encode(context, &picture, &bytes), IW_OK);
    codec_picture_free(&picture);
    bytes_free(&made);
    return bytes;
}

/* Marks a file and reads the result. Returns the size of the result, or 0 if the file is refused. */
static size_t delivered(struct context *context, const struct codec_bytes *file)
{
    struct mark_order order = {file->data, file->size, &limits, key, number};
    struct codec_picture picture, seen;
    struct codec_bytes bytes = {NULL, 0};
    struct watermark_report report = {0};
    struct watermark_numbers read;
    CU_ASSERT_EQUAL_FATAL(codec_decode(context, file->data, file->size, &limits, &picture), IW_OK);
    enum iw_error error = mark_picture(context, &order, &picture, &bytes, &report);
    codec_picture_free(&picture);
    if (error != IW_OK)
        return 0;
    CU_ASSERT_EQUAL_FATAL(codec_decode(context, bytes.data, bytes.size, &limits, &seen), IW_OK);
    CU_ASSERT_EQUAL(watermark_extract(&seen.image, NULL, key, NULL, &read, NULL), IW_OK);
    CU_ASSERT(read.count == 1 && read.numbers[0] == number);
    CU_ASSERT(report.correlation > 11);
    codec_picture_free(&seen);
    size_t size = bytes.size;
    bytes_free(&bytes);
    return size;
}

static const struct made_spec specs[] = {
    {"JPEG 75", FORMAT_JPEG, 400, 320, 3, true, .sampling = 22, .quality = 75},
    {"JPEG 90, grey, progressive", FORMAT_JPEG, 400, 320, 1, true, .quality = 90, .is_progressive = true},
    {"JPEG 20", FORMAT_JPEG, 400, 320, 3, true, .sampling = 22, .quality = 20},
    {"WebP 60", FORMAT_WEBP, 400, 320, 3, true, .quality = 60},
    {"WebP 90 with alpha", FORMAT_WEBP, 400, 320, 4, true, .quality = 90},
    {"WebP lossless", FORMAT_WEBP, 400, 320, 3, true, .is_lossless = true},
    {"PNG", FORMAT_PNG, 400, 320, 3, true, .depth_bits = 8},
};

static bool is_noted(const struct context *context, const char *code)
{
    const struct context_note *note = context->notes;
    while (note != NULL && strcmp(note->code, code) != 0)
        note = note->next;
    return note != NULL;
}

static void delivered_pictures_read(void)
{
    unsigned finer = 0, refused = 0, count = 0;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        for (unsigned ground = GROUND_SQUARES; ground <= GROUND_AREAS; ground++) {
            struct context context;
            context_init(&context, arena_new(0), NULL);
            struct codec_bytes file = drawing_make(&context, &specs[i], (enum ground)ground);
            size_t size = delivered(&context, &file);
            count++;
            if (size == 0) {
                refused++;
                CU_ASSERT_EQUAL(context.error, IW_WATERMARK_NOT_EMBEDDABLE);
                CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, "more detail"));
            } else if (is_noted(&context, "ENCODED_FINER")) {
                finer++;
                CU_ASSERT(specs[i].format != FORMAT_PNG && !specs[i].is_lossless);
            }
            bytes_free(&file);
            arena_free(context.arena);
        }
    }
    CU_ASSERT(finer >= 1);
    CU_ASSERT(refused <= count / 4);
}

/* The mark is read from the first quarter of the rows, or from all of them. */
static void a_large_jpeg_reads(void)
{
    static const struct made_spec spec = {"JPEG", FORMAT_JPEG, 1800,           1200,
                                          3,      true,        .sampling = 22, .quality = 85};
    struct context context;
    context_init(&context, arena_new(0), NULL);
    struct codec_bytes made = make_picture(&spec), file = {NULL, 0};
    struct image texture = texture_make(1800, 1200, 3, 8, 5);
    struct codec_picture picture;
    CU_ASSERT_EQUAL_FATAL(codec_decode(&context, made.data, made.size, &limits, &picture), IW_OK);
    memcpy(picture.image.pixels, texture.pixels, texture.stride_bytes * texture.height_px);
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &file), IW_OK);
    CU_ASSERT(delivered(&context, &file) > 0);
    codec_picture_free(&picture);
    free(texture.pixels);
    bytes_free(&made);
    bytes_free(&file);
    arena_free(context.arena);
}

static void a_bare_page_is_refused_and_says_so(void)
{
    struct context context;
    context_init(&context, arena_new(0), NULL);
    struct codec_bytes file = drawing_make(&context, &specs[0], GROUND_BARE);
    if (delivered(&context, &file) == 0) {
        CU_ASSERT_EQUAL(context.error, IW_WATERMARK_NOT_EMBEDDABLE);
        CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, "picture as PNG"));
    }
    bytes_free(&file);
    arena_free(context.arena);
}

/*
 * Hard texture hides a mark in grey. The result has colours from which the mark is read, and the same
 * brightness. The compact mark of a small file may be read in grey.
 */
static void grey_screentones_are_marked(void)
{
    static const struct made_spec greys[] = {
        {"PNG", FORMAT_PNG, 400, 320, 1, true, .depth_bits = 8},
        {"PNG with alpha", FORMAT_PNG, 400, 320, 2, false, .depth_bits = 8},
        {"PNG of 1 bit", FORMAT_PNG, 400, 320, 1, false, .depth_bits = 1},
        {"JPEG", FORMAT_JPEG, 400, 320, 1, true, .quality = 90},
        {"JPEG, progressive", FORMAT_JPEG, 400, 320, 1, true, .quality = 75, .is_progressive = true},
    };
    for (size_t i = 0; i < sizeof greys / sizeof greys[0]; i++)
        for (unsigned ground = GROUND_SCREENTONE; ground <= GROUND_DOTS; ground++) {
            struct context context;
            context_init(&context, arena_new(0), NULL);
            struct codec_bytes file = drawing_make(&context, &greys[i], (enum ground)ground);
            size_t size = delivered(&context, &file);
            CU_ASSERT(size > 0);
            bool is_little = greys[i].format == FORMAT_PNG && size < 20000;
            CU_ASSERT(is_little || is_noted(&context, "GREY_EXPANDED"));
            bytes_free(&file);
            arena_free(context.arena);
        }
}

/* Lossless drawings have the sizes at which pages and programs export them. */
static void drawings_grow_little(void)
{
    static const struct {
        struct made_spec spec;
        enum ground ground;
        size_t most_bytes; /* 0: three times the file */
    } cases[] = {
        {{"QR code", FORMAT_PNG, 640, 640, 3, true, .depth_bits = 8}, GROUND_CODE, 30000},
        {{"QR code, grey", FORMAT_PNG, 640, 640, 1, false, .depth_bits = 1}, GROUND_CODE, 30000},
        {{"QR code", FORMAT_WEBP, 640, 640, 3, true, .is_lossless = true}, GROUND_CODE, 30000},
        {{"discs", FORMAT_PNG, 800, 640, 3, true, .depth_bits = 8}, GROUND_DISCS, 0},
        {{"discs, grey", FORMAT_PNG, 800, 640, 1, false, .depth_bits = 8}, GROUND_DISCS, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct context context;
        context_init(&context, arena_new(0), NULL);
        struct codec_bytes file = drawing_make(&context, &cases[i].spec, cases[i].ground);
        size_t size = delivered(&context, &file);
        size_t most = cases[i].most_bytes > 0 ? cases[i].most_bytes : 3 * file.size;
        if (size == 0 || size > most)
            printf("%s: %zu bytes, with a mark %zu\n", cases[i].spec.name, file.size, size);
        CU_ASSERT(size > 0 && size <= most);
        bytes_free(&file);
        arena_free(context.arena);
    }
}

/* Makes a file of 400 px in which only a square of side_px is visible. */
static struct codec_bytes clear_make(struct context *context, uint32_t side_px)
{
    static const struct made_spec spec = {"PNG", FORMAT_PNG, 400, 400, 4, false, .depth_bits = 8};
    struct codec_bytes made = make_picture(&spec), bytes = {NULL, 0};
    struct image texture = texture_make(400, 400, 4, 8, 5);
    struct codec_picture picture;
    CU_ASSERT_EQUAL_FATAL(codec_decode(context, made.data, made.size, &limits, &picture), IW_OK);
    memcpy(picture.image.pixels, texture.pixels, texture.stride_bytes * texture.height_px);
    for (uint32_t y = 0; y < 400; y++)
        for (uint32_t x = 0; x < 400; x++)
            ((uint8_t *)picture.image.pixels)[(y * 400 + x) * 4 + 3] = x < side_px && y < side_px ? 255 : 0;
    CU_ASSERT_EQUAL_FATAL(codec_encode(context, &picture, &bytes), IW_OK);
    codec_picture_free(&picture);
    free(texture.pixels);
    bytes_free(&made);
    return bytes;
}

/* The remedy that the message names, less transparency, helps. Squares from 50 to 100 px may be readable. */
static void transparent_pictures_are_refused_with_a_remedy(void)
{
    static const uint32_t sides_px[] = {0, 20, 50, 100, 150, 200};
    for (size_t i = 0; i < sizeof sides_px / sizeof sides_px[0]; i++) {
        uint32_t side_px = sides_px[i];
        struct context context;
        context_init(&context, arena_new(0), NULL);
        struct codec_bytes file = clear_make(&context, side_px);
        size_t size = delivered(&context, &file);
        CU_ASSERT(side_px > 20 || size == 0);
        CU_ASSERT(side_px < 150 || size > 0);
        CU_ASSERT(size > 0 ||
                  strstr(context.sentence, "a larger picture or one with less transparency") != NULL);
        bytes_free(&file);
        arena_free(context.arena);
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"delivered pictures read", delivered_pictures_read},
        {"a large JPEG reads", a_large_jpeg_reads},
        {"grey screentones are marked", grey_screentones_are_marked},
        {"drawings grow little", drawings_grow_little},
        {"transparent pictures are refused with a remedy", transparent_pictures_are_refused_with_a_remedy},
        {"a bare page is refused and says so", a_bare_page_is_refused_and_says_so},
        CU_TEST_INFO_NULL,
    };
    return runner_run("marking pictures", tests);
}
