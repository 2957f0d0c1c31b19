/* A change that the coefficients of a JPEG carry. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec/carry.h"
#include "damage_maker.h"

enum { width_px = 97, height_px = 71 };

static const struct made_spec files[] = {
    {"4:2:0", FORMAT_JPEG, width_px, height_px, 3, true, .sampling = 22, .quality = 85},
    {"4:2:2, restarts", FORMAT_JPEG, width_px, height_px, 3, false, .sampling = 21, .quality = 60,
     .restart = 3},
    {"4:4:4, progressive", FORMAT_JPEG, width_px, height_px, 3, false, .sampling = 11, .quality = 95,
     .is_progressive = true},
    {"grey", FORMAT_JPEG, width_px, height_px, 1, false, .sampling = 22, .quality = 85},
    {"arithmetic", FORMAT_JPEG, width_px, height_px, 3, false, .sampling = 22, .quality = 85,
     .is_arithmetic = true},
    {"split", FORMAT_JPEG, width_px, height_px, 3, false, .factors = {22, 22, 22}, .quality = 85,
     .is_split = true},
};

enum { file_count = sizeof files / sizeof files[0] };

/* Draws a row of a change: waves of some levels, different for each colour. */
static const float *wave_row(void *user, uint32_t y_px)
{
    static float row[3 * width_px];
    const unsigned colors = *(const unsigned *)user;
    for (unsigned i = 0; i < colors * width_px; i++)
        row[i] = 6 * sinf(0.7F * (float)(i / colors) + 0.4F * (float)y_px + (float)(i % colors));
    return row;
}

static struct codec_change change_of(const struct codec_bytes *file, const struct codec_picture *picture,
                                     double scale)
{
    return (struct codec_change){.data = file->data,
                                 .size = file->size,
                                 .row = wave_row,
                                 .user = (void *)(uintptr_t)&picture->image.channels,
                                 .scale = scale,
                                 .dead = 0.5};
}

/* Encodes a picture with a change and decodes the result. */
static struct codec_bytes changed(const struct codec_picture *picture, struct codec_change *change,
                                  struct codec_picture *result)
{
    struct codec_bytes bytes;
    CU_ASSERT_EQUAL_FATAL(codec_encode_change(&context, picture, change, &bytes), IW_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes.data);
    CU_ASSERT_EQUAL_FATAL(decode(&bytes, &no_limits, result), IW_OK);
    return bytes;
}

static bool is_same(const struct image *one, const struct image *other)
{
    return memcmp(one->pixels, other->pixels, one->height_px * one->stride_bytes) == 0;
}

/* Without a change, every form of file keeps all coefficients. */
static void test_unchanged(void)
{
    for (int i = 0; i < file_count; i++) {
        struct codec_picture picture, result;
        struct codec_bytes file = make_picture(&files[i]);
        CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
        struct codec_change change = change_of(&file, &picture, 0);
        struct codec_bytes bytes = changed(&picture, &change, &result);
        CU_ASSERT(is_same(&picture.image, &result.image));
        codec_picture_free(&picture);
        codec_picture_free(&result);
        bytes_free(&file);
        bytes_free(&bytes);
    }
}

/* Returns the root mean square of the difference. */
static double apart(const struct image *one, const struct image *other)
{
    double squares = 0;
    const size_t count = (size_t)one->height_px * one->width_px * one->channels;
    for (uint32_t y = 0; y < one->height_px; y++) {
        const unsigned char *left = image_row(one, y), *right = image_row(other, y);
        for (uint32_t i = 0; i < one->width_px * one->channels; i++)
            squares += (left[i] - right[i]) * (double)(left[i] - right[i]);
    }
    return sqrt(squares / (double)count);
}

/* Without a change, finer steps add less noise than an evenly spread error of the largest step: step /
 * sqrt(12). */
static void test_unchanged_finer(void)
{
    static const double steps_most[codec_finest + 1] = {0, 14, 7};
    for (int i = 0; i < file_count; i++) {
        struct codec_picture picture, result;
        struct codec_bytes file = make_picture(&files[i]);
        CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
        for (unsigned finer = 1; finer <= codec_finest; finer++) {
            struct codec_change change = change_of(&file, &picture, 0);
            change.finer = finer;
            struct codec_bytes bytes = changed(&picture, &change, &result);
            if (getenv("SHOW") != NULL)
                printf("  %s %u: %.2f\n", files[i].name, finer, apart(&picture.image, &result.image));
            CU_ASSERT(apart(&picture.image, &result.image) < steps_most[finer] / sqrt(12));
            codec_picture_free(&result);
            bytes_free(&bytes);
        }
        codec_picture_free(&picture);
        bytes_free(&file);
    }
}

