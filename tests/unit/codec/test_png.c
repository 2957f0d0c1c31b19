/* PNG files with damaged chunks, of odd form, and animations. */
#include <stdlib.h>
#include <string.h>

#include "damage_maker.h"

static void png_drop(struct codec_bytes *file, const char *name)
{
    size_t at = png_at(file, name);
    replace(file, at, png_bytes(file, at), "", 0);
}

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

/* Readers drop a colour space that follows the palette. */
static void test_png_colour_space_before_palette(void)
{
    static const unsigned char gamma[4] = {0, 1, 0x86, 0xA0};
    const struct made_spec *specs[] = {&colored, &png};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct codec_bytes file = make_picture(specs[i]), again;
        if (!holds(&file, "gAMA"))
            png_insert(&file, png_at(&file, holds(&file, "PLTE") ? "PLTE" : "IDAT"), "gAMA", gamma,
                       sizeof gamma);
        again = recode(&file);
        CU_ASSERT(holds(&again, "gAMA"));
        if (holds(&again, "PLTE"))
            CU_ASSERT(png_at(&again, "gAMA") < png_at(&again, "PLTE"));
        CU_ASSERT(holds(&again, "PLTE") || specs[i] != &colored);
        bytes_free(&again);
        bytes_free(&file);
    }
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
    /* A damaged tRNS chunk is ignored, too. */
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
    file.size = end - 5; /* inside the checksum of the stream */
    check_refused(&file, IW_IMAGE_CORRUPT, "cut off after");
    file.size = end;
    replace(&file, end, 0, "\0\0\0\4\1\2\3\4garbage behind the pixels", 34);
    check_same(&png, &file);
    bytes_free(&file);
}

/* The data is accepted if one of the two checksums is right. */
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

/* The pixel chunks have a text between them, and the stream declares a smaller window than it uses. */
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
    file.data[at + 8] ^= 1; /* a wrong checksum: the chunk is dropped */
    check_same(&png, &file);
    bytes_free(&file);
    file = make_picture(&colored);
    file.data[png_at(&file, "PLTE") + 9] ^= 1;
    check_refused(&file, IW_IMAGE_CORRUPT, "damaged");
    bytes_free(&file);
}

/*
 * An animation has two frames, or one frame besides the still picture. It is refused with the number of
 * frames; read-only work decodes the still picture. A file with fewer frames is a still picture.
 */
static void test_png_animation(void)
{
    static const char content[26];
    static const struct {
        const char *before, *after; /* names of chunks around the pixels */
        const char *word;           /* NULL if the file is accepted */
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

int main(void)
{
    static CU_TestInfo tests[] = {
        {"PNG: a damaged text", test_png_damaged_text},
        {"PNG: transparency that does not fit", test_png_transparency_that_does_not_fit},
        {"PNG: without its end", test_png_without_end},
        {"PNG: one checksum of two", test_png_checksums},
        {"PNG: pixels in odd pieces", test_png_odd_stream},
        {"PNG: a colour space stands before the palette", test_png_colour_space_before_palette},
        {"PNG: kinds refused", test_png_kinds},
        {"PNG: animations", test_png_animation},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("PNG", tests);
}
