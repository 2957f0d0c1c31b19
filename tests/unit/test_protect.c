/*
 * The anti-AI engine: its agreement with the framework, and its strengths on every shape.  All tests run with
 * each of the kernels that this processor supports.
 */
#include <imgward/protect.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

#include "engine/protect/protect_hide.h"
#include "engine/protect/protect_hash.h"
#include "engine/protect/protect_net.h"
#include "engine/protect/protect_plan.h"

static uint8_t weights[1 << 20];
static size_t weights_size;
static struct protect *protect;

static size_t file_read(const char *name, void *bytes, size_t limit)
{
    char path[4096];
    const char *top = getenv("srcdir");
    snprintf(path, sizeof path, "%s/%s", top != NULL ? top : ".", name);
    FILE *file = fopen(path, "rb");
    size_t size = file != NULL ? fread(bytes, 1, limit, file) : 0;
    if (file != NULL)
        fclose(file);
    return size;
}

/* Each suite takes the next kernels. */
static int suite_begin(void)
{
    static unsigned place;
    const char *why = NULL;
    weights_size = file_read("data/protect.weights", weights, sizeof weights);
    const struct conv_kernels *kernels = conv_kernels_at(place++);
    if (kernels == NULL || protect_new(&protect, weights, weights_size, &why) != IW_OK)
        return 1;
    protect->net.kernels = kernels;
    return 0;
}

static int suite_end(void)
{
    protect_free(protect);
    return 0;
}

/* ---- pictures */

static struct image image_made(uint32_t width, uint32_t height, uint32_t channels, uint32_t depth)
{
    struct image image = {width, height, channels, depth, (size_t)width * channels * depth / 8, NULL};
    image.pixels = calloc(height, image.stride_bytes);
    return image;
}

static void sample_set(struct image *image, uint32_t x, uint32_t y, uint32_t channel, unsigned level)
{
    size_t at = ((size_t)y * image->width_px + x) * image->channels + channel;
    if (image->depth_bits == 8)
        ((uint8_t *)image->pixels)[at] = (uint8_t)level;
    else
        ((uint16_t *)image->pixels)[at] = (uint16_t)(level * 257);
}

static unsigned sample_get(const struct image *image, uint32_t x, uint32_t y, uint32_t channel)
{
    size_t at = ((size_t)y * image->width_px + x) * image->channels + channel;
    return image->depth_bits == 8 ? ((const uint8_t *)image->pixels)[at]
                                  : ((const uint16_t *)image->pixels)[at];
}

static unsigned recorded_level(uint32_t x, uint32_t y, uint32_t c)
{
    return (x * (3 + c) + y * (7 - 2 * c) + x * y / (5 + c) + (x * x * 13 + y * 31) % (17 + 6 * c)) % 256;
}

/* Grain as in a sky on the left.  tools/record_output.py draws the same. */
static unsigned recorded_half_level(uint32_t x, uint32_t y, uint32_t c)
{
    static const unsigned skin[] = {200, 145, 115};
    const unsigned busy = recorded_level(x, y, c);
    return x >= 40 ? busy : y < 24 ? 150 + busy % 5 : skin[c] + busy % 7;
}

static unsigned flat_level(uint32_t x, uint32_t y, uint32_t c)
{
    (void)x, (void)y;
    return 90 + 40 * c;
}

static unsigned white_level(uint32_t x, uint32_t y, uint32_t c)
{
    (void)x, (void)y, (void)c;
    return 255;
}

static unsigned black_level(uint32_t x, uint32_t y, uint32_t c)
{
    (void)x, (void)y, (void)c;
    return 0;
}

/* Black letters' edges on white: most of it flat at the end of the range. */
static unsigned text_level(uint32_t x, uint32_t y, uint32_t c)
{
    (void)c;
    return y % 24 < 12 && (x * 7 + y / 24) % 11 < 4 ? 20 : 250;
}

/* The same in dark blue ink on cream. */
static unsigned ink_level(uint32_t x, uint32_t y, uint32_t c)
{
    static const unsigned ink[] = {20, 24, 70}, paper[] = {250, 244, 226};
    return text_level(x, y, c) < 128 ? ink[c] : paper[c];
}

/* Discs of some colours on others. */
static unsigned flat_art_level(uint32_t x, uint32_t y, uint32_t c)
{
    const int across = (int)(x % 80) - 40, down = (int)(y % 80) - 40;
    const uint32_t place = x / 80 + 3 * (y / 80) + (across * across + down * down < 900 ? 5 : 0);
    return 40 + (place * 67 + c * 91) % 180;
}

static unsigned smooth_level(uint32_t x, uint32_t y, uint32_t c)
{
    return (unsigned)(128 + 60 * sin(x / 40.0 + c) + 50 * cos(y / 31.0 - c));
}

typedef unsigned (*level_function)(uint32_t x, uint32_t y, uint32_t c);

