/* The codecs: every format and variant, preserved metadata, refusals. */
#include <stdio.h>
#include <jpeglib.h>
#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>
#include <zlib.h>

#include "codec/codec.h"
#include "codec/metadata/keep.h"
#include "codec/thumbnail.h"
#include "model/sniff.h"
#include "picture_maker.h"
#include "runner.h"

static struct context context;
static const struct codec_limits no_limits;

static const struct made_spec cases[] = {
    {"JPEG grey", FORMAT_JPEG, 97, 71, 1, true, .quality = 85},
    {"JPEG 4:4:4", FORMAT_JPEG, 97, 71, 3, true, .sampling = 11, .quality = 90},
    {"JPEG 4:2:2", FORMAT_JPEG, 97, 71, 3, true, .sampling = 21, .quality = 80},
    {"JPEG 4:2:0", FORMAT_JPEG, 97, 71, 3, true, .sampling = 22, .quality = 75},
    {"JPEG 4:4:0", FORMAT_JPEG, 97, 71, 3, false, .sampling = 12, .quality = 75},
    {"JPEG progressive", FORMAT_JPEG, 97, 71, 3, true, .sampling = 22, .quality = 85, .is_progressive = true},
    {"JPEG grey progressive", FORMAT_JPEG, 97, 71, 1, false, .quality = 85, .is_progressive = true},
    {"JPEG arithmetic", FORMAT_JPEG, 97, 71, 3, true, .sampling = 22, .quality = 85, .is_arithmetic = true},
    {"JPEG of RGB", FORMAT_JPEG, 97, 71, 3, false, .sampling = 11, .quality = 85, .is_rgb = true},
    {"JPEG of low quality", FORMAT_JPEG, 97, 71, 3, false, .sampling = 22, .quality = 5},
    {"JPEG CMYK", FORMAT_JPEG, 97, 71, 4, true, .quality = 85},
    {"JPEG CMYK with a profile", FORMAT_JPEG, 97, 71, 4, true, .quality = 85, .has_ink_icc = true},
    {"JPEG CMYK without Adobe's marker", FORMAT_JPEG, 97, 71, 4, false, .quality = 85, .is_unmarked = true},
    {"JPEG YCCK", FORMAT_JPEG, 97, 71, 4, false, .factors = {22, 11, 11, 22}, .quality = 90, .is_ycck = true},
    {"JPEG CMYK progressive", FORMAT_JPEG, 97, 71, 4, false, .quality = 85, .is_progressive = true},
    {"JPEG 4:1:1", FORMAT_JPEG, 97, 71, 3, false, .sampling = 41, .quality = 85},
    {"JPEG 4:1:0", FORMAT_JPEG, 97, 71, 3, false, .sampling = 42, .quality = 85},
    {"JPEG of less luma than chroma", FORMAT_JPEG, 97, 71, 3, false, .factors = {11, 21, 22}, .quality = 85},
    {"JPEG of mixed factors", FORMAT_JPEG, 97, 71, 3, false, .factors = {22, 21, 12}, .quality = 85},
    {"JPEG with restarts", FORMAT_JPEG, 97, 71, 3, false, .sampling = 22, .quality = 85, .restart = 3},
    {"JPEG with a scan a component", FORMAT_JPEG, 97, 71, 3, false, .sampling = 22, .quality = 85,
     .is_split = true},
    {"JPEG of 64 blocks a unit", FORMAT_JPEG, 97, 71, 3, false, .factors = {44, 41, 14}, .quality = 85,
     .is_split = true},
    {"PNG grey 1", FORMAT_PNG, 97, 71, 1, false, .depth_bits = 1},
    {"PNG grey 4", FORMAT_PNG, 97, 71, 1, true, .depth_bits = 4},
    {"PNG grey 8", FORMAT_PNG, 97, 71, 1, false, .depth_bits = 8},
    {"PNG grey 8 key", FORMAT_PNG, 97, 71, 1, false, .depth_bits = 8, .has_transparency = true},
    {"PNG grey 16", FORMAT_PNG, 97, 71, 1, false, .depth_bits = 16},
    {"PNG grey+alpha 8", FORMAT_PNG, 97, 71, 2, false, .depth_bits = 8},
    {"PNG grey+alpha 16", FORMAT_PNG, 97, 71, 2, false, .depth_bits = 16},
    {"PNG RGB 8", FORMAT_PNG, 97, 71, 3, true, .depth_bits = 8},
    {"PNG RGB 8 interlaced", FORMAT_PNG, 97, 71, 3, true, .depth_bits = 8, .is_progressive = true},
    {"PNG RGB 8 key", FORMAT_PNG, 97, 71, 3, false, .depth_bits = 8, .has_transparency = true},
    {"PNG RGB 16", FORMAT_PNG, 97, 71, 3, true, .depth_bits = 16},
    {"PNG RGB 16 key", FORMAT_PNG, 97, 71, 3, true, .depth_bits = 16, .has_transparency = true},
    {"PNG RGBA 8", FORMAT_PNG, 97, 71, 4, true, .depth_bits = 8},
    {"PNG RGBA 16 interlaced", FORMAT_PNG, 97, 71, 4, true, .depth_bits = 16, .is_progressive = true},
    {"PNG palette 8", FORMAT_PNG, 97, 71, 1, true, .depth_bits = 8, .is_palette = true},
    {"PNG palette 4", FORMAT_PNG, 97, 71, 1, false, .depth_bits = 4, .is_palette = true},
    {"PNG palette 1", FORMAT_PNG, 97, 71, 1, false, .depth_bits = 1, .is_palette = true,
     .has_transparency = true},
    {"PNG palette 8 alpha", FORMAT_PNG, 97, 71, 1, true, .depth_bits = 8, .is_palette = true,
     .has_transparency = true},
    {"WebP lossy", FORMAT_WEBP, 97, 71, 3, true, .quality = 75},
    {"WebP lossy bare", FORMAT_WEBP, 97, 71, 3, false, .quality = 40},
    {"WebP lossy alpha", FORMAT_WEBP, 97, 71, 4, true, .quality = 90},
    {"WebP lossless", FORMAT_WEBP, 97, 71, 3, true, .is_lossless = true, .quality = 70},
    {"WebP lossless alpha", FORMAT_WEBP, 97, 71, 4, false, .is_lossless = true, .quality = 70},
};
enum { case_count = sizeof cases / sizeof cases[0] };

