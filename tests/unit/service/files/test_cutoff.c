/*
 * Truncated files. A file that an upload refuses is also refused by the codecs, for every length of
 * every format.
 */
#include "service/files/cutoff.h"

#include <stdio.h>

#include <string.h>

#include "picture_maker.h"
#include "runner.h"
#include "service/files/header.h"

static struct context context;
static const struct codec_limits no_limits;

static const struct made_spec kinds[] = {
    {.name = "PNG", .format = FORMAT_PNG, .width_px = 40, .height_px = 30, .channels = 3, .depth_bits = 8},
    {.name = "PNG palette",
     .format = FORMAT_PNG,
     .width_px = 40,
     .height_px = 30,
     .channels = 1,
     .depth_bits = 8,
     .is_palette = true},
    {.name = "PNG interlaced",
     .format = FORMAT_PNG,
     .width_px = 40,
     .height_px = 30,
     .channels = 4,
     .depth_bits = 16,
     .is_progressive = true},
    {.name = "PNG metadata",
     .format = FORMAT_PNG,
     .width_px = 40,
     .height_px = 30,
     .channels = 3,
     .depth_bits = 8,
     .has_metadata = true},
    {.name = "WebP", .format = FORMAT_WEBP, .width_px = 40, .height_px = 30, .channels = 3, .quality = 80},
    {.name = "WebP lossless",
     .format = FORMAT_WEBP,
     .width_px = 40,
     .height_px = 30,
     .channels = 4,
     .is_lossless = true},
    {.name = "WebP metadata",
     .format = FORMAT_WEBP,
     .width_px = 40,
     .height_px = 30,
     .channels = 4,
     .quality = 80,
     .has_metadata = true},
    {.name = "JPEG progressive",
     .format = FORMAT_JPEG,
     .width_px = 400,
     .height_px = 304,
     .channels = 3,
     .sampling = 22,
     .quality = 90,
     .is_progressive = true,
     .has_metadata = true},
    {.name = "JPEG",
     .format = FORMAT_JPEG,
     .width_px = 40,
     .height_px = 30,
     .channels = 3,
     .sampling = 11,
     .quality = 90},
};

static bool is_cut(const struct codec_bytes *file, size_t size, size_t piece)
{
    struct cutoff cutoff = {.format = sniff_format(file->data, size)};
    for (size_t at = 0; at < size; at += piece)
        cutoff_add(&cutoff, file->data + at, size - at < piece ? size - at : piece);
    return cutoff_is_cut(&cutoff);
}

static bool is_decoded(const struct codec_bytes *file, size_t size)
{
    struct codec_picture picture;
    arena_reset(context.arena);
    context_init(&context, context.arena, NULL);
    if (codec_decode(&context, file->data, size, &no_limits, &picture) != IW_OK)
        return false;
    codec_picture_free(&picture);
    return true;
}

static void a_truncated_file_is_refused_by_the_decoder(void)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct codec_bytes file = make_picture(&kinds[i]);
        size_t told = 0;
        for (size_t size = 0; size < file.size; size++) {
            bool is_told = is_cut(&file, size, size + 1);
            told += is_told;
            CU_ASSERT(!is_told || !is_decoded(&file, size));
        }
        CU_ASSERT_FALSE(is_cut(&file, file.size, file.size));
        CU_ASSERT_TRUE(is_decoded(&file, file.size));
        printf("%s: %zu of %zu lengths told\n", kinds[i].name, told, file.size);
        CU_ASSERT(kinds[i].format == FORMAT_JPEG ? told == 0 : told > file.size / 4);
        bytes_free(&file);
    }
}

static void pieces_of_any_size_say_the_same(void)
{
    static const size_t pieces[] = {1, 2, 3, 7, 8, 11, 12, 13, 100};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct codec_bytes file = make_picture(&kinds[i]);
        for (size_t size = 0; size <= file.size; size += 1 + file.size / 60)
            for (size_t k = 0; k < sizeof pieces / sizeof pieces[0]; k++)
                CU_ASSERT_EQUAL(is_cut(&file, size, pieces[k]), is_cut(&file, size, size + 1));
        bytes_free(&file);
    }
}

/* A header that arrives in pieces gives at most the memory that the codec estimates. */
static void the_header_in_pieces_is_that_of_the_codec(void)
{
    static const size_t pieces[] = {1, 3, 8, 100, 1 << 20};
    static const struct picture_engine engine = {.bytes_px = 3, .bytes_column = 9};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct codec_bytes file = make_picture(&kinds[i]);
        struct codec_header wanted;
        context_init(&context, context.arena, NULL);
        CU_ASSERT_EQUAL_FATAL(codec_probe(&context, file.data, file.size, &no_limits, &wanted), IW_OK);
        for (size_t k = 0; k < sizeof pieces / sizeof pieces[0]; k++) {
            struct header header = {.form.format = sniff_format(file.data, file.size)};
            unsigned found = 0;
            for (size_t at = 0; at < file.size; at += pieces[k])
                found += header_add(&header, file.data + at,
                                    file.size - at < pieces[k] ? file.size - at : pieces[k]);
            const struct picture_load load = picture_load(&header.form);
            CU_ASSERT_EQUAL(found, 1);
            CU_ASSERT(header.form.width_px == wanted.width_px && header.form.height_px == wanted.height_px);
            CU_ASSERT_EQUAL(header.form.channels, wanted.channels);
            /* The codec rounds the coefficients up to whole blocks. */
            CU_ASSERT(load.decode_bytes <= wanted.decode_memory_bytes);
            CU_ASSERT(load.decode_bytes > wanted.decode_memory_bytes / 10 * 9);
            CU_ASSERT(picture_work_bytes(&load, &engine) > load.pixel_bytes);
        }
        bytes_free(&file);
    }
}

