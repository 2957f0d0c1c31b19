/* The watermark engine embeds, finds and reads marks. */
#include "engine/watermark/watermark.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/watermark/bend.h"
#include "engine/watermark/lattice.h"
#include "engine/watermark/likeness.h"
#include "engine/watermark/plane.h"
#include "engine/watermark/registration.h"
#include "watermark_maker.h"

/*
 * Sanitizers and valgrind (TEST_FEW) are ten times slower, so counts are reduced.
 * IMGWARD_TEST_FULL=1 runs all thousand.
 */
enum { properties_count = 40, strangers_count = 6 };
#if defined __SANITIZE_ADDRESS__ || defined TEST_FEW
enum { poses_count = 6 };
#else
enum { poses_count = 8 };
#endif

static const uint8_t other_key[WATERMARK_KEY_BYTES] = {7, 1, 99, 4, 250, 4};

static void embed_or_fail(struct image *image, const uint8_t *key, uint64_t number)
{
    struct watermark_report report;

    CU_ASSERT_EQUAL(watermark_embed(image, key, number, NULL, &report), IW_OK);
}

/* Reads with an original. The picture has at most one number. */
static enum iw_error extract_informed(const struct image *image, const struct image *original,
                                      const uint8_t *key, uint64_t *number, struct watermark_report *report)
{
    struct watermark_numbers found;
    enum iw_error error = watermark_extract(image, original, key, NULL, &found, report);

    CU_ASSERT_EQUAL(found.count, error == IW_OK);
    *number = error == IW_OK ? found.numbers[0] : *number;
    return error;
}

static enum iw_error extract(const struct image *image, const uint8_t *key, uint64_t *number,
                             struct watermark_report *report)
{
    return extract_informed(image, NULL, key, number, report);
}

static bool reads(const struct image *image, const uint8_t *key, uint64_t number)
{
    uint64_t seen = 0;

    return extract(image, key, &seen, NULL) == IW_OK && seen == number;
}

/* Numbers are read for any key, kind and size of picture. */
static void embedded_numbers_are_read(void)
{
    static const uint32_t shapes[4][2] = {{3, 8}, {3, 8}, {1, 8}, {4, 16}};
    const char *full = getenv("IMGWARD_TEST_FULL");
    int count = full != NULL && strcmp(full, "1") == 0 ? 1000 : properties_count;
    uint64_t seed = 2026;

    for (int i = 0; i < count; i++) {
        uint32_t width = 256 + (uint32_t)(64 * random_uniform(&seed));
        uint32_t height = 256 + (uint32_t)(64 * random_uniform(&seed));
        struct image image =
            texture_make(width, height, shapes[i % 4][0], shapes[i % 4][1], random_number(&seed));
        struct image original = image_copy(&image);
        uint64_t number = random_number(&seed);
        uint8_t key[WATERMARK_KEY_BYTES];

        for (unsigned byte = 0; byte < sizeof key; byte++)
            key[byte] = (uint8_t)(256 * random_uniform(&seed));
        embed_or_fail(&image, key, number);
        CU_ASSERT(reads(&image, key, number));
        CU_ASSERT(image_error(&image, &original) < 255.0 * 255.0 * pow(10, -4.0));
        free(original.pixels);
        free(image.pixels);
    }
}

/* Marks are found after random rotations, scales, stretches, mirrors and crops. */
static void poses_are_found(void)
{
    uint64_t seed = 31;

    for (int i = 0; i < poses_count; i++) {
        struct image image = texture_make(520, 480, 3, 8, random_number(&seed));
        double angle = 2 * M_PI * random_uniform(&seed), scale = 0.6 + 1.0 * random_uniform(&seed);
        double mirror = random_uniform(&seed) < 0.3 ? -1 : 1;
        const double matrix[4] = {mirror * scale * cos(angle), -scale * sin(angle),
                                  mirror * scale * sin(angle), scale * cos(angle)};
        const double shift[2] = {40 * random_uniform(&seed) - 20, 40 * random_uniform(&seed) - 20};
        uint64_t number = random_number(&seed), seen = 0;
        struct watermark_report report;

        embed_or_fail(&image, test_key, number);
        struct image turned =
            image_warp(&image, matrix, shift, (uint32_t)(400 / scale), (uint32_t)(360 / scale));
        CU_ASSERT_EQUAL(extract(&turned, test_key, &seen, &report), IW_OK);
        CU_ASSERT_EQUAL(seen, number);
        CU_ASSERT_DOUBLE_EQUAL(report.scale * scale, 1, 0.01);
        CU_ASSERT_EQUAL(report.is_mirrored, mirror < 0);
        free(turned.pixels);
        free(image.pixels);
    }
}