static void fresh(void)
{
    arena_reset(context.arena);
    context.notes = NULL;
    context_clear(&context);
}

static bool holds(const struct codec_bytes *bytes, const void *text, size_t size)
{
    return memmem(bytes->data, bytes->size, text, size) != NULL;
}

static uint32_t channels_decoded(const struct made_spec *spec)
{
    if (spec->is_palette || (spec->format == FORMAT_JPEG && spec->channels == 4))
        return 3 + (spec->has_transparency ? 1 : 0);
    return spec->channels + (spec->has_transparency ? 1 : 0);
}

/* Returns the mean square difference of two pictures of one size. */
static double difference(const struct image *a, const struct image *b)
{
    double sum = 0;
    size_t count = (size_t)a->width_px * a->channels;
    for (uint32_t y = 0; y < a->height_px; y++)
        for (size_t i = 0; i < count; i++) {
            size_t at = y * a->stride_bytes;
            double d =
                a->depth_bits == 8
                    ? ((unsigned char *)a->pixels)[at + i] - ((unsigned char *)b->pixels)[at + i]
                    : (((uint16_t *)a->pixels)[at / 2 + i] - ((uint16_t *)b->pixels)[at / 2 + i]) / 257.0;
            sum += d * d;
        }
    return sum / ((double)count * a->height_px);
}