static struct image image_drawn(uint32_t width, uint32_t height, uint32_t channels, uint32_t depth,
                                level_function level)
{
    struct image image = image_made(width, height, channels, depth);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (uint32_t c = 0; c < channels; c++)
                sample_set(&image, x, y, c, level(x, y, c));
    /* Alpha: one transparent stripe, the rest half transparent. */
    for (uint32_t y = 0; image_has_alpha(&image) && y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            sample_set(&image, x, y, channels - 1, x % 50 < 5 ? 0 : 128);
    return image;
}

static struct image image_copy(const struct image *image)
{
    struct image copy = *image;
    copy.pixels = malloc(image->height_px * image->stride_bytes);
    memcpy(copy.pixels, image->pixels, image->height_px * image->stride_bytes);
    return copy;
}

static bool image_same(const struct image *left, const struct image *right)
{
    return memcmp(left->pixels, right->pixels, left->height_px * left->stride_bytes) == 0;
}

/* ---- the perturbation */

/*
 * The definition of protect_unit.h: 127 is the seventh unit of the last of sixteen octaves.  That octave
 * begins at the given power of two; values are rounded to this limit.
 */
static double unit_limit(uint32_t y, double power)
{
    return (8 + 6 + (2 * (y % 8) + 1) / 16.0 + 0.5) / 8 * power;
}

/* Half a step in the octave of the larger of a value and its unit; a step is an eighth of the octave's
 * beginning. */
static double unit_half_step(double value, double read)
{
    double larger = fmax(fabs(value), fabs(read));
    return larger > 0 ? ldexp(1, ilogb(larger) - 4) : 0;
}

/*
 * The unit perturbation of the recorded picture is the framework's at each strength, within 2e-5 plus its
 * rounding to small floats.  It is read from a grey 16-bit picture at a scale that keeps each sample below
 * its peak; rounding there counts, too.  The rounding changes the power little.
 */
enum { recorded_width = 75, recorded_height = 58, recorded_samples = recorded_width * recorded_height * 3 };

static double recorded_power_of_two(const float *recorded)
{
    double power = ldexp(1, -48);
    for (unsigned i = 0; i < recorded_samples; i++)
        while (fabs((double)recorded[i]) >= unit_limit(i / (recorded_width * 3), power))
            power *= 2;
    return power;
}

static void recorded_compare(const float *recorded, enum protect_strength strength)
{
    enum { width = recorded_width, height = recorded_height, seed = 7, samples = recorded_samples };
    static const double scale = 0.04; /* the largest unit moves by less than the lowest peak of a block */
    struct image image = image_drawn(width, height, 3, 16, recorded_half_level);
    struct image grey = image_made(width, height, 3, 16);
    struct protect_plan *plan;
    CU_ASSERT_EQUAL_FATAL(protect_plan_new(&plan, protect, &image, strength, seed), IW_OK);
    for (unsigned i = 0; i < samples; i++)
        ((uint16_t *)grey.pixels)[i] = 32768;
    protect_render(plan, &grey, scale);
    double value_of_step = recorded_power_of_two(recorded) * 14.5 / 8 / (127 * scale * 257);
    double worst = 0, power = 0, recorded_power = 0;
    for (unsigned i = 0; i < samples; i++) {
        double value = (double)recorded[i], read = (((uint16_t *)grey.pixels)[i] - 32768) * value_of_step;
        worst = fmax(worst, fabs(read - value) - unit_half_step(value, read) - value_of_step / 2);
        power += read * read;
        recorded_power += value * value;
    }
    CU_ASSERT(worst <= 2e-5);
    CU_ASSERT(fabs(power / recorded_power - 1) < 0.01);
    protect_plan_free(plan);
    free(image.pixels);
    free(grey.pixels);
}

static void test_recorded_output(void)
{
    static float recorded[protect_strength_count][recorded_samples];
    CU_ASSERT_EQUAL_FATAL(file_read("tests/unit/protect_recorded.f32", recorded, sizeof recorded),
                          sizeof recorded);
    recorded_compare(recorded[0], PROTECT_LOW);
    recorded_compare(recorded[1], PROTECT_STANDARD);
    recorded_compare(recorded[2], PROTECT_HIGH);
}

/* ---- strengths */

static const struct {
    const char *name;
    uint32_t width, height, channels, depth;
    level_function level;
} shapes[] = {
    {"RGB", 203, 117, 3, 8, recorded_level},      {"smooth RGB", 200, 150, 3, 8, smooth_level},
    {"RGB 16", 130, 117, 3, 16, smooth_level},    {"grey", 203, 117, 1, 8, recorded_level},
    {"grey 16", 111, 90, 1, 16, recorded_level},  {"grey, alpha", 203, 117, 2, 8, smooth_level},
    {"RGBA", 203, 117, 4, 8, recorded_level},     {"RGBA 16", 150, 117, 4, 16, recorded_level},
    {"flat", 160, 120, 3, 8, flat_level},         {"white", 160, 120, 3, 8, white_level},
    {"black", 160, 120, 3, 8, black_level},       {"white grey 16", 160, 120, 1, 16, white_level},
    {"text", 300, 200, 3, 8, text_level},         {"one pixel", 1, 1, 3, 8, flat_level},
    {"flat art", 320, 240, 3, 8, flat_art_level}, {"a line", 1, 300, 3, 8, recorded_level},
    {"a row", 300, 1, 1, 8, recorded_level},      {"ink", 300, 200, 3, 8, ink_level},
};

static bool alpha_same(const struct image *before, const struct image *after)
{
    bool is_same = true;
    uint32_t alpha = before->channels - 1;
    for (uint32_t y = 0; y < before->height_px; y++) {
        for (uint32_t x = 0; x < before->width_px; x++) {
            is_same = is_same && sample_get(before, x, y, alpha) == sample_get(after, x, y, alpha);
            for (uint32_t c = 0; sample_get(before, x, y, alpha) == 0 && c < alpha; c++)
                is_same = is_same && sample_get(before, x, y, c) == sample_get(after, x, y, c);
        }
    }
    return is_same;
}

/* Expected limits.  A picture of one colour or of a gradient gets the strength low for any request.  Flat art
 * gets less than requested, because its few outlines would have to take the whole perturbation.  Black bars
 * on white, in grey, may get up to 2 dB less at the strength high, because values above white are clipped.
 * All other pictures get the requested strength. */
static bool is_limit_right(level_function level, const struct protect_report *report)
{
    if (level == flat_art_level)
        return report->is_limited && report->psnr_db > report->target_db + 1;
    if (level == text_level && report->target_db < 36)
        return report->psnr_db > report->target_db - 0.3 && report->psnr_db < report->target_db + 2;
    bool is_flat =
        level == flat_level || level == white_level || level == black_level || level == smooth_level;
    if (!is_flat || report->target_db > 39)
        return !report->is_limited;
    return report->is_limited && fabs(report->psnr_db - 40) <= 0.3;
}

/* Within 0.3 dB after rounding, as measured on the pixels and as reported. */
static void test_strengths(void)
{
    for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct image image = image_drawn(shapes[i].width, shapes[i].height, shapes[i].channels,
                                         shapes[i].depth, shapes[i].level);
        for (unsigned strength = 0; strength < protect_strength_count; strength++) {
            struct image after = image_copy(&image);
            struct protect_report report;
            CU_ASSERT_EQUAL(protect_apply(protect, &after, (enum protect_strength)strength, 99 + i, &report),
                            IW_OK);
            double psnr = protect_psnr(&image, &after);
            bool is_single = (uint64_t)image.width_px * image.height_px < 1000;
            if (fabs(psnr - report.target_db) > 0.3 && !is_single && !report.is_limited)
                printf("  %s: %.2f dB instead of %.0f\n", shapes[i].name, psnr, report.target_db);
            CU_ASSERT(is_single || report.is_limited || fabs(psnr - report.target_db) <= 0.3);
            CU_ASSERT(is_single || is_limit_right(shapes[i].level, &report));
            CU_ASSERT(fabs(psnr - report.psnr_db) < 0.05);
            if (image_has_alpha(&image))
                CU_ASSERT(alpha_same(&image, &after));
            free(after.pixels);
        }
        free(image.pixels);
    }
}

