/*
 * Files from practice: damage outside the pixels, unusual forms that other programs read, and
 * files with missing pixels. Each test modifies a good file. Its pixels must be those of the
 * good file, or it is refused with a sentence that names the remedy.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <lcms2.h>
#include <zlib.h>

#include "codec/cmyk.h"
#include "codec/codec.h"
#include "codec/color.h"
#include "codec/conversion.h"
#include "codec/driver.h"
#include "codec/thumbnail.h"
#include "model/sniff.h"
#include "picture_maker.h"
#include "runner.h"

static struct context context;
static const struct codec_limits no_limits;
static const struct codec_limits read_only = {.engine.is_read_only = true};

static const struct made_spec jpeg = {"JPEG", FORMAT_JPEG, 97, 71, 3, true, .sampling = 22, .quality = 85};
static const struct made_spec progressive = {
    "progressive", FORMAT_JPEG, 97, 71, 3, false, .sampling = 11, .quality = 85, .is_progressive = true};
static const struct made_spec png = {"PNG", FORMAT_PNG, 48, 40, 3, true, .depth_bits = 8};
static const struct made_spec colored = {"PNG palette",   FORMAT_PNG,        97, 71, 1, false,
                                         .depth_bits = 4, .is_palette = true};
static const struct made_spec webp = {"WebP", FORMAT_WEBP, 97, 71, 3, true, .quality = 80};
static const struct made_spec clear_webp = {"WebP alpha", FORMAT_WEBP, 97, 71, 4, true, .quality = 80};
static const struct made_spec exact_webp = {"WebP lossless", FORMAT_WEBP,        97, 71, 4, true,
                                            .quality = 50,   .is_lossless = true};

static void fresh(void)
{
    arena_reset(context.arena);
    context_clear(&context);
    context.notes = NULL;
}

/* ---- files and their pieces ---- */

/* Replace bytes. */
static void replace(struct codec_bytes *file, size_t at, size_t gone, const void *data, size_t size)
{
    unsigned char *made = malloc(file->size - gone + size + 1);
    memcpy(made, file->data, at);
    memcpy(made + at, data, size);
    memcpy(made + at + size, file->data + at + gone, file->size - at - gone);
    free(file->data);
    file->data = made;
    file->size += size - gone;
}

static size_t find(const struct codec_bytes *file, const void *text, size_t size)
{
    unsigned char *found = memmem(file->data, file->size, text, size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    return (size_t)(found - file->data);
}

static bool holds(const struct codec_bytes *file, const char *text)
{
    return memmem(file->data, file->size, text, strlen(text)) != NULL;
}

/* Offset of a PNG chunk, at its length. */
static size_t png_at(const struct codec_bytes *file, const char *name)
{
    return find(file, name, 4) - 4;
}

static size_t png_bytes(const struct codec_bytes *file, size_t at)
{
    const unsigned char *length = file->data + at;
    return 12 + ((size_t)length[0] << 24 | (size_t)length[1] << 16 | (size_t)length[2] << 8 | length[3]);
}

static void png_insert(struct codec_bytes *file, size_t at, const char *name, const void *data, size_t size)
{
    unsigned char *chunk = malloc(size + 12);
    uint32_t numbers[2] = {(uint32_t)size, 0};
    memcpy(chunk + 4, name, 4);
    memcpy(chunk + 8, data, size);
    numbers[1] = (uint32_t)crc32(0, chunk + 4, (uInt)size + 4);
    for (int i = 0; i < 4; i++) {
        chunk[i] = (unsigned char)(numbers[0] >> (24 - 8 * i));
        chunk[8 + size + (size_t)i] = (unsigned char)(numbers[1] >> (24 - 8 * i));
    }
    replace(file, at, 0, chunk, size + 12);
    free(chunk);
}

static void png_drop(struct codec_bytes *file, const char *name)
{
    size_t at = png_at(file, name);
    replace(file, at, png_bytes(file, at), "", 0);
}

static void png_seal(struct codec_bytes *file, size_t at)
{
    size_t size = png_bytes(file, at);
    uint32_t sum = (uint32_t)crc32(0, file->data + at + 4, (uInt)size - 8);
    for (int i = 0; i < 4; i++)
        file->data[at + size - 4 + (size_t)i] = (unsigned char)(sum >> (24 - 8 * i));
}

/* ---- checks ---- */

static enum iw_error decode(const struct codec_bytes *file, const struct codec_limits *limits,
                            struct codec_picture *picture)
{
    fresh();
    /* An exact copy, so that a sanitizer sees reads past the end. */
    unsigned char *exact = malloc(file->size);
    memcpy(exact, file->data, file->size);
    enum iw_error error = codec_decode(&context, exact, file->size, limits, picture);
    free(exact);
    return error;
}

/* The file decodes to the good one's pixels, and the encoded result decodes again. */
static void check_same(const struct made_spec *spec, const struct codec_bytes *file)
{
    struct codec_bytes good = make_picture(spec), again;
    struct codec_picture wanted, picture;
    CU_ASSERT_EQUAL_FATAL(decode(&good, &no_limits, &wanted), IW_OK);
    enum iw_error error = decode(file, &no_limits, &picture);
    CU_ASSERT_EQUAL_FATAL(error, IW_OK);
    CU_ASSERT_EQUAL_FATAL(picture.image.channels, wanted.image.channels);
    CU_ASSERT_EQUAL(memcmp(picture.image.pixels, wanted.image.pixels,
                           picture.image.height_px * picture.image.stride_bytes),
                    0);
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &again), IW_OK);
    codec_picture_free(&picture);
    CU_ASSERT_EQUAL(decode(&again, &no_limits, &picture), IW_OK);
    codec_picture_free(&picture);
    codec_picture_free(&wanted);
    bytes_free(&again);
    bytes_free(&good);
}