static void check_round_trip(const struct made_spec *spec)
{
    struct codec_bytes file = make_picture(spec);
    struct codec_bytes again = {NULL, 0};
    struct codec_picture first;
    struct codec_picture second;
    CU_ASSERT_EQUAL_FATAL(codec_decode(&context, file.data, file.size, &no_limits, &first), IW_OK);
    CU_ASSERT_EQUAL(first.header.format, spec->format);
    CU_ASSERT_EQUAL(first.header.width_px, spec->width_px);
    CU_ASSERT_EQUAL(first.header.height_px, spec->height_px);
    CU_ASSERT_EQUAL(first.header.channels, channels_decoded(spec));
    CU_ASSERT_EQUAL(first.header.depth_bits, spec->depth_bits == 16 ? 16 : 8);
    CU_ASSERT_EQUAL(first.header.is_lossy,
                    spec->format == FORMAT_JPEG || (spec->format == FORMAT_WEBP && !spec->is_lossless));
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &first, &again), IW_OK);
    CU_ASSERT_EQUAL_FATAL(codec_decode(&context, again.data, again.size, &no_limits, &second), IW_OK);
    CU_ASSERT_EQUAL(second.header.channels, first.header.channels);
    CU_ASSERT_EQUAL(second.header.depth_bits, first.header.depth_bits);
    double lost = difference(&first.image, &second.image);
    if (first.header.is_lossy)
        CU_ASSERT(lost < 30);
    if (!first.header.is_lossy)
        CU_ASSERT(lost == 0);
    if (first.header.is_lossy && lost >= 30)
        printf("%s: mean square difference %.2f\n", spec->name, lost);
    codec_picture_free(&first);
    codec_picture_free(&second);
    bytes_free(&file);
    bytes_free(&again);
}

static void test_round_trip(void)
{
    for (size_t i = 0; i < case_count; i++) {
        fresh();
        check_round_trip(&cases[i]);
    }
}

/* Decodes a file, sets the opt-out if wanted, and encodes it. */
static struct codec_bytes recode(const struct codec_bytes *file, bool is_opt_out)
{
    struct codec_picture picture;
    struct codec_bytes bytes = {NULL, 0};
    CU_ASSERT_EQUAL_FATAL(codec_decode(&context, file->data, file->size, &no_limits, &picture), IW_OK);
    if (is_opt_out)
        CU_ASSERT_EQUAL(codec_opt_out(&context, &picture), IW_OK);
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &bytes), IW_OK);
    codec_picture_free(&picture);
    return bytes;
}

static void test_first_pixels(void)
{
    struct made_spec spec = {"PNG RGB 8", FORMAT_PNG, 97, 71, 3, false, .depth_bits = 8};
    struct codec_bytes file = make_picture(&spec);
    struct codec_picture picture;
    fresh();
    CU_ASSERT_EQUAL_FATAL(codec_decode(&context, file.data, file.size, &no_limits, &picture), IW_OK);
    const unsigned char *row = (const unsigned char *)picture.image.pixels + 5 * picture.image.stride_bytes;
    for (uint32_t x = 0; x < 97; x++)
        for (uint32_t c = 0; c < 3; c++)
            CU_ASSERT_EQUAL(row[3 * x + c], made_sample(x, 5, c));
    codec_picture_free(&picture);
    bytes_free(&file);
}

static void test_16_bits_are_kept(void)
{
    struct made_spec spec = {"PNG RGB 16", FORMAT_PNG, 97, 71, 3, false, .depth_bits = 16};
    struct codec_bytes file = make_picture(&spec);
    struct codec_picture picture;
    fresh();
    CU_ASSERT_EQUAL_FATAL(codec_decode(&context, file.data, file.size, &no_limits, &picture), IW_OK);
    const uint16_t *samples = picture.image.pixels;
    CU_ASSERT_EQUAL(samples[3 * 10 + 1], made_sample(10, 0, 1) << 8 | 50);
    codec_picture_free(&picture);
    bytes_free(&file);
}

static void check_icc(const struct codec_bytes *before, const struct codec_bytes *after,
                      const struct made_spec *spec)
{
    size_t size = 0;
    unsigned char *icc = spec->has_ink_icc ? made_ink_icc(&size) : made_icc(&size);
    if (spec->format == FORMAT_PNG) {
        /* Compressed by libpng; the chunk must stay byte for byte. */
        unsigned char *chunk = memmem(before->data, before->size, "iCCP", 4);
        CU_ASSERT_PTR_NOT_NULL_FATAL(chunk);
        size_t chunk_bytes = (size_t)chunk[-2] << 8 | chunk[-1];
        CU_ASSERT(holds(after, chunk, chunk_bytes + 8));
    } else {
        CU_ASSERT(holds(after, icc, size / 2));
        CU_ASSERT(holds(after, icc + size / 2, size - size / 2));
    }
    free(icc);
}