/* A truncated or odd header gives no sizes. */
static void a_header_that_is_none_says_nothing(void)
{
    static const struct {
        const char *bytes;
        size_t size;
        enum format format;
    } rows[] = {
        {"\x89PNG\r\n\x1a\n\0\0\0\x0dIDAT12345678\x10\6\0\0\0", 29, FORMAT_PNG},
        {"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR12345678\x10\7\0\0\0", 29, FORMAT_PNG},
        {"\xff\xd8\xff\xe0\0\1\xff\xc0\0\x11\x08\0\1\0\1\3\1\x11\0\1\x11\0\1\x11\0", 25, FORMAT_JPEG},
        {"\xff\xd8\xff\xc0\0\x11\x08\0\1\0\1\xff\1\x11\0\1\x11\0\1\x11\0", 21, FORMAT_JPEG},
        {"\xff\xd8\xff\xda\0\2\xff\xc0\0\x11\x08\0\1\0\1\3\1\x11\0\1\x11\0\1\x11\0", 25, FORMAT_JPEG},
        {"RIFF\0\0\0\0WEBPZ\0\0\1\0\0\0\0VP8 \0\0\0\0\0\0\0\x9d\1\x2a\1\0\1\0", 38, FORMAT_WEBP},
        {"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\1\x2b\1\0\1\0", 30, FORMAT_WEBP},
        {"RIFF\0\0\0\0WEBPANMF\0\0\0\0VP8 \0\0\0\0\0\0\0\0\0\0\0\0\0\0", 42, FORMAT_WEBP},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct header header = {.form.format = rows[i].format};
        CU_ASSERT_FALSE(header_add(&header, rows[i].bytes, rows[i].size));
    }
}

/* Pictures that fit, pictures that do not, and the size that the sentence names fits. */
static void the_size_that_a_sentence_names_fits(void)
{
    unsigned width = 0, height = 0;
    const struct picture_form form = {FORMAT_PNG, 6000, 4000, 3, 16, false, false, 0};
    const struct picture_load load = picture_load(&form);
    const struct picture_engine *engine = picture_engine(ORDER_ANTI_AI);
    const uint64_t most = picture_allowed_bytes((uint64_t)256 << 20);
    context_init(&context, context.arena, NULL);
    CU_ASSERT_EQUAL(picture_check_memory(&context, &load, engine, most), IW_IMAGE_TOO_LARGE);
    const char *advice = strstr(context.sentence, "Scale it to ");
    CU_ASSERT_FATAL(advice != NULL &&
                    sscanf(advice, "Scale it to %u x %u px or less.", &width, &height) == 2);
    const struct picture_form small_form = {FORMAT_PNG, width, height, 3, 16, false, false, 0};
    const struct picture_load small = picture_load(&small_form);
    context_init(&context, context.arena, NULL);
    CU_ASSERT_EQUAL(picture_check_memory(&context, &small, engine, most), IW_OK);
    CU_ASSERT(width > 3500 && picture_check_memory(&context, &load, engine, 0) == IW_OK);
    /* doc/operating.md, "What a host needs", states these figures. */
    CU_ASSERT_EQUAL(picture_megapixels(ORDER_ANTI_AI, picture_allowed_bytes((uint64_t)384 << 20)), 39);
    CU_ASSERT_EQUAL(picture_megapixels(ORDER_WATERMARK_EMBED, picture_allowed_bytes((uint64_t)384 << 20)),
                    88);
}

/* The decoder checks invalid lengths. */
static void a_structure_that_is_none_is_not_called_cut(void)
{
    static const struct {
        const char *bytes;
        size_t size;
    } rows[] = {
        {"\x89PNG\r\n\x1a\n and so on, for a while", 31},
        {"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR12345678901234567\xff\xff\xff\xffIDAT", 41},
        {"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR12345678901234567\0\0\1\0IDAT\0\0\0\0IEND\xae\x42\x60\x82", 53},
        {"RIFF\0\0\0\0WEBPVP8 \xff\xff\xff\xff", 20},
        {"\xff\xd8\xff\xe0"
         "broken",
         10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct codec_bytes file = {(unsigned char *)(uintptr_t)rows[i].bytes, rows[i].size};
        CU_ASSERT_FALSE(is_cut(&file, file.size, file.size));
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"a truncated file is refused by the decoder", a_truncated_file_is_refused_by_the_decoder},
        {"pieces of any size say the same", pieces_of_any_size_say_the_same},
        {"a structure that is none is not called cut", a_structure_that_is_none_is_not_called_cut},
        {"the header in pieces is that of the codec", the_header_in_pieces_is_that_of_the_codec},
        {"a header that is none says nothing", a_header_that_is_none_says_nothing},
        {"the size that a sentence names fits", the_size_that_a_sentence_names_fits},
        CU_TEST_INFO_NULL,
    };
    context_init(&context, arena_new(0), NULL);
    int code = runner_run("cutoff", tests);
    arena_free(context.arena);
    return code;
}