/* If chroma is resampled to the resolution of luma, the steps add no more noise than those of the file. */
static void test_resampled(void)
{
    struct carry_table table = {.is_luma = false};
    for (unsigned i = 0; i < carry_entries; i++)
        table.from[i] = 1;
    carry_resampled(&table, 2, 2);
    for (unsigned i = 0; i < carry_entries; i++)
        CU_ASSERT_EQUAL(table.to[i], 2);
    for (unsigned i = 0; i < carry_entries; i++)
        table.from[i] = (uint16_t)(1 + i % carry_side);
    carry_resampled(&table, 2, 1);
    CU_ASSERT_EQUAL(table.to[0], 1);
    CU_ASSERT_EQUAL(table.to[2], 7); /* frequency 4 of the file's blocks: 5 sqrt(2) */
    memset(table.from, 0x10, sizeof table.from);
    carry_resampled(&table, 2, 2);
    CU_ASSERT_EQUAL(table.to[0], 8);
}

/* A result has as many restarts as the file. The interval counts blocks if there is one component a scan. */
static void test_restarts(void)
{
    static const struct {
        struct made_spec spec;
        unsigned interval;
    } made[] = {
        {{"grey", FORMAT_JPEG, width_px, height_px, 1, false, .sampling = 22, .quality = 60, .restart = 3},
         3},
        {{"4:2:0", FORMAT_JPEG, width_px, height_px, 3, false, .sampling = 22, .quality = 60, .restart = 3},
         12},
    };
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        struct codec_picture picture, result;
        struct codec_bytes file = make_picture(&made[i].spec);
        CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
        struct codec_change change = change_of(&file, &picture, 1);
        change.finer = 1;
        struct codec_bytes bytes = changed(&picture, &change, &result);
        const unsigned char *restarts = memmem(bytes.data, bytes.size, "\xff\xdd\x00\x04", 4);
        CU_ASSERT_PTR_NOT_NULL_FATAL(restarts);
        CU_ASSERT_EQUAL(restarts[4] * 256U + restarts[5], made[i].interval);
        codec_picture_free(&picture);
        codec_picture_free(&result);
        bytes_free(&file);
        bytes_free(&bytes);
    }
}

/* Returns the mean product of the result's change and the wave, relative to the square of the wave. */
static double wave_share(const struct codec_picture *before, const struct codec_picture *after)
{
    double shared = 0, all = 0;
    unsigned colors = before->image.channels;
    for (uint32_t y = 0; y < height_px; y++) {
        const unsigned char *one = image_row(&before->image, y), *other = image_row(&after->image, y);
        const float *wave = wave_row(&colors, y);
        for (unsigned i = 0; i < colors * width_px; i++) {
            shared += (other[i] - one[i]) * (double)wave[i];
            all += (double)wave[i] * (double)wave[i];
        }
    }
    return shared / all;
}

/* A result keeps a part of the change in all colours, and more with finer steps. A second result has the same
 * bytes. */
static void test_changed(void)
{
    for (int i = 0; i < file_count; i++) {
        struct codec_picture picture;
        struct codec_bytes file = make_picture(&files[i]);
        CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
        for (unsigned finer = 0; finer <= codec_finest; finer++) {
            struct codec_picture result, again;
            struct codec_change change = change_of(&file, &picture, 1);
            change.finer = finer;
            struct codec_bytes bytes = changed(&picture, &change, &result);
            struct codec_bytes twin = changed(&picture, &change, &again);
            CU_ASSERT(wave_share(&picture, &result) > (finer == 0 ? 0.2 : 0.4));
            CU_ASSERT_EQUAL_FATAL(bytes.size, twin.size);
            CU_ASSERT_EQUAL(memcmp(bytes.data, twin.data, bytes.size), 0);
            codec_picture_free(&result);
            codec_picture_free(&again);
            bytes_free(&bytes);
            bytes_free(&twin);
        }
        codec_picture_free(&picture);
        bytes_free(&file);
    }
}

/* If a result does not fit, no bytes are returned, but a dead zone with which the next result fits. */
static void test_bytes_max(void)
{
    struct codec_picture picture, result;
    struct codec_bytes file = make_picture(&files[0]), none;
    CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
    struct codec_change change = change_of(&file, &picture, 1);
    change.finer = 1;
    struct codec_bytes bytes = changed(&picture, &change, &result);
    codec_picture_free(&result);
    change.bytes_max = bytes.size * 9 / 10;
    bytes_free(&bytes);
    CU_ASSERT_EQUAL(codec_encode_change(&context, &picture, &change, &none), IW_OK);
    CU_ASSERT_PTR_NULL(none.data);
    CU_ASSERT(change.dead > 0.5);
    for (int try = 0; try < 3 && none.data == NULL; try++)
        CU_ASSERT_EQUAL(codec_encode_change(&context, &picture, &change, &none), IW_OK);
    CU_ASSERT_PTR_NOT_NULL(none.data);
    CU_ASSERT(none.size <= change.bytes_max);
    bytes_free(&none);
    change.bytes_max = file.size / 4;
    CU_ASSERT_EQUAL(codec_encode_change(&context, &picture, &change, &none), IW_OK);
    CU_ASSERT_PTR_NULL(none.data);
    CU_ASSERT(change.dead > 7);
    codec_picture_free(&picture);
    bytes_free(&file);
}