static void check_metadata(const struct made_spec *spec)
{
    struct codec_bytes file = make_picture(spec);
    struct codec_bytes again = recode(&file, false);
    CU_ASSERT(holds(&again, made_xmp, strlen(made_xmp)));
    CU_ASSERT(holds(&again, made_exif, made_exif_bytes));
    if (spec->format != FORMAT_PNG || spec->channels > 1 || spec->is_palette)
        check_icc(&file, &again, spec);
    if (spec->format == FORMAT_JPEG) {
        CU_ASSERT(holds(&again, made_comment, strlen(made_comment)));
        CU_ASSERT(holds(&again, made_photoshop, made_photoshop_bytes));
        CU_ASSERT(holds(&again, made_extended_xmp, 35 + 32 + 8 + 11));
        CU_ASSERT(spec->channels == 4 || memcmp(again.data, file.data, 20) == 0); /* JFIF with its density */
    } else {
        CU_ASSERT(holds(&again, made_private, strlen(made_private)));
    }
    if (spec->format == FORMAT_PNG) {
        CU_ASSERT(holds(&again, made_comment, strlen(made_comment)));
        CU_ASSERT(holds(&again, made_after, made_after_bytes));
        CU_ASSERT(!holds(&again, made_unsafe, strlen(made_unsafe)));
        CU_ASSERT(holds(&again, "pHYs\0\0\x2e\x23\0\0\x2e\x23\1", 13));
        CU_ASSERT(holds(&again, "gAMA\0\0\xb1\x8f", 8));
    }
    bytes_free(&file);
    bytes_free(&again);
}

static void test_metadata_is_kept(void)
{
    for (size_t i = 0; i < case_count; i++) {
        fresh();
        if (cases[i].has_metadata)
            check_metadata(&cases[i]);
    }
}

struct jpeg_facts {
    int sampling[4];
    UINT16 quant[4][64];
    bool is_progressive;
    bool is_arithmetic;
    int color_space;
};

static struct jpeg_facts jpeg_read_facts(const struct codec_bytes *file)
{
    struct jpeg_facts facts;
    struct jpeg_decompress_struct in;
    struct jpeg_error_mgr errors;
    memset(&facts, 0, sizeof facts);
    in.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&in);
    jpeg_mem_src(&in, file->data, file->size);
    jpeg_read_header(&in, TRUE);
    for (int c = 0; c < in.num_components; c++) {
        facts.sampling[c] = in.comp_info[c].h_samp_factor * 10 + in.comp_info[c].v_samp_factor;
        memcpy(facts.quant[c], in.quant_tbl_ptrs[in.comp_info[c].quant_tbl_no]->quantval,
               sizeof facts.quant[c]);
    }
    facts.is_progressive = in.progressive_mode;
    facts.is_arithmetic = in.arith_code;
    facts.color_space = (int)in.jpeg_color_space;
    jpeg_destroy_decompress(&in);
    return facts;
}

static void test_jpeg_tables_are_kept(void)
{
    for (size_t i = 0; i < case_count; i++) {
        if (cases[i].format != FORMAT_JPEG)
            continue;
        fresh();
        struct codec_bytes file = make_picture(&cases[i]);
        struct codec_bytes again = recode(&file, true);
        struct jpeg_facts before = jpeg_read_facts(&file);
        struct jpeg_facts after = jpeg_read_facts(&again);
        CU_ASSERT(memcmp(&before, &after, sizeof before) == 0);
        bytes_free(&file);
        bytes_free(&again);
    }
}

static void test_webp_quality_is_near(void)
{
    /* A re-encoded lossy file must have about the original size. */
    for (int quality = 10; quality <= 95; quality += 17) {
        struct made_spec spec = {"WebP", FORMAT_WEBP, 256, 192, 3, false, .quality = quality};
        fresh();
        struct codec_bytes file = make_picture(&spec);
        struct codec_bytes again = recode(&file, false);
        double ratio = (double)again.size / (double)file.size;
        CU_ASSERT(ratio > 0.85 && ratio < 1.15);
        if (ratio <= 0.85 || ratio >= 1.15)
            printf("WebP quality %d: %zu bytes became %zu\n", quality, file.size, again.size);
        bytes_free(&file);
        bytes_free(&again);
    }
}