/* Independent of the scale that a strength would need. */
static void test_peaks(void)
{
    static const unsigned peaks[] = {[PROTECT_LOW] = 11, [PROTECT_STANDARD] = 16, [PROTECT_HIGH] = 22};
    struct image image = image_drawn(203, 117, 3, 8, recorded_level);
    for (unsigned strength = 0; strength < protect_strength_count; strength++) {
        struct image after = image_copy(&image);
        struct protect_plan *plan;
        CU_ASSERT_EQUAL_FATAL(protect_plan_new(&plan, protect, &image, (enum protect_strength)strength, 5),
                              IW_OK);
        protect_render(plan, &after, 10);
        unsigned most = 0;
        for (uint32_t y = 0; y < image.height_px; y++)
            for (uint32_t x = 0; x < image.width_px; x++)
                for (uint32_t c = 0; c < 3; c++) {
                    unsigned moved =
                        (unsigned)abs((int)sample_get(&after, x, y, c) - (int)sample_get(&image, x, y, c));
                    most = moved > most ? moved : most;
                }
        CU_ASSERT_EQUAL(most, peaks[strength]);
        protect_plan_free(plan);
        free(after.pixels);
    }
    free(image.pixels);
}

/* Flat on the left, busy on the right. */
static unsigned half_level(uint32_t x, uint32_t y, uint32_t c)
{
    return x < 96 ? flat_level(x, y, c) : recorded_level(x, y, c);
}

/* Noise of up to eight levels for each pixel: film grain. */
static unsigned film_level(uint32_t x, uint32_t y, uint32_t c)
{
    return flat_level(0, 0, c) + (unsigned)(hash_of((uint64_t)y << 32 | x, 7) % 9);
}

/* No sample moves beyond its block's peak, and some reach it. */
static void peaks_check(level_function level, uint32_t width, uint32_t height)
{
    struct image image = image_drawn(width, height, 3, 8, level), after = image_copy(&image);
    struct protect_plan *plan;
    unsigned at_peak = 0;
    CU_ASSERT_EQUAL_FATAL(protect_plan_new(&plan, protect, &image, PROTECT_STANDARD, 5), IW_OK);
    protect_render(plan, &after, 10);
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t i = 0; i < 3 * width; i++) {
            const uint32_t x = i / 3, c = i % 3;
            const int moved = abs((int)sample_get(&after, x, y, c) - (int)sample_get(&image, x, y, c));
            const int peak = plan->peaks[y / 4 * ((width + 3) / 4) + x / 4];
            CU_ASSERT(moved <= peak);
            at_peak += moved == peak;
        }
    }
    CU_ASSERT(at_peak > width);
    protect_plan_free(plan);
    free(after.pixels);
    free(image.pixels);
}

/* The peaks of blocks lie between that of a flat block and that of the strength.  A larger scale moves more
 * samples to them. */
static void test_block_peaks(void)
{
    peaks_check(film_level, 101, 67);
    peaks_check(half_level, 192, 96);
    struct image image = image_drawn(192, 96, 3, 8, half_level);
    struct protect_plan *plan;
    CU_ASSERT_EQUAL_FATAL(protect_plan_new(&plan, protect, &image, PROTECT_STANDARD, 5), IW_OK);
    CU_ASSERT_EQUAL(plan->peaks[0], 10);
    CU_ASSERT_EQUAL(plan->peaks[48 * 12 + 40], 16);
    double before = 0;
    for (double scale = 0.01; scale < 60; scale *= 1.2) {
        const double share = plan_share_at_peak(plan, scale);
        CU_ASSERT(share >= before && share <= 1);
        before = share;
    }
    CU_ASSERT(before > 0.5);
    protect_plan_free(plan);
    free(image.pixels);
}