/* Cuts a progressive file after its first scan. */
static struct codec_bytes scan_first(const struct codec_bytes *file)
{
    const unsigned char *data = file->data;
    size_t at = (size_t)((unsigned char *)memmem(data, file->size, "\xff\xda", 2) - data) + 2;
    while (data[at] != 0xFF || data[at + 1] == 0)
        at++;
    struct codec_bytes cut = {malloc(at + 2), at + 2};
    memcpy(cut.data, data, at);
    memcpy((unsigned char *)cut.data + at, "\xff\xd9", 2);
    return cut;
}

/* The decoder smooths the pixels of a file with missing coefficients, so the coefficients do not describe
 * them. */
static void test_smoothed(void)
{
    struct codec_picture picture;
    struct codec_bytes whole = make_picture(&files[2]), cut = scan_first(&whole);
    CU_ASSERT_EQUAL_FATAL(decode(&cut, &no_limits, &picture), IW_OK);
    for (unsigned finer = 0; finer <= codec_finest; finer++)
        CU_ASSERT_FALSE(codec_carries(&picture, finer, &no_limits));
    codec_picture_free(&picture);
    bytes_free(&whole);
    bytes_free(&cut);
}

/* A file carries a level only if one of the steps becomes finer. */
static void test_levels(void)
{
    static const struct {
        struct made_spec spec;
        bool carries[codec_finest + 1];
    } made[] = {
        {{"4:2:0", FORMAT_JPEG, width_px, height_px, 3, false, .sampling = 22, .quality = 98},
         {true, true, true}},
        {{"4:4:4", FORMAT_JPEG, width_px, height_px, 3, false, .sampling = 11, .quality = 98}, {true}},
        {{"4:4:4 95", FORMAT_JPEG, width_px, height_px, 3, false, .sampling = 11, .quality = 95},
         {true, false, true}},
    };
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        struct codec_picture picture;
        struct codec_bytes file = make_picture(&made[i].spec);
        CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
        for (unsigned finer = 0; finer <= codec_finest; finer++)
            CU_ASSERT_EQUAL(codec_carries(&picture, finer, &no_limits), made[i].carries[finer]);
        codec_picture_free(&picture);
        bytes_free(&file);
    }
}

/* Files of other formats and colours, and pictures that do not fit in memory, are encoded from pixels. */
static void test_carriers(void)
{
    static const struct made_spec others[] = {
        {"CMYK", FORMAT_JPEG, width_px, height_px, 4, false, .quality = 85},
        {"RGB", FORMAT_JPEG, width_px, height_px, 3, false, .quality = 85, .is_rgb = true},
        {"colours finer than luma", FORMAT_JPEG, width_px, height_px, 3, false, .factors = {11, 21, 11},
         .quality = 85},
        {"PNG", FORMAT_PNG, width_px, height_px, 3, false, .depth_bits = 8},
    };
    struct codec_picture picture;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct codec_bytes file = make_picture(&others[i]);
        CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
        CU_ASSERT_FALSE(codec_carries(&picture, 0, &no_limits));
        codec_picture_free(&picture);
        bytes_free(&file);
    }
    const struct codec_limits small = {.memory_max_bytes = 8 * width_px * height_px};
    struct codec_bytes file = make_picture(&files[0]);
    CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
    CU_ASSERT_TRUE(codec_carries(&picture, 1, &no_limits));
    CU_ASSERT_FALSE(codec_carries(&picture, 1, &small));
    codec_picture_free(&picture);
    bytes_free(&file);
}

/* The low frequencies of luma carry the whole change of a grey picture. In a picture with colours they carry
 * a part, which is larger if the file has fine steps. */
static void test_low_share(void)
{
    static const struct {
        bool is_luma, has_colors;
        uint16_t step;
        float share;
    } made[] = {{true, true, 20, .5F}, {true, true, 6, .75F}, {true, false, 20, 1}, {false, true, 20, 1}};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        struct carry_table table = {.is_luma = made[i].is_luma, .low_share = 1};
        for (unsigned k = 0; k < carry_entries; k++)
            table.from[k] = made[i].step;
        carry_finer(&table, codec_finest, made[i].has_colors);
        CU_ASSERT(fabsf(table.low_share - made[i].share) < 1e-6F);
    }
}

