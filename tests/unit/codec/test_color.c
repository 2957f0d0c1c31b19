/* Colour spaces of files, and grey that becomes colours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lcms2.h>
#include <zlib.h>

#include "codec/color.h"
#include "codec/thumbnail.h"
#include "damage_maker.h"

/* Writes the data of an iCCP chunk: a grey profile of linear light. */
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

/* cICP has priority over iCCP, iCCP over sRGB, and sRGB over gAMA with cHRM. A grey profile applies to a grey
 * picture only. */
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

/* Sets the grey samples to 64, expands them to colours, and decodes the encoded result. */
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

int main(void)
{
    static CU_TestInfo tests[] = {
        {"colours of thumbnails", test_thumbnail_colors},
        {"grey becomes colours", test_grey_becomes_colors},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("colours", tests);
}