static void check_refused(const struct codec_bytes *file, enum iw_error wanted, const char *word)
{
    struct codec_picture picture;
    enum iw_error error = decode(file, &no_limits, &picture);
    CU_ASSERT_EQUAL(error, wanted);
    if (error == IW_OK)
        codec_picture_free(&picture);
    CU_ASSERT_PTR_NOT_NULL_FATAL(context.sentence);
    if (strstr(context.sentence, word) == NULL)
        printf("  \"%s\" lacks \"%s\"\n", context.sentence, word);
    CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, word));
}

static struct codec_bytes recode(const struct codec_bytes *file)
{
    struct codec_picture picture;
    struct codec_bytes again = {NULL, 0};
    CU_ASSERT_EQUAL_FATAL(decode(file, &no_limits, &picture), IW_OK);
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &again), IW_OK);
    codec_picture_free(&picture);
    return again;
}

/* ---- JPEG ---- */

/* Spectral selection of 0,0 where it is meaningless, as some phones write it. */
static void test_jpeg_scan_of_zeros(void)
{
    struct codec_bytes file = make_picture(&jpeg);
    size_t at = find(&file, "\xff\xda", 2);
    CU_ASSERT_EQUAL(file.data[at + 12], 63);
    file.data[at + 12] = 0;
    check_same(&jpeg, &file);
    bytes_free(&file);
}

/* Forms that libjpeg warns about, without lost pixels. */
static void test_jpeg_of_odd_form(void)
{
    struct codec_bytes file = make_picture(&jpeg);
    replace(&file, file.size - 2, 0, "\x12\x34\0\0", 4); /* bytes after the last scan */
    file.data[find(&file, "JFIF", 5) + 5] = 3;           /* an unknown version of JFIF */
    replace(&file, 2, 0,
            "\xff\xee\0\x0e"
            "Adobe\0\x64\0\0\0\0\x09",
            16); /* and colour transform */
    check_same(&jpeg, &file);
    bytes_free(&file);
}

/* AC coefficients before the DC ones. */
static void test_jpeg_scans_in_odd_order(void)
{
    struct made_spec spec = progressive;
    spec.channels = 1;
    struct codec_bytes file = make_picture(&spec);
    size_t scans[16], count = 0;
    for (size_t at = 2; at + 1 < file.size; at++)
        if (file.data[at] == 0xff && (file.data[at + 1] == 0xc4 || file.data[at + 1] == 0xda) &&
            (count == 0 || file.data[at + 1] == 0xc4) && count < 16)
            scans[count++] = at;
    /* Each scan has its Huffman table; exchange the first two. */
    CU_ASSERT_FATAL(count >= 3);
    size_t first = scans[1] - scans[0], second = scans[2] - scans[1];
    unsigned char *kept = malloc(first);
    memcpy(kept, file.data + scans[0], first);
    memmove(file.data + scans[0], file.data + scans[1], second);
    memcpy(file.data + scans[0] + second, kept, first);
    free(kept);
    check_same(&spec, &file);
    bytes_free(&file);
}

/* The standard forbids quantisers of zero; all decoders return zeros for them. */
static void test_jpeg_quantiser_of_zero(void)
{
    struct codec_bytes file = make_picture(&jpeg), again;
    file.data[find(&file, "\xff\xdb", 2) + 5 + 63] = 0;
    again = recode(&file);
    CU_ASSERT_EQUAL(again.data[find(&again, "\xff\xdb", 2) + 5 + 63], 255);
    bytes_free(&file);
    bytes_free(&again);
}

/* Factors too large for an interleaved scan are divided by a common divisor. */
static void test_jpeg_factors_reduced(void)
{
    const struct made_spec spec = {"2x2 2x2 2x2", FORMAT_JPEG,     97, 71, 3, false, .factors = {22, 22, 22},
                                   .quality = 85, .is_split = true};
    struct codec_bytes file = make_picture(&spec), again = recode(&file);
    size_t frame = find(&again, "\xff\xc0", 2);
    CU_ASSERT_EQUAL(again.data[frame + 11], 0x11);
    check_same(&spec, &file);
    bytes_free(&file);
    bytes_free(&again);
}

/* Scans per component without an end marker: complete when each component had its scan. */
static void test_jpeg_scans_without_end(void)
{
    const struct made_spec spec = {"split",       FORMAT_JPEG,     97, 71, 3, false, .sampling = 22,
                                   .quality = 85, .is_split = true};
    struct codec_bytes file = make_picture(&spec);
    file.size -= 2;
    check_same(&spec, &file);
    while (memcmp(file.data + file.size - 2, "\xff\xda", 2) != 0)
        file.size--;
    file.size -= 2;
    check_refused(&file, IW_IMAGE_CORRUPT, "cut off after");
    bytes_free(&file);
}