/* Counts the rows of stripes that differ from rows of the picture. Edges of stripes are not compared, because
 * chroma of a lower resolution is smoothed across them. */
static unsigned rows_other(const struct image *picture, const struct image *part,
                           const struct image_stripes *stripes)
{
    unsigned count = 0;
    for (uint32_t y = 0; y < part->height_px; y++)
        if (y % image_stripe_px > 0 && y % image_stripe_px < image_stripe_px - 1)
            count += memcmp(image_row(part, y), image_row(picture, image_stripes_row(stripes, y)),
                            part->stride_bytes) != 0;
    return count;
}

/* Stripes become a file of their rows, without metadata. */
static void test_stripes(void)
{
    const struct image_stripes stripes = {2, 4 * image_stripe_px};
    for (int i = 0; i < file_count; i++) {
        struct made_spec spec = files[i];
        struct codec_picture picture, part;
        struct codec_bytes bytes;
        double share = 0;
        spec.height_px = 8 * image_stripe_px + 40;
        struct codec_bytes file = make_picture(&spec);
        CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
        const struct codec_change change = change_of(&file, &picture, 1);
        CU_ASSERT_EQUAL_FATAL(codec_stripes(&context, &picture, &stripes, &change, &bytes, &share), IW_OK);
        CU_ASSERT_EQUAL_FATAL(decode(&bytes, &no_limits, &part), IW_OK);
        CU_ASSERT_EQUAL(part.image.height_px, stripes.height_px);
        CU_ASSERT_EQUAL(rows_other(&picture.image, &part.image, &stripes), 0);
        CU_ASSERT_EQUAL(codec_metadata_bytes(&part), 0);
        const double bytes_share = (double)bytes.size / (double)(file.size - codec_metadata_bytes(&picture));
        if (getenv("SHOW") != NULL)
            printf("  %s: %.3f of the coefficients, %.3f of the bytes\n", spec.name, share, bytes_share);
        CU_ASSERT_DOUBLE_EQUAL(share, bytes_share, 0.1);
        codec_picture_free(&picture);
        codec_picture_free(&part);
        bytes_free(&file);
        bytes_free(&bytes);
    }
}

/* Units of 24 rows do not fit stripes. */
static void test_stripes_units(void)
{
    static const struct made_spec spec = {
        "4:4:0", FORMAT_JPEG, width_px, 1024, 3, false, .factors = {13, 11, 11}, .quality = 85};
    struct codec_picture picture;
    struct codec_bytes file = make_picture(&spec), bytes;
    const struct image_stripes stripes = {2, 4 * image_stripe_px};
    double share = 0;
    CU_ASSERT_EQUAL_FATAL(decode(&file, &no_limits, &picture), IW_OK);
    const struct codec_change change = change_of(&file, &picture, 1);
    CU_ASSERT_EQUAL(codec_stripes(&context, &picture, &stripes, &change, &bytes, &share), IW_OK);
    CU_ASSERT_PTR_NULL(bytes.data);
    codec_picture_free(&picture);
    bytes_free(&file);
}

/* The transform keeps the energy, and a block of one cosine has one coefficient. */
static void test_transform(void)
{
    enum { row = 3, column = 5 };
    float samples[carry_entries], out[carry_entries];
    for (int y = 0; y < carry_side; y++)
        for (int x = 0; x < carry_side; x++)
            samples[y * carry_side + x] =
                (float)(cos((2 * y + 1) * row * M_PI / 16) * cos((2 * x + 1) * column * M_PI / 16));
    const struct carry_band band = {carry_side, carry_side, {samples, NULL, NULL}};
    carry_transform(&band, 0, 0, 0, 1, 1, out);
    for (int i = 0; i < carry_entries; i++)
        CU_ASSERT(fabsf(out[i] - (i == row * carry_side + column ? 4 : 0)) < 1e-4F);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"carry: the transform", test_transform},
        {"carry: nothing changes without a change", test_unchanged},
        {"carry: finer steps add little noise", test_unchanged_finer},
        {"carry: steps of colours of a higher resolution", test_resampled},
        {"carry: restarts", test_restarts},
        {"carry: a level is finer than the file", test_levels},
        {"carry: a file with missing coefficients", test_smoothed},
        {"carry: the result has the change", test_changed},
        {"carry: the limit of bytes is kept", test_bytes_max},
        {"carry: the share of low luma", test_low_share},
        {"carry: which pictures", test_carriers},
        {"carry: stripes are rows of the picture", test_stripes},
        {"carry: units that do not fit stripes", test_stripes_units},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("carry", tests);
}