static void stretched_pictures_are_read(void)
{
    static const double bends[][4] = {
        {0.9, 0, 0, 1},      /* wide */
        {1, 0, 0, 1 / 1.12}, /* tall */
        {1 / 1.4, 0, 0, 1},  /* far wider, */
        {1, 0, 0, 0.75},     /* far taller */
        {1, 0.1, 0, 1},      /* sheared along the rows, */
        {1, 0, -0.1, 1},     /* and along the columns */
    };
    const double shift[2] = {3, -2};
    struct image image = texture_make(480, 420, 3, 8, 5);

    embed_or_fail(&image, test_key, 99);
    for (size_t i = 0; i < sizeof bends / sizeof bends[0]; i++) {
        struct image bent = image_warp(&image, bends[i], shift, 470, 410);

        CU_ASSERT(reads(&bent, test_key, 99));
        free(bent.pixels);
    }
    free(image.pixels);
}

/* Reads near a pose that fits only at the middle of the picture. */
static bool reads_bent(const struct image *image, const uint8_t *key, uint64_t number)
{
    static const struct pose pose = {.matrix = {1, 0, 0, 1}};
    float weights[lattice_tones];
    struct workspace workspace;
    struct whitened whitened;
    struct reader reader;
    struct plane plane;
    struct bend bend;

    for (unsigned i = 0; i < lattice_tones; i++)
        weights[i] = 1;
    workspace_init(&workspace);
    CU_ASSERT_FATAL(reader_init(&reader, key, LATTICE_OVERLAY, &workspace));
    CU_ASSERT_FATAL(plane_read(image, PLANE_LUMA, 1, &workspace, &plane));
    CU_ASSERT_FATAL(reader_whiten(&reader, &plane, &whitened));
    CU_ASSERT_FATAL(bend_init(&bend, &reader, &whitened, &plane));
    bool is_read = bend_read(&bend, &pose, weights) && reader.number == number;
    bend_fini(&bend);
    reader_fini(&reader);
    workspace_fini(&workspace);
    return is_read;
}

static void perspective_is_undone(void)
{
    static const double slants[][2] = {{0, 0.0003}, {0.0002, -0.0004}};
    struct image image = texture_make(800, 640, 3, 8, 13);
    struct image plain = image_copy(&image);

    embed_or_fail(&image, test_key, 99);
    for (size_t i = 0; i < sizeof slants / sizeof slants[0]; i++) {
        struct image bent = image_slant(&image, slants[i], 760, 600);
        struct image unmarked = image_slant(&plain, slants[i], 760, 600);

        CU_ASSERT(reads_bent(&bent, test_key, 99));
        CU_ASSERT_FALSE(reads_bent(&bent, other_key, 99));
        CU_ASSERT_FALSE(reads_bent(&unmarked, test_key, 99));
        free(bent.pixels);
        free(unmarked.pixels);
    }
    free(plain.pixels);
    free(image.pixels);
}

/* Nothing is read from an unmarked picture, or with another key. */
static void strangers_read_nothing(void)
{
    uint64_t seed = 41;

    for (int i = 0; i < strangers_count; i++) {
        struct image image = texture_make(280, 300, 3, 8, random_number(&seed));
        uint64_t seen = 0;

        CU_ASSERT_EQUAL(extract(&image, test_key, &seen, NULL), IW_WATERMARK_NOT_FOUND);
        embed_or_fail(&image, test_key, random_number(&seed));
        uint8_t other[WATERMARK_KEY_BYTES] = {7, 1, 99, 4, 250, 3, (uint8_t)(i + 1)};
        CU_ASSERT_EQUAL(extract(&image, other, &seen, NULL), IW_WATERMARK_NOT_FOUND);
        CU_ASSERT_EQUAL(seen, 0);
        free(image.pixels);
    }
}