/* Missing or doubtful pixels. */
static void test_jpeg_lost_pixels(void)
{
    const struct made_spec spec = {"restarts",     FORMAT_JPEG,   97,          71, 3, false,
                                   .sampling = 22, .quality = 85, .restart = 2};
    struct codec_bytes file = make_picture(&spec);
    size_t from = find(&file, "\xff\xd1", 2), to = find(&file, "\xff\xd3", 2);
    replace(&file, from, to - from, "", 0);
    check_refused(&file, IW_IMAGE_CORRUPT, "damaged");
    CU_ASSERT_PTR_NULL(strstr(context.sentence, "RST"));
    CU_ASSERT_PTR_NOT_NULL(strstr(context.cause, "libjpeg"));
    bytes_free(&file);
    file = make_picture(&jpeg);
    file.size = file.size * 2 / 3;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "cut off after %zu bytes; upload it again", file.size);
    check_refused(&file, IW_IMAGE_CORRUPT, wanted);
    bytes_free(&file);
}

/* Padding of one value after the scan, and the few bytes of test_jpeg_of_odd_form, are form. */
static void test_jpeg_stray_bytes(void)
{
    unsigned char stray[400];
    struct codec_bytes file = make_picture(&jpeg);
    memset(stray, 0, sizeof stray);
    replace(&file, file.size - 2, 0, stray, sizeof stray);
    check_same(&jpeg, &file);
    bytes_free(&file);
    for (size_t i = 0; i < sizeof stray; i++)
        stray[i] = (unsigned char)(i * 7 % 251);
    file = make_picture(&jpeg);
    replace(&file, 2, 0, "\xff\xef\0\4ab", 6);
    replace(&file, 8, 0, stray, sizeof stray); /* a segment of a wrong length, in the header */
    check_same(&jpeg, &file);
    bytes_free(&file);
    file = make_picture(&jpeg);
    replace(&file, file.size - 2, 0, stray, sizeof stray);
    check_refused(&file, IW_IMAGE_CORRUPT, "damaged");
    bytes_free(&file);
}

/* The picture with noise, so that its compressed bytes are those of a photograph. */
static struct codec_bytes make_noisy(const struct made_spec *spec)
{
    struct codec_bytes file = make_picture(spec), noisy = {NULL, 0};
    struct codec_picture picture;
    unsigned state = 1;
    CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
    unsigned char *samples = picture.image.pixels;
    for (size_t i = 0; i < picture.image.height_px * picture.image.stride_bytes; i++) {
        state = state * 1103515245 + 12345;
        samples[i] = (unsigned char)(samples[i] / 2 + (state >> 16) % 100);
    }
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &noisy), IW_OK);
    codec_picture_free(&picture);
    bytes_free(&file);
    return noisy;
}

/* A conversion of a byte or of a pair, as transfers in text mode and programs make it. */
struct conversion_rule {
    const char *from;
    const char *to;
};

static void convert(struct codec_bytes *file, size_t from, const struct conversion_rule *rule)
{
    size_t gone = strlen(rule->from), size = strlen(rule->to);
    for (size_t at = from; at + gone <= file->size;) {
        if (memcmp(file->data + at, rule->from, gone) != 0) {
            at++;
            continue;
        }
        replace(file, at, gone, rule->to, size);
        at += size;
    }
}

/* Each byte above 0x7F becomes two, as in UTF-8, or loses its highest bit. */
static void high_bytes_convert(struct codec_bytes *file, bool is_utf8)
{
    for (size_t at = 0; at < file->size; at++) {
        unsigned char byte = file->data[at];
        unsigned char pair[] = {0xc0 | byte >> 6, 0x80 | (byte & 0x3f)};
        file->data[at] = byte & 0x7f;
        if (is_utf8 && byte >= 0x80)
            replace(file, at++, 1, pair, sizeof pair);
    }
}

/* The decoders read these files to the end; a picture of them is garbage. */
static void test_text_mode(void)
{
    static const struct conversion_rule rules[] = {{"\n", "\r\n"}, {"\r", ""}, {"\r", "\n"}, {"\n", ""}};
    static const struct made_spec specs[] = {
        {"JPEG", FORMAT_JPEG, 256, 192, 3, false, .sampling = 22, .quality = 85},
        {"progressive", FORMAT_JPEG, 256, 192, 3, false, .sampling = 11, .quality = 85,
         .is_progressive = true},
        {"WebP", FORMAT_WEBP, 256, 192, 3, true, .quality = 90},
        {"lossless", FORMAT_WEBP, 256, 192, 4, true, .quality = 50, .is_lossless = true},
    };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++) {
            struct codec_bytes file = make_noisy(&specs[i]);
            /* WebP: the first bytes name the format. */
            convert(&file, specs[i].format == FORMAT_WEBP ? 16 : 0, &rules[r]);
            check_refused(&file, IW_IMAGE_CORRUPT, "transfer in text mode. Transfer it in binary mode");
            bytes_free(&file);
        }
    for (int is_utf8 = 0; is_utf8 <= 1; is_utf8++)
        for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
            struct codec_bytes file = make_noisy(&specs[i]);
            high_bytes_convert(&file, is_utf8);
            check_refused(&file,
                          sniff_format(file.data, file.size) == FORMAT_NONE ? IW_IMAGE_FORMAT_UNSUPPORTED
                                                                            : IW_IMAGE_CORRUPT,
                          is_utf8 || specs[i].format == FORMAT_WEBP ? "as text" : "text mode");
            bytes_free(&file);
        }
}