static void check_opt_out(const struct made_spec *spec)
{
    static const char value[] = "http://ns.useplus.org/ldf/vocab/DMI-PROHIBITED-AIMLTRAINING";
    struct codec_bytes file = make_picture(spec);
    struct codec_bytes once = recode(&file, true);
    struct codec_bytes twice = recode(&once, true);
    CU_ASSERT(holds(&once, value, strlen(value)));
    CU_ASSERT(!spec->has_metadata || holds(&once, "<rdf:li>Some One</rdf:li>", 25));
    CU_ASSERT(!spec->has_metadata || holds(&once, made_exif, made_exif_bytes));
    unsigned char *found = memmem(twice.data, twice.size, value, strlen(value));
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    size_t rest = twice.size - (size_t)(found + 1 - twice.data);
    CU_ASSERT_PTR_NULL(memmem(found + 1, rest, value, strlen(value)));
    bytes_free(&file);
    bytes_free(&once);
    bytes_free(&twice);
}

static void test_opt_out(void)
{
    for (size_t i = 0; i < case_count; i++) {
        fresh();
        check_opt_out(&cases[i]);
    }
}

static void test_thumbnail(void)
{
    for (size_t i = 0; i < case_count; i++) {
        struct made_spec spec = cases[i];
        struct codec_picture picture;
        struct codec_bytes thumbnail;
        int width = 0;
        int height = 0;
        fresh();
        spec.width_px = 500;
        spec.height_px = 300;
        struct codec_bytes file = make_picture(&spec);
        CU_ASSERT_EQUAL_FATAL(codec_decode(&context, file.data, file.size, &no_limits, &picture), IW_OK);
        CU_ASSERT_EQUAL_FATAL(thumbnail_webp(&context, &picture, 320, &thumbnail), IW_OK);
        CU_ASSERT(WebPGetInfo(thumbnail.data, thumbnail.size, &width, &height));
        /* The metadata says orientation 6: a quarter turn. */
        CU_ASSERT_EQUAL(width, spec.has_metadata ? 192 : 320);
        CU_ASSERT_EQUAL(height, spec.has_metadata ? 320 : 192);
        bytes_free(&file);
        bytes_free(&thumbnail);
        codec_picture_free(&picture);
    }
}

/* ---- refusals ---- */

static enum iw_error decode_error(const void *data, size_t size, const struct codec_limits *limits)
{
    struct codec_picture picture;
    fresh();
    enum iw_error error = codec_decode(&context, data, size, limits, &picture);
    if (error == IW_OK)
        codec_picture_free(&picture);
    CU_ASSERT(error == IW_OK || (context.error == error && context.sentence != NULL));
    return error;
}

static void test_kinds_refused(void)
{
    static const struct made_spec kinds[] = {
        {"APNG", FORMAT_PNG, 97, 71, 3, false, .depth_bits = 8, .is_animated = true},
        {"animated WebP", FORMAT_WEBP, 97, 71, 3, false, .quality = 75, .is_animated = true},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct codec_bytes file = make_picture(&kinds[i]);
        CU_ASSERT_EQUAL(decode_error(file.data, file.size, &no_limits), IW_IMAGE_FORMAT_UNSUPPORTED);
        CU_ASSERT_STRING_NOT_EQUAL(context.sentence, iw_error_sentence(IW_IMAGE_FORMAT_UNSUPPORTED));
        bytes_free(&file);
    }
    CU_ASSERT_EQUAL(decode_error("GIF89a.........", 15, &no_limits), IW_IMAGE_FORMAT_UNSUPPORTED);
    CU_ASSERT_EQUAL(decode_error("", 0, &no_limits), IW_IMAGE_FORMAT_UNSUPPORTED);
}

/* An opaque WebP with an alpha flag keeps the flag and its channels. */
static void test_webp_with_opaque_alpha(void)
{
    enum { flags_at = 20, lossless_at = 12, flag_alpha = 0x10 };
    for (size_t i = 0; i < case_count; i++) {
        if (cases[i].format != FORMAT_WEBP || cases[i].channels != 3 || !cases[i].has_metadata)
            continue;
        struct codec_picture picture;
        struct codec_bytes file = make_picture(&cases[i]), again;
        CU_ASSERT_EQUAL_FATAL(memcmp(file.data + 12, "VP8X", 4), 0);
        unsigned char *lossless = memmem(file.data, file.size, "VP8L", 4);
        file.data[flags_at] |= flag_alpha;
        if (lossless != NULL)
            lossless[lossless_at] |= flag_alpha;
        fresh();
        CU_ASSERT_EQUAL_FATAL(codec_decode(&context, file.data, file.size, &no_limits, &picture), IW_OK);
        CU_ASSERT_EQUAL(picture.image.channels, 4);
        codec_picture_free(&picture);
        again = recode(&file, true);
        CU_ASSERT_EQUAL_FATAL(codec_decode(&context, again.data, again.size, &no_limits, &picture), IW_OK);
        CU_ASSERT_EQUAL(picture.image.channels, 4);
        CU_ASSERT_EQUAL(((unsigned char *)picture.image.pixels)[3], 255);
        codec_picture_free(&picture);
        bytes_free(&file);
        bytes_free(&again);
    }
}

