/* WebP files with damaged pieces, and animations. */
#include "damage_maker.h"

static const struct made_spec clear_webp = {"WebP alpha", FORMAT_WEBP, 97, 71, 4, true, .quality = 80};
static const struct made_spec exact_webp = {"WebP lossless", FORMAT_WEBP,        97, 71, 4, true,
                                            .quality = 50,   .is_lossless = true};

static void put_size(struct codec_bytes *file, size_t at, size_t size)
{
    for (int i = 0; i < 4; i++)
        file->data[at + (size_t)i] = (unsigned char)(size >> (8 * i));
}

/* The header of the picture overrides that of the container. */
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

/* Pieces without padding, with wrong sizes, and truncated pieces. */
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
    /* Without the second frame, the file is a still picture. */
    size_t first = find(&file, "ANMF", 4), size = 8;
    for (int i = 0; i < 3; i++)
        size += (size_t)file.data[first + 4 + (size_t)i] << (8 * i);
    replace(&file, first + size, size, "", 0);
    put_size(&file, 4, file.size - 8);
    check_same(&webp, &file);
    bytes_free(&file);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"WebP: the container is wrong", test_webp_container},
        {"WebP: pieces are damaged", test_webp_pieces},
        {"WebP: animations", test_webp_animation},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("WebP", tests);
}
