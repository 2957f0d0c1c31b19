#include "damage_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

const struct codec_limits no_limits;
const struct codec_limits read_only = {.engine.is_read_only = true};

const struct made_spec jpeg = {"JPEG", FORMAT_JPEG, 97, 71, 3, true, .sampling = 22, .quality = 85};
const struct made_spec png = {"PNG", FORMAT_PNG, 48, 40, 3, true, .depth_bits = 8};
const struct made_spec colored = {"PNG palette",   FORMAT_PNG,        97, 71, 1, false,
                                  .depth_bits = 4, .is_palette = true};
const struct made_spec webp = {"WebP", FORMAT_WEBP, 97, 71, 3, true, .quality = 80};

void replace(struct codec_bytes *file, size_t at, size_t gone, const void *data, size_t size)
{
    unsigned char *made = malloc(file->size - gone + size + 1);
    memcpy(made, file->data, at);
    memcpy(made + at, data, size);
    memcpy(made + at + size, file->data + at + gone, file->size - at - gone);
    free(file->data);
    file->data = made;
    file->size += size - gone;
}

size_t find(const struct codec_bytes *file, const void *text, size_t size)
{
    unsigned char *found = memmem(file->data, file->size, text, size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    return (size_t)(found - file->data);
}

bool holds(const struct codec_bytes *file, const char *text)
{
    return memmem(file->data, file->size, text, strlen(text)) != NULL;
}

size_t png_at(const struct codec_bytes *file, const char *name)
{
    return find(file, name, 4) - 4;
}

size_t png_bytes(const struct codec_bytes *file, size_t at)
{
    const unsigned char *length = file->data + at;
    return 12 + ((size_t)length[0] << 24 | (size_t)length[1] << 16 | (size_t)length[2] << 8 | length[3]);
}

void png_insert(struct codec_bytes *file, size_t at, const char *name, const void *data, size_t size)
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

void png_seal(struct codec_bytes *file, size_t at)
{
    size_t size = png_bytes(file, at);
    uint32_t sum = (uint32_t)crc32(0, file->data + at + 4, (uInt)size - 8);
    for (int i = 0; i < 4; i++)
        file->data[at + size - 4 + (size_t)i] = (unsigned char)(sum >> (24 - 8 * i));
}

enum iw_error decode(const struct codec_bytes *file, const struct codec_limits *limits,
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

void check_same(const struct made_spec *spec, const struct codec_bytes *file)
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

void check_refused(const struct codec_bytes *file, enum iw_error wanted, const char *word)
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

struct codec_bytes recode(const struct codec_bytes *file)
{
    struct codec_picture picture;
    struct codec_bytes again = {NULL, 0};
    CU_ASSERT_EQUAL_FATAL(decode(file, &no_limits, &picture), IW_OK);
    CU_ASSERT_EQUAL_FATAL(codec_encode(&context, &picture, &again), IW_OK);
    codec_picture_free(&picture);
    return again;
}