static void test_undo(void)
{
    for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct image image = image_drawn(shapes[i].width, shapes[i].height, shapes[i].channels,
                                         shapes[i].depth, shapes[i].level);
        struct image after = image_copy(&image);
        struct protect_plan *plan;
        CU_ASSERT_EQUAL_FATAL(protect_plan_new(&plan, protect, &image, PROTECT_STANDARD, i), IW_OK);
        for (double scale = 0.05; scale < 1; scale *= 2.1) {
            protect_render(plan, &after, scale);
            protect_undo(plan, &after);
            CU_ASSERT(image_same(&image, &after));
        }
        protect_plan_free(plan);
        free(after.pixels);
        free(image.pixels);
    }
}

static bool colors_same(const struct image *plain, const struct image *opaque)
{
    bool is_same = true;
    for (uint32_t y = 0; y < plain->height_px; y++)
        for (uint32_t x = 0; x < plain->width_px; x++)
            for (uint32_t c = 0; c < plain->channels; c++)
                is_same = is_same && sample_get(plain, x, y, c) == sample_get(opaque, x, y, c);
    return is_same;
}

/* 8-bit samples without alpha are moved in vectors, those with an opaque alpha one by one: the results are
 * equal. */
static void test_vectors_agree(void)
{
    static const level_function levels[] = {recorded_level, smooth_level, white_level, black_level,
                                            text_level};
    for (unsigned i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        struct image plain = image_drawn(203, 67, 3, 8, levels[i]),
                     opaque = image_drawn(203, 67, 4, 8, levels[i]);
        struct protect_plan *one, *other;
        for (uint32_t y = 0; y < opaque.height_px; y++)
            for (uint32_t x = 0; x < opaque.width_px; x++)
                sample_set(&opaque, x, y, 3, 255);
        CU_ASSERT_EQUAL_FATAL(protect_plan_new(&one, protect, &plain, PROTECT_STANDARD, i), IW_OK);
        CU_ASSERT_EQUAL_FATAL(protect_plan_new(&other, protect, &opaque, PROTECT_STANDARD, i), IW_OK);
        for (double scale = 20; scale > 0.01; scale /= 1.7) {
            CU_ASSERT(fabs(protect_plan_psnr(one, scale) - protect_plan_psnr(other, scale)) < 1e-9);
            protect_render(one, &plain, scale);
            protect_render(other, &opaque, scale);
            CU_ASSERT(colors_same(&plain, &opaque));
            protect_undo(one, &plain);
            protect_undo(other, &opaque);
        }
        protect_plan_free(one);
        protect_plan_free(other);
        free(plain.pixels);
        free(opaque.pixels);
    }
}

/* A preview of some rows equals the rendered rows and does not change the plan. */
static void test_preview(void)
{
    enum { first = 31, rows = 40 };
    for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct image image = image_drawn(shapes[i].width, shapes[i].height, shapes[i].channels,
                                         shapes[i].depth, shapes[i].level);
        if (image.height_px < first + rows) {
            free(image.pixels);
            continue;
        }
        struct image after = image_copy(&image), strip = image_copy(&image);
        unsigned char *rows_before = (unsigned char *)image.pixels + first * image.stride_bytes;
        struct protect_plan *plan;
        CU_ASSERT_EQUAL_FATAL(protect_plan_new(&plan, protect, &image, PROTECT_STANDARD, i), IW_OK);
        memcpy(strip.pixels, rows_before, rows * image.stride_bytes);
        strip.height_px = rows;
        protect_preview(plan, 0.4, first, &strip);
        CU_ASSERT(memcmp(strip.pixels, rows_before, rows * image.stride_bytes) != 0);
        protect_render(plan, &after, 0.4);
        CU_ASSERT_EQUAL(memcmp(strip.pixels, (unsigned char *)after.pixels + first * image.stride_bytes,
                               rows * image.stride_bytes),
                        0);
        protect_preview(plan, 0.1, first, &strip);
        protect_undo(plan, &after);
        CU_ASSERT(image_same(&image, &after));
        protect_plan_free(plan);
        free(strip.pixels);
        free(after.pixels);
        free(image.pixels);
    }
}

static void test_seed(void)
{
    struct image image = image_drawn(150, 110, 3, 8, smooth_level);
    struct image one = image_copy(&image), again = image_copy(&image), other = image_copy(&image);
    struct protect_report report;
    CU_ASSERT_EQUAL(protect_apply(protect, &one, PROTECT_STANDARD, 5, &report), IW_OK);
    CU_ASSERT_EQUAL(protect_apply(protect, &again, PROTECT_STANDARD, 5, &report), IW_OK);
    CU_ASSERT_EQUAL(protect_apply(protect, &other, PROTECT_STANDARD, 6, &report), IW_OK);
    CU_ASSERT(image_same(&one, &again));
    CU_ASSERT(!image_same(&one, &other));
    free(image.pixels);
    free(one.pixels);
    free(again.pixels);
    free(other.pixels);
}

/* The share of the squared error in the flat part of half_level. */
static double flat_share(enum protect_strength strength)
{
    struct image image = image_drawn(192, 96, 3, 8, half_level), after = image_copy(&image);
    struct protect_report report;
    double flat = 0, all = 0;
    CU_ASSERT_EQUAL_FATAL(protect_apply(protect, &after, strength, 11, &report), IW_OK);
    for (uint32_t y = 0; y < image.height_px; y++) {
        for (uint32_t x = 0; x < image.width_px; x++) {
            double apart = (double)sample_get(&after, x, y, 1) - (double)sample_get(&image, x, y, 1);
            all += apart * apart;
            flat += x < 96 ? apart * apart : 0;
        }
    }
    free(image.pixels);
    free(after.pixels);
    return flat / all;
}

static void test_flat_parts(void)
{
    double low = flat_share(PROTECT_LOW), standard = flat_share(PROTECT_STANDARD);
    CU_ASSERT(low <= standard);
    CU_ASSERT(standard < 0.0001);
}