/* Flat pictures compress to the same bytes again and again, which no transfer made. */
static void test_flat_pictures(void)
{
    static const struct made_spec specs[] = {
        {"JPEG", FORMAT_JPEG, 640, 480, 3, false, .sampling = 22, .quality = 85},
        {"grey JPEG", FORMAT_JPEG, 640, 480, 1, false, .quality = 20},
        {"progressive", FORMAT_JPEG, 640, 480, 3, false, .sampling = 11, .quality = 85,
         .is_progressive = true},
        {"WebP", FORMAT_WEBP, 640, 480, 3, true, .quality = 20},
        {"lossless", FORMAT_WEBP, 640, 480, 4, true, .quality = 50, .is_lossless = true},
    };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct codec_bytes file = make_picture(&specs[i]), flat;
        struct codec_picture picture, again;
        CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
        unsigned char *samples = picture.image.pixels;
        for (int period = 0; period < 40; period++) {
            for (size_t at = 0; at < picture.image.height_px * picture.image.stride_bytes; at++)
                samples[at] = (unsigned char)(period < 20 ? (size_t)period * 13 : at % (size_t)period * 11);
            flat = (struct codec_bytes){NULL, 0};
            CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &flat), IW_OK);
            CU_ASSERT_EQUAL(decode(&flat, &no_limits, &again), IW_OK);
            codec_picture_free(&again);
            bytes_free(&flat);
        }
        codec_picture_free(&picture);
        bytes_free(&file);
    }
}

static void test_jpeg_kinds(void)
{
    struct codec_bytes file = make_picture(&jpeg);
    size_t frame = find(&file, "\xff\xc0", 2);
    file.data[frame + 4] = 12;
    check_refused(&file, IW_IMAGE_FORMAT_UNSUPPORTED, "8 bits");
    file.data[frame + 4] = 8;
    file.data[frame + 1] = 0xc3;
    check_refused(&file, IW_IMAGE_FORMAT_UNSUPPORTED, "lossless");
    file.data[frame + 1] = 0xf7;
    check_refused(&file, IW_IMAGE_FORMAT_UNSUPPORTED, "JPEG-LS");
    bytes_free(&file);
}

/* ---- CMYK ---- */

/* No ink is white, for plain and for inverted samples. */
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

/* The rendition of the new inks shows the engine's change. */
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
    /* A profile of another colour space, or a broken one, is ignored. */
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

/* The result is CMYK of the same kind, with marker and profile. */
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

/* ---- PNG ---- */

/* A damaged chunk outside the pixels is dropped; all others stay. */
static void test_png_damaged_text(void)
{
    struct codec_bytes file = make_picture(&png), again;
    file.data[png_at(&file, "tEXt") + 20] ^= 1;
    check_same(&png, &file);
    again = recode(&file);
    CU_ASSERT(!holds(&again, "a comment"));
    CU_ASSERT(holds(&again, "behind the pixels"));
    CU_ASSERT(holds(&again, made_xmp));
    bytes_free(&again);
    bytes_free(&file);
}

/* As in libpng, a tRNS chunk that does not fit the picture is ignored. */
static void test_png_transparency_that_does_not_fit(void)
{
    static const unsigned char alphas[256] = {0, 1, 2};
    static const struct {
        const struct made_spec *spec;
        const char *before;
        size_t size;
    } places[] = {{&colored, "IDAT", 256}, {&colored, "IDAT", 17}, {&colored, "IDAT", 0},
                  {&colored, "PLTE", 4},   {&colored, "IEND", 4},  {&png, "IDAT", 5},
                  {&png, "IDAT", 0}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct codec_bytes file = make_picture(places[i].spec);
        png_insert(&file, png_at(&file, places[i].before), "tRNS", alphas, places[i].size);
        check_same(places[i].spec, &file);
        bytes_free(&file);
    }
    /* So is a damaged one. */
    struct codec_bytes file = make_picture(&colored);
    size_t at = png_at(&file, "IDAT");
    png_insert(&file, at, "tRNS", alphas, 4);
    file.data[at + 8] ^= 1;
    check_same(&colored, &file);
    bytes_free(&file);
}

/* A file that ends after its pixels is complete. */
static void test_png_without_end(void)
{
    struct codec_bytes file = make_picture(&png);
    size_t pixels = png_at(&file, "IDAT"), end = pixels + png_bytes(&file, pixels);
    static const size_t cuts[] = {0, 2, 4};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        file.size = end - cuts[i];
        check_same(&png, &file);
    }
    file.size = end - 5; /* into the stream's own checksum */
    check_refused(&file, IW_IMAGE_CORRUPT, "cut off after");
    file.size = end;
    replace(&file, end, 0, "\0\0\0\4\1\2\3\4garbage behind the pixels", 34);
    check_same(&png, &file);
    bytes_free(&file);
}

/* One right checksum of two is sufficient. */
static void test_png_checksums(void)
{
    struct codec_bytes file = make_picture(&png);
    size_t at = png_at(&file, "IDAT"), size = png_bytes(&file, at);
    file.data[at + size - 1] ^= 1;
    check_same(&png, &file);
    file.data[at + size - 5] ^= 1;
    check_refused(&file, IW_IMAGE_CORRUPT, "damaged");
    png_seal(&file, at);
    check_same(&png, &file);
    bytes_free(&file);
}

