/* Damage and unusual forms of any format: a file is decoded as usual, or refused with the remedy. */
#include <string.h>

#include "codec/driver.h"
#include "damage_maker.h"

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

/* A failure of an encoder is an error of the service, not of the file. */
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
        {"\r\n\xff\xd8\xff\xe0\0\x10", 8, "stand before the JPEG picture. Send only the bytes"},
        {"\xef\xbb\xbf\x89PNG\r\n\x1a\n", 11, "stand before the PNG picture"},
        {"<br />\n<b>Warning</b>:  x\nRIFF\1\2\3\4WEBPVP8 ", 43, "stand before the WebP picture"},
        {"<br />\n<b>Warning</b>:  Undefined variable", 42, "PHP"},
        {"RIFF\1\2\3\4WAVEfmt ", 16, "picture, by its first bytes"},
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
        {"orientation of three types", test_orientation_types},
        {"errors of encoders are ours", test_encoder_errors_are_ours},
        {"other formats are named", test_other_formats},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("codec damage", tests);
}