static void test_names(void)
{
    enum protect_strength strength;
    for (unsigned i = 0; i < protect_strength_count; i++) {
        CU_ASSERT(protect_strength_by_name(protect_strength_name((enum protect_strength)i), &strength));
        CU_ASSERT_EQUAL(strength, i);
    }
    CU_ASSERT(!protect_strength_by_name("strong", &strength));
}

/* The mean of 2x2 pixels of two rows for one colour. */
static double mean_of(const float *upper, const float *lower, unsigned at)
{
    const unsigned left = at / 3 * 6 + at % 3, right = left + 3;
    return ((double)upper[left] + (double)upper[right] + (double)lower[left] + (double)lower[right]) / 4;
}

/* The masks of a canvas; the caller calls free(masks.mask). */
static struct canvas_masks masks_of(const struct canvas *canvas, const struct canvas_hiding *hiding)
{
    const size_t blocks = canvas_mask_rows(canvas) * canvas_mask_columns(canvas);
    float *values = malloc(4 * blocks * sizeof *values);
    CU_ASSERT_PTR_NOT_NULL_FATAL(values);
    struct canvas_masks masks = {.mask = values,
                                 .calm = values + blocks,
                                 .spread = values + 2 * blocks,
                                 .grained = values + 3 * blocks};
    CU_ASSERT_FATAL(canvas_mask(canvas, hiding, &masks));
    return masks;
}

/* At half size the picture and its mask are means of 2x2 pixels, inside and outside the picture. */
static void test_halved(void)
{
    enum { beyond = 12, width = 75, height = 58, count = 2 * beyond + 56, values = count * 3 };
    static const struct canvas_hiding hiding = {
        .floor = 0.0003f, .knee = 0.072f, .grain = 0.0015f, .smooth = 0.007f, .calm = 1, .mild = 0.007f};
    float whole[2][2 * values], half[values];
    struct image image = image_drawn(width, height, 3, 8, recorded_level);
    struct canvas canvas;
    canvas_init(&canvas, &image, 7);
    float *mask = masks_of(&canvas, &hiding).mask;
    double worst = 0, mask_worst = 0;
    for (int64_t y = -beyond; y < height / 2 + beyond; y++) {
        for (unsigned i = 0; i < 2; i++)
            canvas_pixels(&canvas, 2 * y + i, -2 * beyond, 2 * count, whole[i]);
        canvas_pixels_halved(&canvas, y, -beyond, count, half);
        for (unsigned at = 0; at < values; at++)
            worst = fmax(worst, fabs(mean_of(whole[0], whole[1], at) - (double)half[at]));
        for (unsigned i = 0; i < 2; i++)
            canvas_mask_line(&canvas, mask, canvas_block_px, 2 * y + i, -2 * beyond, 2 * count, whole[i]);
        canvas_mask_line(&canvas, mask, canvas_block_px / 2, y, -beyond, count, half);
        for (unsigned at = 0; at < values; at++)
            mask_worst = fmax(mask_worst, fabs(mean_of(whole[0], whole[1], at) - (double)half[at]));
    }
    CU_ASSERT(worst < 1e-6);
    CU_ASSERT(mask_worst < 1e-6);
    free(mask);
    free(image.pixels);
}

static unsigned ramp_level(uint32_t x, uint32_t y, uint32_t c)
{
    return 10 + x + y + c * 10;
}

/* One colour with grain of up to two levels. */
static unsigned grain_level(uint32_t x, uint32_t y, uint32_t c)
{
    return flat_level(x, y, c) + (x * 7 + y * 13) % 3;
}

/* The largest value of the texture mask of a picture. */
static double mask_most(level_function level, const struct canvas_hiding *hiding)
{
    struct image image = image_drawn(120, 80, 3, 16, level);
    struct canvas canvas;
    double most = 0;
    canvas_init(&canvas, &image, 7);
    float *mask = masks_of(&canvas, hiding).mask;
    for (size_t i = 0; i < canvas_mask_rows(&canvas) * canvas_mask_columns(&canvas); i++)
        most = fmax(most, (double)mask[i]);
    free(mask);
    free(image.pixels);
    return most;
}

/* A gradient of any slope masks no more than one colour does; a picture with grain masks more. */
static void test_ramps(void)
{
    static const struct canvas_hiding hiding = {
        .floor = 0.0003f, .knee = 0.09f, .grain = 0.0015f, .smooth = 0.007f, .calm = 1, .mild = 0.007f};
    const double flat = mask_most(flat_level, &hiding);
    CU_ASSERT(flat > 0);
    CU_ASSERT(mask_most(ramp_level, &hiding) < 1.02 * flat);
    CU_ASSERT(mask_most(grain_level, &hiding) > 2 * flat);
}

/* Twice the amplitude, shared by nine pixels each: hardly further from planes, but texture, also at a quarter
 * of the size. */
static unsigned coarse_level(uint32_t x, uint32_t y, uint32_t c)
{
    return flat_level(0, 0, c) + 2 * (film_level(x / 3, y / 3, c) - flat_level(0, 0, c));
}

/* Discs with grain of one level, as in photographs: outlines next to smooth places. */
static unsigned grainy_art_level(uint32_t x, uint32_t y, uint32_t c)
{
    return flat_art_level(x, y, c) + (unsigned)(hash_of((uint64_t)y << 32 | x, 7) % 2);
}

/* The mean smoothness and the mean grain of a picture's blocks, without those beyond it. */
static void smooth_means(level_function level, double *smooth, double *grained)
{
    static const struct canvas_hiding hiding = {
        .floor = 0.0001f, .knee = 0.2f, .grain = 0.001f, .smooth = 0.0015f, .calm = 1, .mild = 0.0015f};
    struct image image = image_drawn(112, 96, 3, 8, level);
    struct canvas canvas;
    canvas_init(&canvas, &image, 7);
    const struct canvas_masks masks = masks_of(&canvas, &hiding);
    *smooth = canvas_mean(&canvas, masks.calm);
    *grained = canvas_mean(&canvas, masks.grained);
    free(masks.mask);
    free(image.pixels);
}