/* Pixel chunks with a text between them, and a smaller window than used. */
static void test_png_odd_stream(void)
{
    struct codec_bytes file = make_picture(&png);
    size_t at = png_at(&file, "IDAT"), size = png_bytes(&file, at) - 12, half = size / 2;
    unsigned char *stream = malloc(size);
    memcpy(stream, file.data + at + 8, size);
    stream[0] = 0x18; /* deflate, 512 bytes */
    stream[1] = (unsigned char)(31 - (stream[0] * 256) % 31);
    png_drop(&file, "IDAT");
    png_insert(&file, at, "IDAT", stream + half, size - half);
    png_insert(&file, at, "tEXt", "Comment\0between", 15);
    png_insert(&file, at, "IDAT", stream, half);
    free(stream);
    check_same(&png, &file);
    bytes_free(&file);
}

static void test_png_kinds(void)
{
    struct codec_bytes file = make_picture(&png);
    png_insert(&file, 8, "CgBI", "\x50\0\x20\6", 4);
    check_refused(&file, IW_IMAGE_FORMAT_UNSUPPORTED, "iPhone");
    png_drop(&file, "CgBI");
    size_t at = png_at(&file, "IDAT");
    png_insert(&file, at, "NeWs", "x", 1);
    check_refused(&file, IW_IMAGE_FORMAT_UNSUPPORTED, "NeWs");
    file.data[at + 8] ^= 1; /* damage in the stream is an error */
    check_same(&png, &file);
    bytes_free(&file);
    file = make_picture(&colored);
    file.data[png_at(&file, "PLTE") + 9] ^= 1;
    check_refused(&file, IW_IMAGE_CORRUPT, "damaged");
    bytes_free(&file);
}

/*
 * An animation has two frames, or one besides the still image. It is refused with its number of
 * frames; read-only work decodes the still image. Anything less is a still picture.
 */
static void test_png_animation(void)
{
    static const char content[26];
    static const struct {
        const char *before, *after; /* names of chunks around the pixels */
        const char *word;           /* NULL: taken */
    } cases[] = {
        {"acTL", "", NULL},     {"acTLfcTL", "", NULL},           {"fcTL", "fcTLfdAT", NULL},
        {"acTL", "fdAT", NULL}, {"acTL", "fcTLfdAT", "1 frame,"}, {"acTLfcTL", "fcTLfdAT", "2 frames,"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct codec_bytes file = make_picture(&png);
        struct codec_picture picture;
        for (size_t n = 0; n < strlen(cases[i].before); n += 4)
            png_insert(&file, png_at(&file, "IDAT"), cases[i].before + n, content, sizeof content);
        for (size_t n = 0; n < strlen(cases[i].after); n += 4)
            png_insert(&file, png_at(&file, "IEND"), cases[i].after + n, content, sizeof content);
        if (cases[i].word == NULL)
            check_same(&png, &file);
        else
            check_refused(&file, IW_IMAGE_FORMAT_UNSUPPORTED, cases[i].word);
        CU_ASSERT_EQUAL(decode(&file, &read_only, &picture), IW_OK);
        codec_picture_free(&picture);
        bytes_free(&file);
    }
}

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

/* A small change of a page of few colours takes less without filters, one of gradients takes more. */
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
    CU_ASSERT_PTR_NOT_NULL(strstr(context.notes->sentence, "4 levels of grey"));
    CU_ASSERT_EQUAL(again.data[24], 8);
    codec_picture_free(&picture);
    bytes_free(&again);
    bytes_free(&file);
}

/* ---- WebP ---- */

static void put_size(struct codec_bytes *file, size_t at, size_t size)
{
    for (int i = 0; i < 4; i++)
        file->data[at + (size_t)i] = (unsigned char)(size >> (8 * i));
}

/* The picture's own header overrides the container. */
static void test_webp_container(void)
{
    static const struct made_spec *const specs[] = {&webp, &clear_webp, &exact_webp};
    for (size_t i = 0; i < 3; i++) {
        struct codec_bytes file = make_picture(specs[i]);
        put_size(&file, 4, 4); /* file size */
        check_same(specs[i], &file);
        put_size(&file, 4, 0x7ffffffe);
        check_same(specs[i], &file);
        put_size(&file, 4, file.size - 8);
        file.data[24] = file.data[25] = 0xff; /* canvas */
        check_same(specs[i], &file);
        file.data[20] = 0x02; /* flags: an animation, no profile, no EXIF, no alpha plane */
        if (i == 0 || i == 1)
            check_same(specs[i], &file);
        bytes_free(&file);
    }
}

/* Pieces without padding, with wrong sizes, and truncated. */
static void test_webp_pieces(void)
{
    struct codec_bytes file = make_picture(&webp), again;
    size_t exif = find(&file, "EXIF", 4), private = find(&file, "priv", 4);
    put_size(&file, private + 4, 0x00ffffff);
    check_same(&webp, &file);
    again = recode(&file);
    CU_ASSERT(!holds(&again, made_private));
    CU_ASSERT(holds(&again, made_xmp));
    bytes_free(&again);
    put_size(&file, find(&file, "ICCP", 4) + 4, 0x00ffffff); /* before the picture */
    check_same(&webp, &file);
    bytes_free(&file);
    file = make_picture(&webp);
    replace(&file, exif + 8 + made_exif_bytes, made_exif_bytes & 1, "", 0);
    put_size(&file, exif + 4, made_exif_bytes);
    replace(&file, exif + 8, 0, "Exif\0", 5); /* an odd size without padding */
    put_size(&file, exif + 4, made_exif_bytes + 5);
    check_same(&webp, &file);
    again = recode(&file);
    CU_ASSERT(holds(&again, made_xmp));
    bytes_free(&again);
    file.size = exif + 10;
    check_same(&webp, &file);
    file.size = (find(&file, "VP8 ", 4) + exif) / 2;
    check_refused(&file, IW_IMAGE_CORRUPT, "cut off after");
    bytes_free(&file);
}