/* Small files that need much memory are refused before anything is allocated. */
static void test_bombs(void)
{
    static const struct made_spec scans = {"scans",       FORMAT_JPEG,           97, 71, 1, false,
                                           .quality = 85, .has_many_scans = true};
    static const struct made_spec text = {
        "text", FORMAT_PNG, 97, 71, 3, false, .depth_bits = 8, .text_bytes = keep_bytes_max};
    static const unsigned char huge[] =
        "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x10\6\0\0\0"
        "\0\0\0\0\0\0\0\0IDAT\x35\xaf\x06\x1e\0\0\0\0IEND\xae\x42\x60\x82";
    unsigned char png[sizeof huge - 1];
    const struct codec_limits limits = {.memory_max_bytes = (uint64_t)1 << 30};
    struct codec_bytes file = make_picture(&scans);
    CU_ASSERT_EQUAL(decode_error(file.data, file.size, &no_limits), IW_IMAGE_TOO_LARGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, "100 scans"));
    bytes_free(&file);
    file = make_picture(&text);
    CU_ASSERT_EQUAL(decode_error(file.data, file.size, &no_limits), IW_IMAGE_TOO_LARGE);
    bytes_free(&file);
    memcpy(png, huge, sizeof png);
    uint32_t sum = (uint32_t)crc32(0, png + 12, 17);
    for (int i = 0; i < 4; i++)
        png[29 + i] = (unsigned char)(sum >> (24 - 8 * i));
    CU_ASSERT_EQUAL(decode_error(png, sizeof png, &limits), IW_IMAGE_TOO_LARGE);
}

/* An opt-out that does not fit in a JPEG segment is an error; PNG texts have no such limit, compressed or
 * not. */
static void test_opt_out_room(void)
{
    struct made_spec spec = {"JPEG", FORMAT_JPEG, 97, 71, 3, true, .sampling = 22, .quality = 85};
    char *xmp = malloc(65600);
    int size = snprintf(xmp, 65600,
                        "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"><!--%065300d-->"
                        "</rdf:RDF>",
                        0);
    CU_ASSERT(size > 65300 && size < 65504);
    struct codec_picture picture;
    spec.xmp = xmp;
    struct codec_bytes file = make_picture(&spec);
    fresh();
    CU_ASSERT_EQUAL_FATAL(codec_decode(&context, file.data, file.size, &no_limits, &picture), IW_OK);
    CU_ASSERT_EQUAL(codec_opt_out(&context, &picture), IW_IMAGE_TOO_LARGE);
    codec_picture_free(&picture);
    bytes_free(&file);
    spec = (struct made_spec){
        "PNG", FORMAT_PNG, 97, 71, 3, true, .xmp = xmp, .depth_bits = 8, .is_xmp_compressed = true};
    file = make_picture(&spec);
    fresh();
    struct codec_bytes again = recode(&file, true);
    CU_ASSERT(holds(&again, "DMI-PROHIBITED-AIMLTRAINING", 27));
    CU_ASSERT(holds(&again, xmp, (size_t)size - strlen("</rdf:RDF>")));
    bytes_free(&file);
    bytes_free(&again);
    free(xmp);
}

