/*
 * The anti-AI engine: it agrees with the framework, and results keep the visibility on every shape.
 * All tests run with each of the kernels that this processor supports.
 */
#include "engine/protect/protect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

#include "engine/protect/change.h"
#include "engine/protect/plan.h"

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

/* Each suite uses the next kernels. */
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

/* Draws a few levels on the left, as tools/train/record_output.py does. */
static unsigned recorded_half_level(uint32_t x, uint32_t y, uint32_t c)
{
    const unsigned busy = recorded_level(x, y, c);
    return x >= 40 ? 48 + busy % 160 : 150 - 30 * c + busy % 5;
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

/* Draws edges of black letters on white: most of the picture is flat, at the end of the range. */
static unsigned text_level(uint32_t x, uint32_t y, uint32_t c)
{
    (void)c;
    return y % 24 < 12 && (x * 7 + y / 24) % 11 < 4 ? 20 : 250;
}

/* Draws the same in dark blue ink on cream. */
static unsigned ink_level(uint32_t x, uint32_t y, uint32_t c)
{
    static const unsigned ink[] = {20, 24, 70}, paper[] = {250, 244, 226};
    return text_level(x, y, c) < 128 ? ink[c] : paper[c];
}

/* Draws a dark ground whose blue has hardly any room below. */
static unsigned dark_level(uint32_t x, uint32_t y, uint32_t c)
{
    return c < 2 ? 20 + recorded_level(x, y, c) / 2 : recorded_level(x, y, c) / 16;
}

/* Draws discs of some colours on others. */
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

/* ---- agreement with the framework */

enum { recorded_width = 75, recorded_height = 58, recorded_samples = recorded_width * recorded_height * 3 };

static const float *recorded_read(void)
{
    static float recorded[recorded_samples];
    CU_ASSERT_EQUAL_FATAL(
        file_read("tests/unit/engine/protect/protect_recorded.f32", recorded, sizeof recorded),
        sizeof recorded);
    return recorded;
}

/* Returns the root mean square of the distance to the recorded perturbation, relative to that of the
 * recorded. */
static double recorded_distance(const float *recorded, const float *moved)
{
    double apart = 0, power = 0;
    for (unsigned i = 0; i < recorded_samples; i++) {
        apart += pow((double)moved[i] - (double)recorded[i], 2);
        power += pow((double)recorded[i], 2);
    }
    if (getenv("SHOW") != NULL)
        printf("  distance %.5f\n", sqrt(apart / power));
    return sqrt(apart / power);
}

/* The gradient and the step of the recorded picture as floats, padded. */
struct floats {
    struct canvas canvas;
    float *gradient, *step;
};

static void floats_pixels(void *data, unsigned cell_px, int64_t y, int64_t x, unsigned count, float *values)
{
    const struct floats *floats = data;
    (cell_px == 1 ? canvas_pixels : canvas_pixels_halved)(&floats->canvas, y, x, count, values);
}

static void floats_noise(void *data, int64_t row, int64_t column, unsigned count, float *values)
{
    const struct floats *floats = data;
    for (unsigned i = 0; i < count; i++)
        canvas_noise(&floats->canvas, row, column + i, values + (size_t)i * net_noise_channels);
}

static size_t floats_at(const struct floats *floats, int64_t y, int64_t x)
{
    return ((size_t)y * floats->canvas.width_px + (size_t)x) * 3;
}

static void floats_sink(void *data, unsigned y, float *values)
{
    struct floats *floats = data;
    memcpy(floats->gradient + floats_at(floats, y, 0), values, sizeof(float) * floats->canvas.width_px * 3);
}

static void floats_get(void *data, unsigned y, float *values)
{
    const struct floats *floats = data;
    memcpy(values, floats->gradient + floats_at(floats, y, 0), sizeof(float) * floats->canvas.width_px * 3);
}

static void floats_put(void *data, unsigned y, float *values)
{
    const struct floats *floats = data;
    memcpy(floats->step + floats_at(floats, y, 0), values, sizeof(float) * floats->canvas.width_px * 3);
}

/* Computes the step at its amplitude, in levels. The recorded picture has enough headroom everywhere. */
static void floats_moved(const struct floats *floats, const struct visibility *visibility, double total,
                         float *moved)
{
    float shares[128], line[128];
    for (unsigned y = 0; y < recorded_height; y++) {
        visibility_row(&visibility->peaks, visibility_cell_px, y, line, shares);
        for (unsigned i = 0; i < recorded_width * 3; i++)
            *moved++ = floats->step[floats_at(floats, y, 0) + i] * shares[i / 3] * 255 *
                       protect->net.weights.model.budgets[PROTECT_STANDARD] / (float)total;
    }
}

/* Network, thresholds, step and amplitude agree with the framework, except for the rounding of floats. */
static void test_recorded_steps(void)
{
    static float moved[recorded_samples];
    struct image image = image_drawn(recorded_width, recorded_height, 3, 8, recorded_half_level);
    struct floats floats;
    struct visibility visibility;
    const struct net_ends ends = {floats_pixels, floats_noise, floats_sink, &floats};
    const struct visibility_ends steps = {floats_get, floats_put, &floats};
    canvas_init(&floats.canvas, &image, 7);
    const unsigned width = floats.canvas.width_px, height = floats.canvas.height_px;
    floats.gradient = malloc((size_t)width * height * 3 * sizeof(float));
    floats.step = malloc((size_t)width * height * 3 * sizeof(float));
    CU_ASSERT_EQUAL_FATAL(visibility_init(&visibility, &protect->net.weights.model, &floats.canvas), IW_OK);
    CU_ASSERT_EQUAL_FATAL(net_run(&protect->net, height / net_block_px, width / net_block_px, &ends), IW_OK);
    CU_ASSERT_EQUAL_FATAL(visibility_step(&visibility, &steps), IW_OK);
    const double total = visibility_even(&visibility);
    floats_moved(&floats, &visibility, total, moved);
    CU_ASSERT(recorded_distance(recorded_read(), moved) < 1e-3);
    visibility_fini(&visibility);
    free(floats.gradient);
    free(floats.step);
    free(image.pixels);
}

/* The result differs from the recorded by rounding only: units have three bits, 16-bit samples a quarter of a
 * level. */
static void test_recorded_output(void)
{
    static float moved[recorded_samples];
    struct image image = image_drawn(recorded_width, recorded_height, 3, 16, recorded_half_level),
                 after = image_copy(&image);
    struct protect_report report;
    CU_ASSERT_EQUAL_FATAL(protect_apply(protect, &after, PROTECT_STANDARD, 7, &report), IW_OK);
    for (unsigned i = 0; i < recorded_samples; i++)
        moved[i] = (float)(((uint16_t *)after.pixels)[i] - ((uint16_t *)image.pixels)[i]) / 257;
    CU_ASSERT(recorded_distance(recorded_read(), moved) < 0.1);
    free(image.pixels);
    free(after.pixels);
}

/* A run of the visibility model on the part of a tall picture that begins at first_row. */
struct part {
    struct floats floats;
    unsigned first_row;
};

enum { part_width = 96, part_height = 480, part_shift = 96, part_reach = 224 };

static void part_get(void *data, unsigned y, float *values)
{
    const struct part *part = data;
    for (unsigned i = 0; i < part_width * 3; i++)
        values[i] = (float)recorded_level(i / 3, y + part->first_row, i % 3) / 255 - 0.5f;
}

static void part_put(void *data, unsigned y, float *values)
{
    floats_put(&((struct part *)data)->floats, y, values);
}

/* Returns the step of a part of the tall picture, and copies the peaks. */
static float *part_step(unsigned first_row, float *peaks)
{
    struct image whole = image_drawn(part_width, part_height, 3, 8, recorded_level), image = whole;
    struct part part = {.first_row = first_row};
    struct visibility visibility;
    const struct visibility_ends ends = {part_get, part_put, &part};
    image.height_px = part_height - first_row;
    image.pixels = (uint8_t *)whole.pixels + first_row * whole.stride_bytes;
    canvas_init(&part.floats.canvas, &image, 0);
    part.floats.step = malloc((size_t)part_width * image.height_px * 3 * sizeof(float));
    CU_ASSERT_EQUAL_FATAL(visibility_init(&visibility, &protect->net.weights.model, &part.floats.canvas),
                          IW_OK);
    CU_ASSERT_EQUAL_FATAL(visibility_step(&visibility, &ends), IW_OK);
    memcpy(peaks, visibility.peaks.values, sizeof(float) * visibility.peaks.columns * visibility.peaks.rows);
    visibility_fini(&visibility);
    free(whole.pixels);
    return part.floats.step;
}

/* Far from the upper edge, the step and the visibility of a row do not depend on the position in the run. */
static void test_rows_agree(void)
{
    enum { row_values = part_width * 3, cells = part_width / visibility_cell_px };
    static float peaks[part_height * cells], lower_peaks[part_height * cells];
    float *step = part_step(0, peaks), *lower = part_step(part_shift, lower_peaks);
    for (unsigned y = part_reach; y < part_height - part_shift; y++)
        CU_ASSERT_EQUAL(
            memcmp(step + (y + part_shift) * row_values, lower + y * row_values, sizeof(float) * row_values),
            0);
    for (unsigned y = part_reach / visibility_cell_px; y < (part_height - part_shift) / visibility_cell_px;
         y++)
        CU_ASSERT_EQUAL(memcmp(peaks + (y + part_shift / visibility_cell_px) * cells, lower_peaks + y * cells,
                               sizeof(float) * cells),
                        0);
    free(step);
    free(lower);
}

/* ---- visibility */

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

/* Returns the visibility of the difference of two pictures by the engine's model. */
static double visibility_between(const struct image *before, const struct image *after)
{
    const float top = before->depth_bits == 8 ? 1 : 257;
    const uint32_t colors = image_has_color(before) ? 3 : 1;
    float *levels = malloc(sizeof(float) * before->width_px * colors);
    struct visibility visibility;
    struct visibility_run *run;
    struct canvas canvas;
    canvas_init(&canvas, before, 0);
    CU_ASSERT_EQUAL_FATAL(visibility_init(&visibility, &protect->net.weights.model, &canvas), IW_OK);
    CU_ASSERT_EQUAL_FATAL(visibility_run_new(&run, &visibility), IW_OK);
    for (uint32_t y = 0; y < before->height_px; y++) {
        for (uint32_t i = 0; i < before->width_px * colors; i++)
            levels[i] = ((float)sample_get(after, i / colors, y, i % colors) -
                         (float)sample_get(before, i / colors, y, i % colors)) /
                        top;
        visibility_run_row(run, levels, before->width_px, colors);
    }
    const double total = visibility_run_end(run);
    visibility_run_free(run);
    visibility_fini(&visibility);
    free(levels);
    return total;
}

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

/* Busy shapes get the visibility of the strength, and no shape gets more, except by rounding. The report has
 * the PSNR of the pixels. A higher strength has a lower PSNR. */
static void test_strengths(void)
{
    for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct image image = image_drawn(shapes[i].width, shapes[i].height, shapes[i].channels,
                                         shapes[i].depth, shapes[i].level);
        double before_db = 99;
        for (unsigned strength = 0; strength < protect_strength_count; strength++) {
            struct image after = image_copy(&image);
            struct protect_report report;
            CU_ASSERT_EQUAL(protect_apply(protect, &after, (enum protect_strength)strength, 99 + i, &report),
                            IW_OK);
            const double seen = visibility_between(&image, &after);
            const bool is_busy = shapes[i].level == recorded_level && shapes[i].width > 100 &&
                                 shapes[i].height > 100 && !image_has_alpha(&image);
            if (getenv("SHOW") != NULL)
                printf("  %s %u: visibility %.2f of %.2f, PSNR %.2f, share %.2f\n", shapes[i].name, strength,
                       seen, report.visibility, report.psnr_db, report.share);
            CU_ASSERT(seen < 1.25 * report.visibility);
            CU_ASSERT(!is_busy || seen > 0.8 * report.visibility);
            CU_ASSERT(!is_busy || protect_percent(&report) >= 50);
            CU_ASSERT(fabs(change_psnr(&image, &after) - report.psnr_db) < 0.01);
            CU_ASSERT(report.psnr_db <= before_db);
            before_db = report.psnr_db;
            if (image_has_alpha(&image))
                CU_ASSERT(alpha_same(&image, &after));
            free(after.pixels);
        }
        free(image.pixels);
    }
}