static void test_webp_animation(void)
{
    struct made_spec spec = webp;
    struct codec_picture picture;
    spec.is_animated = true;
    struct codec_bytes file = make_picture(&spec);
    check_refused(&file, IW_IMAGE_FORMAT_UNSUPPORTED, "2 frames");
    CU_ASSERT_EQUAL_FATAL(decode(&file, &read_only, &picture), IW_OK);
    CU_ASSERT_EQUAL(picture.image.width_px, 97);
    codec_picture_free(&picture);
    /* Without its second frame it is a picture. */
    size_t first = find(&file, "ANMF", 4), size = 8;
    for (int i = 0; i < 3; i++)
        size += (size_t)file.data[first + 4 + (size_t)i] << (8 * i);
    replace(&file, first + size, size, "", 0);
    put_size(&file, 4, file.size - 8);
    check_same(&webp, &file);
    bytes_free(&file);
}

/* ---- all ---- */

static void test_orientation_types(void)
{
    static const struct {
        unsigned char type;
        unsigned char value[4];
        unsigned orientation;
    } entries[] = {{3, {6, 0, 0, 0}, 6}, {4, {6, 0, 0, 0}, 6}, {1, {8, 0, 0, 0}, 8},
                   {2, {6, 0, 0, 0}, 1}, {4, {6, 0, 1, 0}, 1}, {3, {9, 0, 0, 0}, 1}};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        struct codec_bytes file = make_picture(&jpeg);
        struct codec_picture picture;
        size_t entry = find(&file, "II*\0\x08\0\0\0", 8) + 10;
        file.data[entry + 2] = entries[i].type;
        memcpy(file.data + entry + 8, entries[i].value, 4);
        CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
        CU_ASSERT_EQUAL(driver_orientation(&picture), entries[i].orientation);
        codec_picture_free(&picture);
        bytes_free(&file);
    }
}

/* ---- colour spaces ---- */

/* An iCCP chunk's data: a grey profile of linear light. */
static size_t grey_profile_put(unsigned char *data, size_t room)
{
    unsigned char profile[4096];
    cmsUInt32Number size = sizeof profile;
    uLongf packed = (uLongf)room - 3;
    cmsToneCurve *curve = cmsBuildGamma(NULL, 1);
    cmsHPROFILE grey = cmsCreateGrayProfile(cmsD50_xyY(), curve);
    CU_ASSERT_FATAL(cmsSaveProfileToMem(grey, profile, &size));
    cmsCloseProfile(grey);
    cmsFreeToneCurve(curve);
    memcpy(data, "g\0", 3);
    CU_ASSERT_EQUAL_FATAL(compress(data + 3, &packed, profile, size), Z_OK);
    return packed + 3;
}

static void chunk_insert(struct codec_bytes *file, const char *name, const char *data, size_t size)
{
    unsigned char icc[4096];
    size_t icc_bytes = grey_profile_put(icc, sizeof icc);
    if (name == NULL)
        return;
    bool is_icc = strcmp(name, "iCCP") == 0;
    png_insert(file, png_at(file, "IDAT"), name, is_icc ? (const char *)icc : data,
               is_icc ? icc_bytes : size);
}