/* Returns the number of bytes that contain all pixels; metadata after them may be truncated. */
static size_t pixels_end(const struct codec_bytes *file, enum format format)
{
    if (format == FORMAT_JPEG)
        return file->size - 2;
    if (format == FORMAT_WEBP) {
        const unsigned char *frame = memmem(file->data, file->size, "VP8L", 4);
        if (frame == NULL)
            frame = memmem(file->data, file->size, "VP8 ", 4);
        CU_ASSERT_PTR_NOT_NULL_FATAL(frame);
        return (size_t)(frame - file->data) + 8 + frame[4] + ((size_t)frame[5] << 8) +
               ((size_t)frame[6] << 16);
    }
    size_t end = 0;
    for (size_t at = 8; at + 12 <= file->size;) {
        const unsigned char *chunk = file->data + at;
        at += 12 + ((size_t)chunk[0] << 24 | (size_t)chunk[1] << 16 | (size_t)chunk[2] << 8 | chunk[3]);
        if (memcmp(chunk + 4, "IDAT", 4) == 0)
            end = at - 4; /* without the checksum of the chunk; the stream has another */
    }
    return end;
}

static void check_truncated(const unsigned char *data, size_t size, size_t end)
{
    char wanted[64];
    unsigned char *part = malloc(size);
    memcpy(part, data, size);
    snprintf(wanted, sizeof wanted, "cut off after %zu bytes", size);
    CU_ASSERT_EQUAL(decode_error(part, size, &no_limits), size < end ? IW_IMAGE_CORRUPT : IW_OK);
    CU_ASSERT(size >= end || strstr(context.sentence, wanted) != NULL);
    free(part);
}

static void test_truncation(void)
{
    for (size_t i = 0; i < case_count; i++) {
        struct codec_bytes file = make_picture(&cases[i]);
        size_t end = pixels_end(&file, cases[i].format);
        for (size_t size = 16; size + 2 < file.size; size += 1 + file.size / 60)
            check_truncated(file.data, size, end);
        bytes_free(&file);
    }
}

/* Returns the offset of the last scan's marker, which entropy-coded data cannot contain. */
static size_t last_scan(const struct codec_bytes *file)
{
    size_t at = file->size - 2;
    while (at > 0 && memcmp(file->data + at, "\xff\xda", 2) != 0)
        at--;
    return at;
}

/*
 * A JPEG without an end marker is accepted if it has all pixels, and refused if the last scan is
 * missing.
 */
static void test_jpeg_without_its_end(void)
{
    for (size_t i = 0; i < case_count && cases[i].format == FORMAT_JPEG; i++) {
        struct codec_bytes file = make_picture(&cases[i]), again;
        enum iw_error wanted = cases[i].is_arithmetic ? IW_IMAGE_CORRUPT : IW_OK;
        for (size_t missing = 1; missing <= 2; missing++)
            CU_ASSERT_EQUAL(decode_error(file.data, file.size - missing, &no_limits), wanted);
        if (cases[i].is_progressive)
            CU_ASSERT_EQUAL(decode_error(file.data, last_scan(&file), &no_limits), IW_IMAGE_CORRUPT);
        file.size -= 2;
        fresh();
        if (wanted == IW_OK) {
            again = recode(&file, false);
            CU_ASSERT(memcmp(again.data + again.size - 2, "\xff\xd9", 2) == 0);
            bytes_free(&again);
        }
        file.size += 2;
        bytes_free(&file);
    }
}

static void test_limits(void)
{
    static const struct {
        struct codec_limits limits;
        enum iw_error error;
        const char *actual;
        const char *allowed;
    } refusals[] = {
        {{.pixels_max = 6886}, IW_IMAGE_TOO_LARGE, "6887", "6886"},
        {{.side_max_px = 96}, IW_IMAGE_TOO_LARGE, "97", "96"},
        {{.side_min_px = 72}, IW_IMAGE_TOO_SMALL, "71", "72"},
        {{.memory_max_bytes = 1000}, IW_IMAGE_TOO_LARGE, "MiB", "MiB"},
        {{.memory_max_bytes = 4 << 20, .engine.bytes_px = 1024}, IW_IMAGE_TOO_LARGE, "6 MiB", "4 MiB"},
        {{.memory_max_bytes = 4 << 20, .engine.bytes_column = 60 << 10}, IW_IMAGE_TOO_LARGE, "MiB", "4 MiB"},
        {{.pixels_max = 6887, .side_max_px = 97, .side_min_px = 71, .memory_max_bytes = 1 << 20},
         IW_OK,
         "",
         ""},
    };
    for (size_t i = 0; i < case_count; i++) {
        struct codec_bytes file = make_picture(&cases[i]);
        for (size_t k = 0; k < sizeof refusals / sizeof refusals[0]; k++) {
            CU_ASSERT_EQUAL(decode_error(file.data, file.size, &refusals[k].limits), refusals[k].error);
            if (refusals[k].error == IW_OK)
                continue;
            CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, refusals[k].actual));
            CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, refusals[k].allowed));
        }
        bytes_free(&file);
    }
}