static void noise_add(const struct image *image, double deviation, struct image *noisy)
{
    uint64_t seed = 9;

    for (size_t i = 0; i < image->height_px * image->stride_bytes; i++) {
        double value = ((uint8_t *)image->pixels)[i] + deviation * random_gauss(&seed);

        ((uint8_t *)noisy->pixels)[i] = (uint8_t)fmin(fmax(value, 0), 255);
    }
}

/* A mark that is too weak for the blind reader is read only if its number is a candidate. */
static void weak_marks_need_candidates(void)
{
    uint64_t list[] = {5, 6, 0xfedcba9876543210U, 8};
    const struct watermark_candidates all = {4, list}, others = {2, list};
    struct image image = texture_make(320, 300, 3, 8, 61);
    struct image noisy = image_copy(&image);
    struct watermark_numbers found;
    double deviation = 10;

    embed_or_fail(&image, test_key, list[2]);
    do {
        deviation += 4;
        noise_add(&image, deviation, &noisy);
    } while (deviation < 200 && watermark_extract(&noisy, NULL, test_key, NULL, &found, NULL) == IW_OK);
    CU_ASSERT_EQUAL(watermark_extract(&noisy, NULL, test_key, &others, &found, NULL), IW_WATERMARK_NOT_FOUND);
    CU_ASSERT_EQUAL(watermark_extract(&noisy, NULL, other_key, &all, &found, NULL), IW_WATERMARK_NOT_FOUND);
    CU_ASSERT_EQUAL_FATAL(watermark_extract(&noisy, NULL, test_key, &all, &found, NULL), IW_OK);
    CU_ASSERT(found.count == 1 && found.numbers[0] == list[2]);
    CU_ASSERT(found.certainties[0] >= 1000000000 && found.certainties[0] <= 1000000000000000);
    free(noisy.pixels);
    free(image.pixels);
}

/* A second mark replaces the first, so that both together cost as much as one. */
static void the_second_mark_is_read(void)
{
    for (uint64_t seed = 51; seed < 57; seed++) {
        struct image image = texture_make(320, 300, 3, 8, seed);
        struct image original = image_copy(&image);

        embed_or_fail(&image, test_key, 0x1111);
        embed_or_fail(&image, test_key, 0x2222 + seed);
        CU_ASSERT(reads(&image, test_key, 0x2222 + seed));
        CU_ASSERT(image_error(&image, &original) < 255.0 * 255.0 * pow(10, -4.0));
        embed_or_fail(&image, test_key, 0x2222 + seed);
        CU_ASSERT(reads(&image, test_key, 0x2222 + seed));
        free(original.pixels);
        free(image.pixels);
    }
}

static void every_shape_of_picture_is_read(void)
{
    for (uint32_t channels = 1; channels <= 4; channels++) {
        for (uint32_t depth = 8; depth <= 16; depth += 8) {
            struct image image = texture_make(300, 280, channels, depth, 60 + channels + depth);

            embed_or_fail(&image, test_key, 42 + channels);
            CU_ASSERT(reads(&image, test_key, 42 + channels));
            free(image.pixels);
        }
    }
}

/* Fully transparent pixels are neither changed nor read, so garbage in them is harmless. */
static void transparent_pixels_stay(void)
{
    struct image image = texture_make(400, 360, 4, 8, 71);
    uint8_t *bytes = image.pixels;
    uint64_t seed = 72;

    for (uint32_t y = 0; y < 360; y++)
        for (uint32_t x = 0; x < 400; x++)
            if (hypot(x - 200.0, y - 180.0) > 170) {
                for (unsigned c = 0; c < 3; c++)
                    bytes[(y * 400 + x) * 4 + c] = (uint8_t)(255 * random_uniform(&seed));
                bytes[(y * 400 + x) * 4 + 3] = 0;
            }
    struct image original = image_copy(&image);
    const uint8_t *before = original.pixels;
    embed_or_fail(&image, test_key, 7);
    for (size_t i = 0; i < 400 * 360; i++) {
        CU_ASSERT_EQUAL_FATAL(bytes[i * 4 + 3], before[i * 4 + 3]);
        if (before[i * 4 + 3] == 0)
            CU_ASSERT_EQUAL_FATAL(memcmp(bytes + i * 4, before + i * 4, 4), 0);
    }
    for (size_t i = 0; i < 400 * 360; i++)
        for (unsigned c = 0; c < 3 && bytes[i * 4 + 3] == 0; c++)
            bytes[i * 4 + c] = (uint8_t)(255 * random_uniform(&seed));
    CU_ASSERT(reads(&image, test_key, 7));
    free(original.pixels);
    free(image.pixels);
}