/* cICP counts before iCCP, sRGB, and gAMA with cHRM. A grey profile counts for a grey picture only. */
static void test_thumbnail_colors(void)
{
    static const struct made_spec rgb = {"RGB", FORMAT_PNG, 16, 16, 3, false, .depth_bits = 8};
    static const struct made_spec grey = {"grey", FORMAT_PNG, 16, 16, 1, false, .depth_bits = 8};
    enum { gamma_bytes = 4, codes_bytes = 4, chroma_bytes = 32 };
    static const char linear[] = "\0\1\x86\xa0", /* 64: 137 in sRGB */
        exchanged[] = "\0\0\x7a\x26\0\0\x80\x84\0\0\x75\x30\0\0\xea\x60\0\0\xfa\0\0\0\x80\xe8"
                      "\0\0\x3a\x98\0\0\x17\x70"; /* red and green */
    static const struct {
        const struct made_spec *spec;
        struct {
            const char *name, *data;
            size_t size;
        } chunks[2];
        unsigned char color[3], wanted[3];
    } cases[] = {
        {&rgb, {{"gAMA", linear, gamma_bytes}}, {64, 64, 64}, {137, 137, 137}},
        {&grey, {{"gAMA", linear, gamma_bytes}}, {64, 64, 64}, {137, 137, 137}},
        {&rgb, {{"gAMA", "\0\0\0\0", gamma_bytes}}, {64, 64, 64}, {64, 64, 64}},
        {&rgb, {{"gAMA", linear, gamma_bytes}, {"sRGB", "", 1}}, {64, 64, 64}, {64, 64, 64}},
        {&rgb, {{"cHRM", exchanged, chroma_bytes}}, {200, 100, 50}, {100, 200, 50}},
        {&rgb, {{"iCCP", "", 0}}, {64, 64, 64}, {64, 64, 64}},
        {&grey, {{"iCCP", "", 0}}, {64, 64, 64}, {137, 137, 137}},
        {&rgb, {{"iCCP", "", 0}, {"gAMA", linear, gamma_bytes}}, {64, 64, 64}, {137, 137, 137}},
        {&grey, {{"iCCP", "", 0}, {"cICP", "\1\15\0\1", codes_bytes}}, {64, 64, 64}, {64, 64, 64}},
        {&rgb, {{"cICP", "\1\10\0\1", codes_bytes}, {"sRGB", "", 1}}, {64, 64, 64}, {137, 137, 137}},
        {&rgb, {{"cICP", "\2\2\0\1", codes_bytes}, {"gAMA", linear, 4}}, {64, 64, 64}, {137, 137, 137}},
        /* PQ: 102 and 203 cd/m2. HLG: white is at 75 %. */
        {&rgb, {{"cICP", "\11\20\0\1", codes_bytes}}, {130, 130, 130}, {188, 188, 188}},
        {&rgb, {{"cICP", "\11\20\0\1", codes_bytes}}, {149, 149, 149}, {255, 255, 255}},
        {&grey, {{"cICP", "\11\22\0\1", codes_bytes}}, {192, 192, 192}, {255, 255, 255}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct codec_bytes file = make_picture(cases[i].spec);
        struct codec_picture picture;
        for (int n = 0; n < 2; n++)
            chunk_insert(&file, cases[i].chunks[n].name, cases[i].chunks[n].data, cases[i].chunks[n].size);
        CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
        unsigned char *samples = picture.image.pixels;
        for (size_t at = 0; at < picture.image.height_px * picture.image.stride_bytes; at++)
            samples[at] = cases[i].color[at % picture.image.channels];
        unsigned char *shown = thumbnail_rgb(&picture, 8, 8);
        for (int c = 0; c < 3; c++)
            if (abs(shown[c] - cases[i].wanted[c]) > 1) {
                printf("  case %zu: sample %d is %u, not %u\n", i, c, shown[c], cases[i].wanted[c]);
                CU_FAIL("the thumbnail has other colours");
            }
        free(shown);
        codec_picture_free(&picture);
        bytes_free(&file);
    }
}

/* Set the grey samples to 64, expand them, and decode the encoded result. */
static struct codec_picture expanded(const struct codec_bytes *file, struct codec_bytes *again)
{
    static const struct codec_limits little = {.memory_max_bytes = 1000};
    struct codec_picture picture;
    CU_ASSERT_EQUAL_FATAL(decode(file, &no_limits, &picture), IW_OK);
    size_t bytes = picture.image.depth_bits / 8, step = bytes * picture.image.channels;
    unsigned char *samples = picture.image.pixels;
    for (size_t at = 0; at < picture.image.height_px * picture.image.stride_bytes; at += step)
        memset(samples + at, 64, bytes);
    CU_ASSERT_FALSE(color_expand(&picture, &little));
    CU_ASSERT_TRUE_FATAL(color_expand(&picture, &no_limits));
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, again), IW_OK);
    codec_picture_free(&picture);
    CU_ASSERT_EQUAL_FATAL(decode(again, &no_limits, &picture), IW_OK);
    return picture;
}

/* A grey profile is applied and removed. Adobe's marker says how the components are stored. */
static void test_grey_becomes_colors(void)
{
    static const struct made_spec specs[] = {
        {"PNG", FORMAT_PNG, 16, 16, 1, false, .depth_bits = 8},
        {"PNG with a profile", FORMAT_PNG, 16, 16, 1, false, .depth_bits = 8},
        {"PNG of 16 bits with alpha and a profile", FORMAT_PNG, 16, 16, 2, false, .depth_bits = 16},
        {"JPEG", FORMAT_JPEG, 16, 16, 1, true, .quality = 95},
    };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct codec_bytes file = make_picture(&specs[i]), again;
        bool has_profile = i == 1 || i == 2;
        if (specs[i].format == FORMAT_PNG)
            chunk_insert(&file, "bKGD", "\0\1", 2);
        else
            replace(&file, 2, 0,
                    "\xff\xee\0\x0e"
                    "Adobe\0\x64\0\0\0\0",
                    16);
        if (has_profile)
            chunk_insert(&file, "iCCP", "", 0);
        struct codec_picture picture = expanded(&file, &again);
        const unsigned char *samples = picture.image.pixels;
        size_t bytes = picture.image.depth_bits / 8;
        CU_ASSERT_EQUAL(picture.image.channels, specs[i].channels + 2);
        for (size_t c = 0; c < 3; c++)
            CU_ASSERT(abs(samples[c * bytes + bytes - 1] - (has_profile ? 137 : 64)) <= 1);
        CU_ASSERT(!holds(&again, "iCCP") && !holds(&again, "bKGD"));
        codec_picture_free(&picture);
        bytes_free(&file);
        bytes_free(&again);
    }
}

/* An encoder's error is a fault of the service. */
static void test_encoder_errors_are_ours(void)
{
    static const struct made_spec *const specs[] = {&jpeg, &png, &webp};
    for (size_t i = 0; i < 3; i++) {
        struct codec_bytes file = make_picture(specs[i]), again;
        struct codec_picture picture;
        CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
        picture.image.height_px = 0;
        CU_ASSERT_EQUAL(codec_encode(&context, &picture, &again), IW_SERVER_INTERNAL_ERROR);
        CU_ASSERT_PTR_NOT_NULL(context.cause);
        codec_picture_free(&picture);
        bytes_free(&file);
    }
}