/* Line buffers count by the column: a tall picture needs little, a wide one much. */
static void test_column_limit(void)
{
    static const struct made_spec specs[] = {
        {"tall", FORMAT_PNG, 8, 2000, 3, false, .depth_bits = 8},
        {"wide", FORMAT_PNG, 2000, 8, 3, false, .depth_bits = 8},
    };
    const struct codec_limits limits = {.memory_max_bytes = 4 << 20, .engine.bytes_column = 60 << 10};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct codec_bytes file = make_picture(&specs[i]);
        CU_ASSERT_EQUAL(decode_error(file.data, file.size, &limits), i == 0 ? IW_OK : IW_IMAGE_TOO_LARGE);
        bytes_free(&file);
    }
}

static enum iw_error rows_take(void *user, uint32_t first_row_px, const struct image *strip)
{
    const struct image *whole = user;
    for (uint32_t y = 0; y < strip->height_px; y++)
        CU_ASSERT(memcmp((unsigned char *)strip->pixels + y * strip->stride_bytes,
                         (unsigned char *)whole->pixels + (first_row_px + y) * whole->stride_bytes,
                         whole->stride_bytes) == 0);
    return first_row_px + strip->height_px > 1000 ? IW_IMAGE_CORRUPT : IW_OK;
}

static void test_rows(void)
{
    for (size_t i = 0; i < case_count; i++) {
        struct codec_bytes file = make_picture(&cases[i]);
        struct codec_picture picture;
        fresh();
        CU_ASSERT_EQUAL_FATAL(codec_decode(&context, file.data, file.size, &no_limits, &picture), IW_OK);
        CU_ASSERT_EQUAL(
            codec_decode_rows(&context, file.data, file.size, &no_limits, rows_take, &picture.image), IW_OK);
        codec_picture_free(&picture);
        bytes_free(&file);
    }
}

static void test_sniff(void)
{
    CU_ASSERT_EQUAL(sniff_format("\xff\xd8\xff\xe0", 4), FORMAT_JPEG);
    CU_ASSERT_EQUAL(sniff_format("\x89PNG\r\n\x1a\n....", 12), FORMAT_PNG);
    CU_ASSERT_EQUAL(sniff_format("RIFF\1\2\3\4WEBPVP8L", 16), FORMAT_WEBP);
    CU_ASSERT_EQUAL(sniff_format("RIFF\1\2\3\4WAVEfmt ", 16), FORMAT_NONE);
    CU_ASSERT_EQUAL(sniff_format("\xff\xd8", 2), FORMAT_NONE);
    CU_ASSERT_EQUAL(sniff_format("", 0), FORMAT_NONE);
    CU_ASSERT_EQUAL(sniff_format("<svg xmlns=", 11), FORMAT_NONE);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"first bytes tell the format", test_sniff},
        {"every shape comes back", test_round_trip},
        {"samples are what the file says", test_first_pixels},
        {"16 bits are kept", test_16_bits_are_kept},
        {"metadata is kept", test_metadata_is_kept},
        {"JPEG tables are kept", test_jpeg_tables_are_kept},
        {"WebP quality is near", test_webp_quality_is_near},
        {"opt-out is written once", test_opt_out},
        {"thumbnails are small and upright", test_thumbnail},
        {"rows are those of the picture", test_rows},
        {"kinds refused", test_kinds_refused},
        {"an opaque alpha plane stays announced", test_webp_with_opaque_alpha},
        {"bombs are refused", test_bombs},
        {"the opt-out needs room", test_opt_out_room},
        {"truncated files are refused", test_truncation},
        {"a JPEG without its end marker", test_jpeg_without_its_end},
        {"limits name actual and allowed", test_limits},
        {"line buffers count by the column", test_column_limit},
        CU_TEST_INFO_NULL,
    };
    context_init(&context, arena_new(0), NULL);
    int code = runner_run("codec", tests);
    arena_free(context.arena);
    return code;
}