/* A gradient is as smooth as one colour, and so is grain of a level or two.  Texture is not smooth, and
 * outlines do not end the smoothness around them.  Of these only grain gets more grain.  Flat art gets none,
 * even next to faint outlines. */
static void test_smooth(void)
{
    double smooth, grained;
    smooth_means(flat_level, &smooth, &grained);
    CU_ASSERT(smooth > 0.99 && grained <= 0);
    smooth_means(ramp_level, &smooth, &grained);
    CU_ASSERT(smooth > 0.9 && grained <= 0);
    smooth_means(grain_level, &smooth, &grained);
    CU_ASSERT(smooth > 0.9 && grained > 0.9);
    smooth_means(flat_art_level, &smooth, &grained);
    CU_ASSERT(smooth > 0.9 && grained <= 0);
    smooth_means(film_level, &smooth, &grained);
    CU_ASSERT(smooth > 0.9 && grained > 0.9);
    smooth_means(grainy_art_level, &smooth, &grained);
    CU_ASSERT(smooth > 0.6 && grained > 0.5);
    smooth_means(coarse_level, &smooth, &grained);
    CU_ASSERT(smooth < 0.1 && grained < 0.1);
    smooth_means(recorded_level, &smooth, &grained);
    CU_ASSERT(smooth < 0.1 && grained < 0.1);
}

/* Half smooth, half slightly textured. */
static unsigned half_busy_level(uint32_t x, uint32_t y, uint32_t c)
{
    return x < 56 ? grain_level(x, y, c) : coarse_level(x, y, c);
}

/* Half of one colour, as in drawings. */
static unsigned half_flat_level(uint32_t x, uint32_t y, uint32_t c)
{
    return x < 56 ? flat_level(x, y, c) : coarse_level(x, y, c);
}

/* The mean attenuation of a picture; grained gets the mean grain unless it is NULL. */
static double calm_mean(level_function level, const struct canvas_hiding *hiding, double *grained)
{
    struct image image = image_drawn(112, 96, 3, 8, level);
    struct canvas canvas;
    canvas_init(&canvas, &image, 7);
    const struct canvas_masks masks = masks_of(&canvas, hiding);
    const double mean = canvas_mean(&canvas, masks.calm);
    if (grained != NULL)
        *grained = canvas_mean(&canvas, masks.grained);
    free(masks.mask);
    free(image.pixels);
    return mean;
}

/* The same for a picture that is half smooth and half mild.  from is the smooth share from which mild places
 * count. */
static double mild_mean(level_function level, float calm_from)
{
    const struct canvas_hiding hiding = {.floor = 0.0001f,
                                         .knee = 0.2f,
                                         .grain = 0.001f,
                                         .smooth = 0.0015f,
                                         .calm = 1,
                                         .mild = 0.05f,
                                         .eased = 0.5f,
                                         .calm_from = calm_from};
    return calm_mean(level, &hiding, NULL);
}

/* Mild places are attenuated only where enough of the picture is smooth and not flat. */
static void test_mild(void)
{
    CU_ASSERT_DOUBLE_EQUAL(mild_mean(half_busy_level, 0), 0.75, 0.04);
    CU_ASSERT_DOUBLE_EQUAL(mild_mean(half_busy_level, 0.25f), 0.75, 0.04);
    CU_ASSERT_DOUBLE_EQUAL(mild_mean(half_busy_level, 0.9f), 0.5, 0.04);
    CU_ASSERT_DOUBLE_EQUAL(mild_mean(half_flat_level, 0.25f), 0.5, 0.04);
}

/* A colour with grain of some levels, neither smooth nor textured. */
static unsigned tinted_level(const unsigned color[3], uint32_t x, uint32_t y, uint32_t c)
{
    return color[c] + 2 * (unsigned)(hash_of((uint64_t)y << 32 | x, 7) % 3);
}

static unsigned fair_level(uint32_t x, uint32_t y, uint32_t c)
{
    return tinted_level((const unsigned[]){240, 184, 160}, x, y, c);
}

static unsigned dark_level(uint32_t x, uint32_t y, uint32_t c)
{
    return tinted_level((const unsigned[]){90, 56, 37}, x, y, c);
}

static unsigned green_level(uint32_t x, uint32_t y, uint32_t c)
{
    return tinted_level((const unsigned[]){90, 140, 70}, x, y, c);
}

static unsigned grey_level(uint32_t x, uint32_t y, uint32_t c)
{
    return tinted_level((const unsigned[]){140, 140, 140}, x, y, c);
}

static unsigned dusk_level(uint32_t x, uint32_t y, uint32_t c)
{
    return tinted_level((const unsigned[]){60, 60, 60}, x, y, c);
}

static unsigned scarlet_level(uint32_t x, uint32_t y, uint32_t c)
{
    return tinted_level((const unsigned[]){220, 20, 20}, x, y, c);
}

/* Little of it has grain: a drawing with a shaded square of 8x8 blocks of its 28x24.  6x6 of these have no
 * flat neighbour. */
static unsigned shaded_art_level(uint32_t x, uint32_t y, uint32_t c)
{
    static const unsigned color[] = {240, 184, 160};
    return x >= 40 && x < 72 && y >= 32 && y < 64 ? fair_level(x, y, c) : color[c];
}

static const double shaded_share = 64 / (28.0 * 24), shaded_inner_share = 36 / (28.0 * 24);