/* Draws a cartoon of flat areas with outlines. */
static struct image drawing_make(uint32_t channels, uint32_t depth_bits)
{
    static const uint8_t areas[6][3] = {{255, 255, 255}, {245, 206, 180}, {90, 170, 210},
                                        {60, 120, 70},   {0, 0, 0},       {200, 60, 60}};
    struct image image = image_make(640, 480, channels, depth_bits);

    for (uint32_t y = 0; y < 480; y++)
        for (uint32_t x = 0; x < 640; x++) {
            bool is_line = x % 160 < 3 || (y + x / 4) % 120 < 3;
            const uint8_t *area = areas[is_line ? 4 : (x / 160 * 7 + (y + x / 4) / 120 * 5) % 6];

            for (unsigned c = 0; c < channels; c++) {
                unsigned level = c == 3 ? (x > 600 ? 0 : 255) : area[c];

                if (depth_bits == 16)
                    ((uint16_t *)image.pixels)[(y * 640 + x) * channels + c] = (uint16_t)(level * 257);
                else
                    ((uint8_t *)image.pixels)[(y * 640 + x) * channels + c] = (uint8_t)level;
            }
        }
    return image;
}

/* Averages each square of four pixels, as a codec does with fine detail. */
static void detail_drop(struct image *image)
{
    uint8_t *bytes = image->pixels;

    for (uint32_t y = 0; y + 4 <= image->height_px; y += 4)
        for (uint32_t x = 0; x + 4 <= image->width_px; x += 4)
            for (unsigned c = 0; c < 3; c++) {
                unsigned sum = 8;

                for (unsigned i = 0; i < 16; i++)
                    sum += bytes[((y + i / 4) * image->width_px + x + i % 4) * image->channels + c];
                for (unsigned i = 0; i < 16; i++)
                    bytes[((y + i / 4) * image->width_px + x + i % 4) * image->channels + c] =
                        (uint8_t)(sum / 16);
            }
}

static void drawings_are_read_in_color_only(void)
{
    struct image plain = drawing_make(3, 8), marked = image_copy(&plain);

    embed_or_fail(&marked, test_key, 77);
    CU_ASSERT(image_error(&plain, &marked) < 255.0 * 255.0 / 1e4); /* 40 dB */
    CU_ASSERT(reads(&marked, test_key, 77));
    detail_drop(&marked);
    CU_ASSERT(reads(&marked, test_key, 77));
    free(plain.pixels);
    free(marked.pixels);
    for (unsigned i = 0; i < 3; i++) {
        struct image other = drawing_make(i == 0 ? 4 : 3, i == 0 ? 8 : 16);

        embed_or_fail(&other, test_key, 78 + i);
        CU_ASSERT(reads(&other, test_key, 78 + i));
        for (size_t at = 0; i == 0 && at < 640 * 480; at++)
            if (((uint8_t *)other.pixels)[at * 4 + 3] == 0)
                CU_ASSERT_EQUAL_FATAL(((uint8_t *)other.pixels)[at * 4 + 3], 0);
        free(other.pixels);
    }
}

/* The newer mark is also read from colour only, because the old underlay is removed. */
static void the_second_mark_of_a_drawing_is_read(void)
{
    struct image image = drawing_make(3, 8);

    embed_or_fail(&image, test_key, 1111);
    embed_or_fail(&image, test_key, 2222);
    CU_ASSERT(reads(&image, test_key, 2222));
    detail_drop(&image);
    CU_ASSERT(reads(&image, test_key, 2222));
    free(image.pixels);
}