/* Near black and white, a perturbation has the same bound in both directions. */
static void test_headroom(void)
{
    struct image image = image_drawn(160, 120, 3, 8, text_level), after = image_copy(&image);
    struct protect_report report;
    CU_ASSERT_EQUAL(protect_apply(protect, &after, PROTECT_HIGH, 5, &report), IW_OK);
    for (uint32_t y = 0; y < image.height_px; y++)
        for (uint32_t x = 0; x < image.width_px; x++)
            for (uint32_t c = 0; c < 3; c++) {
                const int level = (int)sample_get(&image, x, y, c);
                const int moved = abs((int)sample_get(&after, x, y, c) - level);
                const int room = level < 128 ? level : 255 - level;
                CU_ASSERT(moved <= room + (int)ceilf(255 * protect->net.weights.model.slack));
            }
    free(image.pixels);
    free(after.pixels);
}

/* Changes of blue near black are cut on one side. Samples with room undo the tint. */
static void test_tint(void)
{
    struct image image = image_drawn(256, 256, 3, 8, dark_level), after = image_copy(&image);
    struct protect_report report;
    double tint = 0;
    CU_ASSERT_EQUAL(protect_apply(protect, &after, PROTECT_HIGH, 5, &report), IW_OK);
    for (uint32_t y = 0; y < image.height_px; y++)
        for (uint32_t x = 0; x < image.width_px; x++)
            tint += (double)sample_get(&after, x, y, 2) - sample_get(&image, x, y, 2);
    tint /= 256 * 256;
    if (getenv("SHOW") != NULL)
        printf("  tint %.2f, share %.2f\n", tint, report.share);
    CU_ASSERT(fabs(tint) < 0.2); /* .39 if nothing undoes it */
    free(image.pixels);
    free(after.pixels);
}