static void test_other_formats(void)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *word;
    } files[] = {
        {"\0\0\0\x18"
         "ftypheic\0\0\0\0mif1heic",
         24, "HEIC file (iPhone photo). Export it as JPEG"},
        {"\0\0\0\x1c"
         "ftypavif\0\0\0\0avifmif1",
         24, "AVIF"},
        {"\0\0\0\x18"
         "ftypmif1\0\0\0\0mif1heic",
         24, "HEIF"},
        {"\0\0\0\x14"
         "ftypqt  \0\0\0\0qt  ",
         20, "video"},
        {"GIF89a\1\0\1\0", 10, "GIF"},
        {"II*\0\x08\0\0\0\0\0", 10, "TIFF"},
        {"MM\0*\0\0\0\x08\0\0", 10, "TIFF"},
        {"II*\0\x10\0\0\0CR\2\0", 12, "CR2"},
        {"\0\0\0\x0cJXL \r\n\x87\n", 12, "JPEG XL"},
        {"\xff\x0a\0\0", 4, "JPEG XL"},
        {"\0\0\0\x0cjP  \r\n\x87\n", 12, "JPEG 2000"},
        {"BM\x36\0\0\0\0\0\0\0", 10, "BMP"},
        {"8BPS\0\1", 6, "Photoshop"},
        {"%PDF-1.7", 8, "PDF"},
        {"PK\3\4\x14\0", 6, "ZIP"},
        {"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- made by hand -->\n<svg>", 67, "SVG"},
        {"\xef\xbb\xbf\n<!DOCTYPE html><html>", 25, "HTML"},
        {"/9j/4AAQSkZJRg", 14, "Base64"},
        {"\x89PNG\n\x1a\n\0\0\0\r", 11, "text mode"},
        {"\t"
         "PNG\r\n\x1a\n",
         8, "text mode"},
        {"\xc2\x89PNG\r\n\x1a\n", 9, "read it as text"},
        {"?PNG\r\n\x1a\n", 8, "read it as text"},
        {"????\0\x10JFIF", 10, "read it as text"},
        {"RIFF\xc2\x81\x7f\0\0WEBPVP8 ", 17, "read it as text"},
        {"\xff\xfe\x20\x25\0", 5, "UTF-16"},
        {"\r\n\xff\xd8\xff\xe0\0\x10", 8, "stand before the JPEG image. Send only the bytes"},
        {"\xef\xbb\xbf\x89PNG\r\n\x1a\n", 11, "stand before the PNG image"},
        {"<br />\n<b>Warning</b>:  x\nRIFF\1\2\3\4WEBPVP8 ", 43, "stand before the WebP image"},
        {"<br />\n<b>Warning</b>:  Undefined variable", 42, "PHP"},
        {"RIFF\1\2\3\4WAVEfmt ", 16, "not a JPEG, PNG or WebP"},
        {"", 0, "0 bytes"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct codec_bytes file = {(unsigned char *)(uintptr_t)files[i].bytes, files[i].size};
        check_refused(&file, IW_IMAGE_FORMAT_UNSUPPORTED, files[i].word);
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"JPEG: a sequential scan of 0,0", test_jpeg_scan_of_zeros},
        {"JPEG: odd form", test_jpeg_of_odd_form},
        {"JPEG: scans in odd order", test_jpeg_scans_in_odd_order},
        {"JPEG: a quantiser of zero", test_jpeg_quantiser_of_zero},
        {"JPEG: sampling factors are reduced", test_jpeg_factors_reduced},
        {"JPEG: scans without an end marker", test_jpeg_scans_without_end},
        {"JPEG: lost pixels", test_jpeg_lost_pixels},
        {"JPEG: stray bytes", test_jpeg_stray_bytes},
        {"JPEG, WebP: a transfer in text mode", test_text_mode},
        {"JPEG, WebP: flat pictures", test_flat_pictures},
        {"JPEG: kinds refused", test_jpeg_kinds},
        {"CMYK: both ways to count", test_cmyk_ways},
        {"CMYK: changes are carried into the inks", test_cmyk_carries},
        {"CMYK: stays CMYK", test_cmyk_stays},
        {"PNG: a damaged text", test_png_damaged_text},
        {"PNG: transparency that does not fit", test_png_transparency_that_does_not_fit},
        {"PNG: without its end", test_png_without_end},
        {"PNG: one checksum of two", test_png_checksums},
        {"PNG: pixels in odd pieces", test_png_odd_stream},
        {"PNG: kinds refused", test_png_kinds},
        {"PNG: animations", test_png_animation},
        {"PNG: a palette that fits", test_png_palette},
        {"PNG: a palette of greys", test_png_palette_of_greys},
        {"PNG: few colours grow little", test_png_growth},
        {"PNG: a palette that does not", test_png_palette_expanded},
        {"PNG: grey that does not fit", test_png_grey_expanded},
        {"WebP: the container is wrong", test_webp_container},
        {"WebP: pieces are damaged", test_webp_pieces},
        {"WebP: animations", test_webp_animation},
        {"orientation of three types", test_orientation_types},
        {"colours of thumbnails", test_thumbnail_colors},
        {"grey becomes colours", test_grey_becomes_colors},
        {"errors of encoders are ours", test_encoder_errors_are_ours},
        {"other formats are named", test_other_formats},
        CU_TEST_INFO_NULL,
    };
    context_init(&context, arena_new(0), NULL);
    int code = runner_run("codec damage", tests);
    arena_free(context.arena);
    return code;
}