/* Larger pictures have larger chips, and can still be read at half the size. */
static void large_pictures_are_read(void)
{
    static const double half[4] = {2, 0, 0, 2};
    const double shift[2] = {0, 0};
    struct image image = texture_make(1500, 1100, 3, 8, 81);

    embed_or_fail(&image, test_key, 123456789);
    CU_ASSERT(reads(&image, test_key, 123456789));
    struct image small = image_warp(&image, half, shift, 750, 550);
    CU_ASSERT(reads(&small, test_key, 123456789));
    free(small.pixels);
    free(image.pixels);
}

static void unmarkable_pictures_are_refused_unchanged(void)
{
    struct image small = texture_make(255, 400, 3, 8, 91);
    struct image clear = image_make(300, 300, 4, 8);
    struct image copy = image_copy(&small);
    uint64_t seen = 0;

    CU_ASSERT_EQUAL(watermark_embed(&small, test_key, 1, NULL, NULL), IW_IMAGE_TOO_SMALL);
    CU_ASSERT_EQUAL(memcmp(small.pixels, copy.pixels, small.stride_bytes * small.height_px), 0);
    CU_ASSERT_EQUAL(watermark_embed(&clear, test_key, 1, NULL, NULL), IW_WATERMARK_NOT_EMBEDDABLE);
    for (size_t i = 0; i < clear.stride_bytes * clear.height_px; i++)
        CU_ASSERT_EQUAL_FATAL(((uint8_t *)clear.pixels)[i], 0);
    CU_ASSERT_EQUAL(extract(&clear, test_key, &seen, NULL), IW_WATERMARK_NOT_FOUND);
    free(small.pixels);
    free(clear.pixels);
    free(copy.pixels);
}

static void the_same_input_gives_the_same_output(void)
{
    struct image first = texture_make(300, 270, 3, 8, 95), second = image_copy(&first);

    embed_or_fail(&first, test_key, 5);
    embed_or_fail(&second, test_key, 5);
    CU_ASSERT_EQUAL(memcmp(first.pixels, second.pixels, first.stride_bytes * first.height_px), 0);
    free(first.pixels);
    free(second.pixels);
}

/* A crop from anywhere is read without a search for the pose. */
static void pieces_are_read(void)
{
    uint64_t seed = 101;

    for (int i = 0; i < poses_count; i++) {
        struct image image = texture_make(520, 470, i % 4 == 3 ? 1 : 3, 8, random_number(&seed));
        size_t left = (size_t)(260 * random_uniform(&seed)), top = (size_t)(230 * random_uniform(&seed));
        uint64_t number = random_number(&seed), seen = 0;
        struct watermark_report report;

        embed_or_fail(&image, test_key, number);
        struct image piece = image;
        piece.width_px = 250;
        piece.height_px = 230;
        piece.pixels = (uint8_t *)image.pixels + top * image.stride_bytes + left * image.channels;
        CU_ASSERT_EQUAL(extract(&piece, test_key, &seen, &report), IW_OK);
        CU_ASSERT_EQUAL(seen, number);
        CU_ASSERT(report.is_untouched);
        CU_ASSERT_EQUAL(extract(&piece, other_key, &seen, NULL), IW_WATERMARK_NOT_FOUND);
        free(image.pixels);
    }
}

static void image_paste(const struct image *image, uint32_t left, uint32_t top, struct image *onto)
{
    for (uint32_t y = 0; y < image->height_px; y++)
        memcpy((uint8_t *)onto->pixels + (top + y) * onto->stride_bytes + left * onto->channels,
               (const uint8_t *)image->pixels + y * image->stride_bytes, image->stride_bytes);
}

static bool holds_numbers(const struct image *image, const uint64_t *numbers, unsigned count)
{
    struct watermark_numbers found;
    unsigned seen = 0;

    CU_ASSERT_EQUAL(watermark_extract(image, NULL, test_key, NULL, &found, NULL), IW_OK);
    for (unsigned i = 0; i < found.count; i++)
        for (unsigned j = 0; j < count; j++)
            seen += found.numbers[i] == numbers[j];
    return found.count == count && seen == count;
}