static void test_undo(void)
{
    for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct image image = image_drawn(shapes[i].width, shapes[i].height, shapes[i].channels,
                                         shapes[i].depth, shapes[i].level);
        struct image after = image_copy(&image);
        struct protect_plan *plan;
        struct protect_report report;
        CU_ASSERT_EQUAL_FATAL(protect_plan_new(&plan, protect, &image, i), IW_OK);
        for (double scale = 0.5; scale < 5; scale *= 1.7) {
            change_add(plan, &after, PROTECT_HIGH, scale, &report);
            change_undo(plan, &after);
            CU_ASSERT(image_same(&image, &after));
        }
        protect_plan_free(plan);
        free(after.pixels);
        free(image.pixels);
    }
}

enum { share_width = 150, share_rows = 101 };

/* Draws a row of a change: waves of several octaves, in three colours. */
static void share_row_draw(unsigned y, float *levels)
{
    for (unsigned x = 0; x < share_width; x++)
        for (unsigned c = 0; c < 3; c++)
            levels[3 * x + c] =
                sinf((float)(x + c) * 1.9f) + sinf((float)(x + 2 * y + 9 * c) / 7) + sinf((float)y / 30);
}

/* Returns the sums of a wanted change and of the kept change: all columns scaled, odd columns also by odd. */
static struct share_sums share_drawn(float scale, float odd)
{
    float *memory = calloc(share_floats(share_width, 3), sizeof *memory);
    float wanted[3 * share_width], change[3 * share_width];
    struct share_run run;
    CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
    share_begin(&run, share_width, 3, memory);
    for (unsigned y = 0; y < share_rows; y++) {
        share_row_draw(y, wanted);
        for (unsigned i = 0; i < 3 * share_width; i++)
            change[i] = scale * wanted[i] * (i / 3 % 2 == 0 ? 1 : odd);
        share_wanted(&run, wanted);
        share_change(&run, change);
    }
    free(memory);
    return share_end(&run);
}

