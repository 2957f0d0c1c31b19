/* JPEG files of odd form, and with lost pixels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "damage_maker.h"

static const struct made_spec progressive = {
    "progressive", FORMAT_JPEG, 97, 71, 3, false, .sampling = 11, .quality = 85, .is_progressive = true};

/* Some phones write the spectral selection 0,0 where it is meaningless. */
static void test_jpeg_scan_of_zeros(void)
{
    struct codec_bytes file = make_picture(&jpeg);
    size_t at = find(&file, "\xff\xda", 2);
    CU_ASSERT_EQUAL(file.data[at + 12], 63);
    file.data[at + 12] = 0;
    check_same(&jpeg, &file);
    bytes_free(&file);
}

/* libjpeg warns about these forms, but no pixel is lost. */
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
    /* Each scan has a separate Huffman table; the first two tables are exchanged. */
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

/* Sampling factors too large for an interleaved scan are divided by a common divisor. */
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

/* A file with one scan per component and no end marker is complete if each component had a scan. */
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

/* Pixels are missing or doubtful. */
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

/* Padding of one value after the scan is harmless, and so are the few bytes of test_jpeg_of_odd_form. */
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
        {"JPEG: kinds refused", test_jpeg_kinds},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("JPEG", tests);
}