/* Every mark of a collage is read: next to another, smaller, turned, and twice the same. */
static void collages_are_read(void)
{
    const uint64_t numbers[] = {11, 22, 33};
    const double quarter[4] = {0, 1, -1, 0}, turned[4] = {1.2, 0.5, -0.5, 1.2}, none[2] = {0, 0};
    struct image collage = image_make(1300, 900, 3, 8), marked[3];

    for (unsigned i = 0; i < 3; i++) {
        marked[i] = texture_make(560, 420, 3, 8, 40 + i);
        embed_or_fail(&marked[i], test_key, numbers[i]);
    }
    memset(collage.pixels, 255, collage.height_px * collage.stride_bytes);
    image_paste(&marked[0], 13, 7, &collage);
    CU_ASSERT(holds_numbers(&collage, numbers, 1));
    image_paste(&marked[0], 640, 7, &collage);
    CU_ASSERT(holds_numbers(&collage, numbers, 1));
    image_paste(&marked[1], 640, 7, &collage);
    CU_ASSERT(holds_numbers(&collage, numbers, 2));
    struct image third = image_warp(&marked[2], turned, none, 560, 420);
    image_paste(&third, 100, 460, &collage);
    CU_ASSERT(holds_numbers(&collage, numbers, 3));
    free(third.pixels);
    third = image_warp(&marked[2], quarter, none, 420, 440);
    image_paste(&third, 100, 460, &collage);
    CU_ASSERT(holds_numbers(&collage, numbers, 3));
    free(third.pixels);
    free(collage.pixels);
    for (unsigned i = 0; i < 3; i++)
        free(marked[i].pixels);
}

/* Noise that hides the mark from blind reading does not hide it from informed reading. */
static void the_original_helps(void)
{
    const double matrix[4] = {0.9848, 0.1736, -0.1736, 0.9848}, shift[2] = {15, -11};
    struct image image = texture_make(512, 448, 3, 8, 97), original = image_copy(&image);
    struct watermark_report report;
    uint64_t seen = 0, seed = 98;

    embed_or_fail(&image, test_key, 77);
    struct image turned = image_warp(&image, matrix, shift, 260, 220);
    for (size_t i = 0; i < turned.stride_bytes * turned.height_px; i++) {
        double noisy = ((uint8_t *)turned.pixels)[i] + 9 * random_gauss(&seed);
        ((uint8_t *)turned.pixels)[i] = (uint8_t)fmin(fmax(noisy, 0), 255);
    }
    CU_ASSERT_EQUAL(extract_informed(&turned, &original, test_key, &seen, &report), IW_OK);
    CU_ASSERT_EQUAL(seen, 77);
    CU_ASSERT_EQUAL(extract_informed(&original, &original, test_key, &seen, &report), IW_WATERMARK_NOT_FOUND);
    free(turned.pixels);
    free(original.pixels);
    free(image.pixels);
}

/* Common points determine the map between a picture and a rotated, smaller copy. */
static void pictures_are_laid_over_each_other(void)
{
    const double matrix[4] = {1.2 * 0.9397, 1.2 * 0.3420, -1.2 * 0.3420, 1.2 * 0.9397}, shift[2] = {20, 30};
    struct image image = texture_make(480, 400, 1, 8, 99);
    struct image turned = image_warp(&image, matrix, shift, 220, 200);
    struct affine_map map = {{0}, {0}};
    struct plane original, suspect;
    struct workspace workspace;

    workspace_init(&workspace);
    CU_ASSERT_FATAL(plane_read(&image, PLANE_LUMA, 1, &workspace, &original));
    CU_ASSERT_FATAL(plane_read(&turned, PLANE_LUMA, 1, &workspace, &suspect));
    CU_ASSERT_EQUAL_FATAL(registration_find(&suspect, &original, &workspace, &map), REGISTRATION_DONE);
    registration_refine(&suspect, &original, &map);
    for (unsigned i = 0; i < 4; i++)
        CU_ASSERT_DOUBLE_EQUAL(map.matrix[i], matrix[i], 0.003);
    CU_ASSERT_DOUBLE_EQUAL(map.matrix[0] * 110 + map.matrix[1] * 100 + map.offset[0], 260, 0.3);
    CU_ASSERT_DOUBLE_EQUAL(map.matrix[2] * 110 + map.matrix[3] * 100 + map.offset[1], 230, 0.3);
    workspace_fini(&workspace);
    free(turned.pixels);
    free(image.pixels);
}