/* A fifth of it has grain: a photograph with a sky of one colour. */
static unsigned clear_sky_level(uint32_t x, uint32_t y, uint32_t c)
{
    return x < 90 ? 200 : green_level(x, y, c);
}

/* Flat spots of 8 px: one in sixteen of its blocks or, with their neighbours, a quarter. */
static unsigned spotted(const unsigned color[3], uint32_t x, uint32_t y, uint32_t c)
{
    return x % 32 < 8 && y % 32 < 8 ? color[c] : tinted_level(color, x, y, c);
}

static unsigned spotted_sky_level(uint32_t x, uint32_t y, uint32_t c)
{
    return spotted((const unsigned[]){150, 180, 230}, x, y, c);
}

static unsigned spotted_white_level(uint32_t x, uint32_t y, uint32_t c)
{
    return spotted((const unsigned[]){251, 251, 251}, x, y, c);
}

/* A photograph next to an equal area of one colour. */
static unsigned beside_flat_level(uint32_t x, uint32_t y, uint32_t c)
{
    return x < 56 ? 200 : green_level(x, y, c);
}

/* Only flat places count as smooth or mild. */
static const struct canvas_hiding flat_smooth = {
    .knee = 0.2f, .grain = 0.001f, .smooth = 2e-4f, .mild = 2e-4f};

/* Skin, fair or dark, is attenuated by one share, all plain places by another, with grain instead.  In a
 * drawing only shaded places are. */
static void test_skin(void)
{
    struct canvas_hiding of_skin = flat_smooth, of_plain = flat_smooth;
    of_skin.skin = 0.8f;
    of_skin.plain = of_skin.light_plain = 0.03f;
    of_plain.eased = of_plain.light_eased = 0.5f;
    of_plain.plain = of_plain.light_plain = 0.012f;
    double grained;
    CU_ASSERT_DOUBLE_EQUAL(calm_mean(fair_level, &of_skin, &grained), 0.8, 0.02);
    CU_ASSERT(grained > 0.95);
    CU_ASSERT_DOUBLE_EQUAL(calm_mean(dark_level, &of_skin, NULL), 0.8, 0.02);
    CU_ASSERT(calm_mean(green_level, &of_skin, NULL) < 0.01);
    CU_ASSERT(calm_mean(grey_level, &of_skin, NULL) < 0.01);
    CU_ASSERT(calm_mean(scarlet_level, &of_skin, NULL) < 0.01);
    CU_ASSERT_DOUBLE_EQUAL(calm_mean(green_level, &of_plain, &grained), 0.5, 0.02);
    CU_ASSERT(grained > 0.95);
    CU_ASSERT(calm_mean(recorded_level, &of_plain, NULL) < 0.05);
    CU_ASSERT_DOUBLE_EQUAL(calm_mean(shaded_art_level, &of_plain, &grained), 0.5 * shaded_share, 0.004);
    CU_ASSERT_DOUBLE_EQUAL(grained, shaded_inner_share, 0.008);
    CU_ASSERT(calm_mean(shaded_art_level, &of_skin, NULL) < 0.01);
    CU_ASSERT_DOUBLE_EQUAL(calm_mean(clear_sky_level, &of_plain, NULL), 0.5, 0.02);
}

/* Flat spots of a photograph get grain like their surroundings.  They get none next to white, where more than
 * spots is flat, or in a drawing. */
static void test_clear(void)
{
    struct canvas_hiding of_plain = flat_smooth;
    of_plain.eased = of_plain.light_eased = 0.5f;
    of_plain.plain = of_plain.light_plain = 0.012f;
    double grained;
    calm_mean(spotted_sky_level, &of_plain, &grained);
    CU_ASSERT(grained > 0.97);
    calm_mean(spotted_white_level, &of_plain, &grained);
    CU_ASSERT_DOUBLE_EQUAL(grained, 0.75, 0.06);
    calm_mean(beside_flat_level, &of_plain, &grained);
    CU_ASSERT(grained > 0.5 && grained < 0.7);
    calm_mean(shaded_art_level, &of_plain, &grained);
    CU_ASSERT_DOUBLE_EQUAL(grained, shaded_inner_share, 0.008);
}

/* The share of chroma that the perturbation of a picture keeps. */
static double color_kept(level_function level)
{
    struct image image = image_drawn(112, 96, 3, 8, level);
    struct canvas canvas;
    canvas_init(&canvas, &image, 7);
    const struct canvas_masks masks = masks_of(&canvas, &flat_smooth);
    const double color = (double)masks.color;
    free(masks.mask);
    free(image.pixels);
    return color;
}

/* A faint colour: five levels of blue. */
static unsigned bluish_level(uint32_t x, uint32_t y, uint32_t c)
{
    return grey_level(x, y, c) + (c == 2 ? 5 : 0);
}