/* The share of the whole change is 1 and that of no change 0; a smaller change has a smaller share. */
static void test_share(void)
{
    const struct share_sums whole = share_drawn(1, 1), halved = share_drawn(1, 0);
    double before = 0;
    CU_ASSERT_DOUBLE_EQUAL(share_estimate(&whole, 1, &whole, 1), 1, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(share_estimate(&whole, 2, &whole, 2), .5, 1e-6); /* a strength twice as large */
    for (unsigned step = 0; step <= 10; step++) {
        const float scale = (float)step / 10;
        const struct share_sums sums = share_drawn(scale, 1);
        const double share = share_estimate(&sums, 1, &whole, 1);
        CU_ASSERT_DOUBLE_EQUAL(share, (double)scale, 1e-3);
        CU_ASSERT(step == 0 ? share <= 0 : share > before);
        before = share;
    }
    const double share = share_estimate(&halved, 1, &whole, 1);
    CU_ASSERT(share > .4 && share < .9);
}

/* Compares a picture with a version. */
static struct protect_report compared(struct protect_plan *plan, const struct image *image,
                                      const struct image *version, double budget)
{
    struct protect_report report = {.visibility = budget};
    struct change_sums sums;
    CU_ASSERT_EQUAL_FATAL(change_compare_begin(plan, image, &sums), IW_OK);
    change_compare(plan, image, 0, version, &sums);
    change_compare_end(plan, &sums, &report);
    return report;
}

/* Adds noise, as an encoder does, to a copy. */
static struct image image_noisy(const struct image *image)
{
    struct image noisy = image_copy(image);
    uint32_t random = 1;
    for (uint32_t y = 0; y < image->height_px; y++)
        for (uint32_t x = 0; x < image->width_px; x++)
            for (uint32_t c = 0; c < image->channels; c++) {
                const int level = (int)sample_get(image, x, y, c) +
                                  (int)((random = random * 1664525 + 1013904223) >> 16) % 7 - 3;
                sample_set(&noisy, x, y, c, (unsigned)(level < 0 ? 0 : level > 255 ? 255 : level));
            }
    return noisy;
}

/* Noise does not count as a share of the protection. */
static void test_noise(void)
{
    struct image image = image_drawn(203, 117, 3, 8, smooth_level), after = image_copy(&image),
                 noisy = image_noisy(&image);
    struct protect_plan *plan;
    struct protect_report report;
    CU_ASSERT_EQUAL_FATAL(protect_plan_new(&plan, protect, &image, 3), IW_OK);
    change_add(plan, &after, PROTECT_LOW, 1, &report);
    const struct protect_report none = compared(plan, &image, &noisy, report.visibility);
    if (getenv("SHOW") != NULL)
        printf("  noise: PSNR %.2f, share %.3f\n", none.psnr_db, none.share);
    CU_ASSERT(none.share < .05);
    protect_plan_free(plan);
    free(image.pixels);
    free(after.pixels);
    free(noisy.pixels);
}

/* A comparison with the rendered rows changes nothing in the report; in the original, no share is left. */
static void compare_look(unsigned at)
{
    struct image image = image_drawn(shapes[at].width, shapes[at].height, shapes[at].channels,
                                     shapes[at].depth, shapes[at].level),
                 after = image_copy(&image);
    struct protect_plan *plan;
    struct protect_report report;
    CU_ASSERT_EQUAL_FATAL(protect_plan_new(&plan, protect, &image, 3), IW_OK);
    change_add(plan, &after, PROTECT_STANDARD, 1, &report);
    const bool is_exact = shapes[at].depth == 8; /* levels of 16 bits are rounded */
    const struct protect_report same = compared(plan, &image, &after, report.visibility),
                                lost = compared(plan, &image, &image, report.visibility);
    if (getenv("SHOW") != NULL)
        printf("  %s: share %.3f, compared %.3f; shown %.3f, %.3f\n", shapes[at].name, report.share,
               same.share, report.shown, same.shown);
    CU_ASSERT_DOUBLE_EQUAL(same.share, report.share, .01); /* the wanted change is bounded by now */
    CU_ASSERT_DOUBLE_EQUAL(same.psnr_db, report.psnr_db, is_exact ? 1e-9 : 1e-4);
    CU_ASSERT_DOUBLE_EQUAL(same.shown, visibility_between(&image, &after), is_exact ? 1e-6 : 1e-5);
    CU_ASSERT(at > 0 || fabs(same.shown - report.shown) < .1 * report.shown);
    CU_ASSERT(report.shown <= report.visibility);
    CU_ASSERT(lost.share <= 0 && protect_percent(&lost) == 0 && lost.psnr_db >= 99 && lost.shown < 1e-3);
    protect_plan_free(plan);
    free(image.pixels);
    free(after.pixels);
}

static void test_compare(void)
{
    for (unsigned at = 0; at < sizeof shapes / sizeof shapes[0]; at++)
        compare_look(at);
}

static struct image stripes_copy(const struct image *image, const struct image_stripes *stripes)
{
    struct image part = image_made(image->width_px, stripes->height_px, image->channels, image->depth_bits);
    for (uint32_t y = 0; y < part.height_px; y++)
        memcpy(image_row(&part, y), image_row(image, image_stripes_row(stripes, y)), part.stride_bytes);
    return part;
}

/* Stripes represent the picture: their visibility and share are nearly those of all rows. */
static void test_stripes(void)
{
    const struct image_stripes stripes = {3, 4 * image_stripe_px};
    struct image image = image_drawn(160, 3 * 4 * image_stripe_px, 3, 8, smooth_level),
                 after = image_copy(&image);
    struct protect_plan *plan;
    struct protect_report report;
    CU_ASSERT_EQUAL(image_stripes_row(&stripes, image_stripe_px), 4 * image_stripe_px);
    CU_ASSERT_EQUAL_FATAL(protect_plan_new(&plan, protect, &image, 3), IW_OK);
    change_add(plan, &after, PROTECT_STANDARD, 1, &report);
    struct image part = stripes_copy(&image, &stripes), changed = stripes_copy(&after, &stripes);
    const struct protect_report whole = compared(plan, &image, &after, report.visibility);
    change_stripes(plan, stripes);
    const struct protect_report seen = compared(plan, &part, &changed, report.visibility);
    change_stripes(plan, (struct image_stripes){0});
    const struct protect_report again = compared(plan, &image, &after, report.visibility);
    if (getenv("SHOW") != NULL)
        printf("  stripes: shown %.4f of %.4f, share %.4f of %.4f\n", seen.shown, whole.shown, seen.share,
               whole.share);
    CU_ASSERT_DOUBLE_EQUAL(seen.shown, whole.shown, .05 * whole.shown);
    CU_ASSERT_DOUBLE_EQUAL(seen.share, whole.share, .03);
    CU_ASSERT_DOUBLE_EQUAL(again.shown, whole.shown, 1e-9);
    protect_plan_free(plan);
    free(image.pixels);
    free(after.pixels);
    free(part.pixels);
    free(changed.pixels);
}

/* ---- pictures */

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

static void test_names(void)
{
    enum protect_strength strength;
    for (unsigned i = 0; i < protect_strength_count; i++) {
        CU_ASSERT(protect_strength_by_name(protect_strength_name((enum protect_strength)i), &strength));
        CU_ASSERT_EQUAL(strength, i);
    }
    CU_ASSERT(!protect_strength_by_name("strong", &strength));
}

/* Returns the mean of 2x2 pixels of two rows for one colour. */
static double mean_of(const float *upper, const float *lower, unsigned at)
{
    const unsigned left = at / 3 * 6 + at % 3, right = left + 3;
    return ((double)upper[left] + (double)upper[right] + (double)lower[left] + (double)lower[right]) / 4;
}

/* At half size, a pixel is the mean of 2x2 pixels, inside the picture and outside. */
static void test_halved(void)
{
    enum { beyond = 12, width = 75, height = 58, count = 2 * beyond + 56, values = count * 3 };
    float whole[2][2 * values], half[values];
    struct image image = image_drawn(width, height, 3, 8, recorded_level);
    struct canvas canvas;
    canvas_init(&canvas, &image, 7);
    double worst = 0;
    for (int64_t y = -beyond; y < height / 2 + beyond; y++) {
        for (unsigned i = 0; i < 2; i++)
            canvas_pixels(&canvas, 2 * y + i, -2 * beyond, 2 * count, whole[i]);
        canvas_pixels_halved(&canvas, y, -beyond, count, half);
        for (unsigned at = 0; at < values; at++)
            worst = fmax(worst, fabs(mean_of(whole[0], whole[1], at) - (double)half[at]));
    }
    CU_ASSERT(worst < 1e-6);
    free(image.pixels);
}

/* A grey picture that is stored as RGB gets the same luma perturbation as if it were stored as grey. */
static void test_colorless(void)
{
    struct image grey = image_drawn(112, 96, 1, 8, text_level), rgb = image_drawn(112, 96, 3, 8, text_level);
    struct protect_report report;
    CU_ASSERT_EQUAL(protect_apply(protect, &grey, PROTECT_HIGH, 7, &report), IW_OK);
    CU_ASSERT_EQUAL(protect_apply(protect, &rgb, PROTECT_HIGH, 7, &report), IW_OK);
    unsigned coloured = 0, different = 0;
    for (uint32_t y = 0; y < grey.height_px; y++) {
        for (uint32_t x = 0; x < grey.width_px; x++) {
            const int level = (int)sample_get(&rgb, x, y, 0);
            coloured += level != (int)sample_get(&rgb, x, y, 1) || level != (int)sample_get(&rgb, x, y, 2);
            different += level != (int)sample_get(&grey, x, y, 0);
        }
    }
    CU_ASSERT_EQUAL(coloured, 0);
    CU_ASSERT_EQUAL(different, 0);
    free(grey.pixels);
    free(rgb.pixels);
}

static const char *kernels_name(unsigned place)
{
    return conv_kernels_at(place) != NULL ? conv_kernels_at(place)->name : NULL;
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"recorded steps on the recorded input", test_recorded_steps},
        {"recorded output on the recorded input", test_recorded_output},
        {"strengths have their visibility on every shape", test_strengths},
        {"changes near black and white are bounded alike", test_headroom},
        {"a change near black has no tint", test_tint},
        {"rows of the step agree bit for bit", test_rows_agree},
        {"undo is exact", test_undo},
        {"comparison with a version of the picture", test_compare},
        {"comparison of stripes", test_stripes},
        {"the share of a change", test_share},
        {"the share of noise", test_noise},
        {"the result depends on the seed", test_seed},
        {"half size is means of 2x2 pixels", test_halved},
        {"grey pictures get a grey perturbation", test_colorless},
        {"names of strengths", test_names},
        CU_TEST_INFO_NULL,
    };
    return runner_run_each(kernels_name, suite_begin, suite_end, tests);
}