/* The picture of a mark differs from other pictures. A piece of the picture may have too little detail for an
 * answer, but is not reported as another picture. */
static void pictures_are_told_apart(void)
{
    struct image image = texture_make(640, 480, 3, 8, 71);
    struct image other = texture_make(640, 480, 3, 8, 72);
    struct watermark_report report, unlike;
    struct watermark_numbers found;
    struct watermark_view broken = {.width = 255, .height = 255, .pitch_chips = 8};

    CU_ASSERT_EQUAL_FATAL(watermark_embed(&image, test_key, 7, NULL, &report), IW_OK);
    CU_ASSERT_EQUAL_FATAL(watermark_embed(&other, test_key, 7, NULL, &unlike), IW_OK);
    CU_ASSERT_EQUAL_FATAL(watermark_extract(&image, NULL, test_key, NULL, &found, NULL), IW_OK);
    CU_ASSERT_EQUAL(likeness_match(&report.view, &found.views[0], NULL), WATERMARK_MATCH_SAME);
    CU_ASSERT_EQUAL(likeness_match(&unlike.view, &found.views[0], NULL), WATERMARK_MATCH_OTHER);
    CU_ASSERT_EQUAL(likeness_match(&broken, &found.views[0], NULL), WATERMARK_MATCH_UNKNOWN);
    CU_ASSERT_EQUAL(likeness_match(&report.view, &broken, NULL), WATERMARK_MATCH_UNKNOWN);
    struct image piece = image;
    piece.width_px = 420;
    piece.height_px = 330;
    piece.pixels = (unsigned char *)image.pixels + 101 * image.stride_bytes + (size_t)130 * 3;
    CU_ASSERT_EQUAL_FATAL(watermark_extract(&piece, NULL, test_key, NULL, &found, NULL), IW_OK);
    CU_ASSERT_NOT_EQUAL(likeness_match(&report.view, &found.views[0], NULL), WATERMARK_MATCH_OTHER);
    CU_ASSERT_NOT_EQUAL(likeness_match(&unlike.view, &found.views[0], NULL), WATERMARK_MATCH_SAME);
    free(image.pixels);
    free(other.pixels);
}

int main(void)
{
    static CU_TestInfo parts[] = {
        {"perspective is undone", perspective_is_undone},
        {"pictures are laid over each other", pictures_are_laid_over_each_other},
        CU_TEST_INFO_NULL,
    };
    static CU_TestInfo whole[] = {
        {"embedded numbers are read", embedded_numbers_are_read},
        {"poses are found", poses_are_found},
        {"pieces are read", pieces_are_read},
        {"stretched pictures are read", stretched_pictures_are_read},
        {"strangers read nothing", strangers_read_nothing},
        {"weak marks need candidates", weak_marks_need_candidates},
        {"the second mark is read", the_second_mark_is_read},
        {"drawings are read in colour only", drawings_are_read_in_color_only},
        {"the second mark of a drawing is read", the_second_mark_of_a_drawing_is_read},
        {"every shape of picture is read", every_shape_of_picture_is_read},
        {"transparent pixels stay", transparent_pixels_stay},
        {"large pictures are read", large_pictures_are_read},
        {"unmarkable pictures are refused unchanged", unmarkable_pictures_are_refused_unchanged},
        {"the same input gives the same output", the_same_input_gives_the_same_output},
        {"collages are read", collages_are_read},
        {"the original helps", the_original_helps},
        {"pictures are told apart", pictures_are_told_apart},
        CU_TEST_INFO_NULL,
    };
    static CU_SuiteInfo suites[] = {
        {"parts of the watermark", NULL, NULL, NULL, NULL, parts},
        {"the watermark", NULL, NULL, NULL, NULL, whole},
        CU_SUITE_INFO_NULL,
    };
    return runner_run_suites(suites);
}