/* A grey picture stored as RGB gets a grey perturbation, the same as one stored as grey. */
static void test_colorless(void)
{
    CU_ASSERT_DOUBLE_EQUAL(color_kept(grey_level), 0, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(color_kept(bluish_level), 0.5, 0.2);
    CU_ASSERT_DOUBLE_EQUAL(color_kept(green_level), 1, 1e-6);
    for (unsigned strength = 0; strength < protect_strength_count; strength++) {
        struct image grey = image_drawn(112, 96, 1, 8, text_level),
                     rgb = image_drawn(112, 96, 3, 8, text_level);
        struct protect_report report;
        CU_ASSERT_EQUAL(protect_apply(protect, &grey, (enum protect_strength)strength, 7, &report), IW_OK);
        CU_ASSERT_EQUAL(protect_apply(protect, &rgb, (enum protect_strength)strength, 7, &report), IW_OK);
        unsigned different = 0;
        for (uint32_t y = 0; y < grey.height_px; y++)
            for (uint32_t x = 0; x < grey.width_px; x++)
                for (uint32_t c = 0; c < 3; c++)
                    different += sample_get(&grey, x, y, 0) != sample_get(&rgb, x, y, c);
        CU_ASSERT_EQUAL(different, 0);
        free(grey.pixels);
        free(rgb.pixels);
    }
}

/* Light and dark places have separate limits of plainness, and light places have a separate share. */
static void test_light(void)
{
    struct canvas_hiding of_light = flat_smooth, of_all;
    of_light.eased = 0.5f;
    of_light.plain = 0.002f;
    of_light.light_plain = 0.015f;
    of_light.light_eased = 0.9f;
    of_all = of_light;
    of_all.plain = of_all.light_plain;
    double grained;
    CU_ASSERT_DOUBLE_EQUAL(calm_mean(grey_level, &of_light, &grained), 0.9, 0.02);
    CU_ASSERT(grained > 0.95);
    CU_ASSERT(calm_mean(dusk_level, &of_light, &grained) < 0.01);
    CU_ASSERT(grained < 0.01);
    CU_ASSERT_DOUBLE_EQUAL(calm_mean(dusk_level, &of_all, NULL), 0.5, 0.02);
    CU_ASSERT_DOUBLE_EQUAL(calm_mean(shaded_art_level, &of_all, NULL), 0.9 * shaded_share, 0.006);
}

/* The number of blocks of a picture with a peak of so many levels, out of ten. */
static unsigned blocks_at(level_function level, uint8_t wanted)
{
    static const struct canvas_peaks ten = {10, 0, 10};
    struct canvas_hiding of_plain = flat_smooth;
    of_plain.plain = of_plain.light_plain = 0.012f;
    uint8_t levels[28 * 24];
    unsigned count = 0;
    struct image image = image_drawn(112, 96, 3, 8, level);
    struct canvas canvas;
    canvas_init(&canvas, &image, 7);
    const struct canvas_masks masks = masks_of(&canvas, &of_plain);
    canvas_peaks(&canvas, &ten, &of_plain, &masks, levels);
    for (unsigned i = 0; i < sizeof levels; i++)
        count += levels[i] == wanted;
    free(masks.mask);
    free(image.pixels);
    return count;
}

/* Shaded places of a drawing have lower peaks, except the square's corners.  Flat places and texture in it
 * stay unchanged, and so do photographs. */
static void test_shaded(void)
{
    CU_ASSERT_EQUAL(blocks_at(shaded_art_level, 3), 60);
    CU_ASSERT_EQUAL(blocks_at(shaded_art_level, 10), 28 * 24 - 60);
    CU_ASSERT_EQUAL(blocks_at(flat_level, 10), 28 * 24);
    CU_ASSERT_EQUAL(blocks_at(text_level, 10), 28 * 24);
    CU_ASSERT_EQUAL(blocks_at(green_level, 10), 28 * 24);
    CU_ASSERT_EQUAL(blocks_at(clear_sky_level, 10), 28 * 24);
}

/* Grain has root mean square 1 and mean 0, differs between seeds, and is independent of the start of the
 * request. */
static void test_grain(void)
{
    enum { side = 512, first = -32, row = side * grain_colors, values = side * row };
    static float whole[values], other[row];
    struct image image = image_drawn(64, 64, 3, 8, flat_level);
    struct canvas canvas;
    canvas_init(&canvas, &image, 7);
    double mean = 0, power = 0;
    for (int64_t y = 0; y < side; y++)
        canvas_grain(&canvas, &protect->net.grain, y, first, side, whole + y * row);
    for (unsigned i = 0; i < values; i++) {
        mean += (double)whole[i] / values;
        power += (double)whole[i] * (double)whole[i] / values;
    }
    CU_ASSERT(fabs(mean) < 0.02);
    CU_ASSERT(fabs(power - 1) < 0.05);
    for (unsigned begin = 0; begin < 140; begin += 13) {
        float part[101 * grain_colors];
        canvas_grain(&canvas, &protect->net.grain, 77, first + (int64_t)begin, 101, part);
        CU_ASSERT(memcmp(part, whole + 77 * row + begin * grain_colors, sizeof part) == 0);
    }
    canvas_init(&canvas, &image, 8);
    canvas_grain(&canvas, &protect->net.grain, 77, first, side, other);
    CU_ASSERT(memcmp(other, whole + 77 * row, sizeof other) != 0);
    free(image.pixels);
}

static const char *kernels_name(unsigned place)
{
    return conv_kernels_at(place) != NULL ? conv_kernels_at(place)->name : NULL;
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"recorded output on the recorded input", test_recorded_output},
        {"strengths are reached on every shape", test_strengths},
        {"no sample moves by more than the peak of the strength", test_peaks},
        {"no sample moves beyond its block's peak", test_block_peaks},
        {"undo is exact", test_undo},
        {"vectors of samples agree with samples", test_vectors_agree},
        {"a preview equals the rendering", test_preview},
        {"the result depends on the seed", test_seed},
        {"flat parts next to an edge get nothing", test_flat_parts},
        {"half size is means of 2x2 pixels", test_halved},
        {"gradients do not mask", test_ramps},
        {"smooth places", test_smooth},
        {"mild places, where enough is smooth", test_mild},
        {"skin and plain places; in drawings only shaded places", test_skin},
        {"grain on the flat spots of a clear sky", test_clear},
        {"plain places in light areas", test_light},
        {"samples move by less where a drawing is shaded", test_shaded},
        {"grey pictures get a grey perturbation", test_colorless},
        {"grain is independent of the start of the request", test_grain},
        {"names of strengths", test_names},
        CU_TEST_INFO_NULL,
    };
    return runner_run_each(kernels_name, suite_begin, suite_end, tests);
}
