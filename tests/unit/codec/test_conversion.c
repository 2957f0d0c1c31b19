/* Files that were converted in transfer. */
#include <string.h>

#include "codec/conversion.h"
#include "damage_maker.h"
#include "model/sniff.h"

/* Makes the picture with noise, so that the compressed bytes resemble those of a photograph. */
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

/* A conversion of one byte or of a pair, by a transfer in text mode or by a program. */
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

/* Replaces each byte above 0x7F by two, as in UTF-8, or clears the highest bit. */
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

/* The decoders accept such files but return garbage. */
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
            /* The first bytes of a WebP stay, because they name the format. */
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

/* Flat pictures compress to repeated bytes, which must not be taken for a conversion. */
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

int main(void)
{
    static CU_TestInfo tests[] = {
        {"JPEG, WebP: a transfer in text mode", test_text_mode},
        {"JPEG, WebP: flat pictures", test_flat_pictures},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("conversions", tests);
}
