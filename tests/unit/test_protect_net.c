/*
 * The anti-AI network: its weights file, its bands and its kernels.  All tests run with each of the kernels
 * that this processor supports.
 */
#include <imgward/protect.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

#include "engine/protect/protect_draw.h"
#include "engine/protect/protect_net.h"

static uint8_t weights[1 << 20];
static size_t weights_size;
static const struct conv_kernels *kernels; /* of the suite that runs */

/* Each suite takes the next kernels. */
static int suite_begin(void)
{
    static unsigned place;
    char path[4096];
    const char *top = getenv("srcdir");
    snprintf(path, sizeof path, "%s/data/protect.weights", top != NULL ? top : ".");
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return 1;
    weights_size = fread(weights, 1, sizeof weights, file);
    fclose(file);
    kernels = conv_kernels_at(place++);
    return kernels == NULL ? 1 : 0;
}

static void test_weights_refused(void)
{
    enum {
        layers = 2 * net_layer_count,
        fine_at = 24 + 32 * net_layer_count,
        numbers_at = 24 + 32 * layers,
        network_bytes = 331304
    };
    static const struct {
        size_t at;
        uint8_t bytes[4];
        const char *why;
    } spoilt[] = {
        {0, "IWPA", "it is not a weights file of the anti-AI engine"},
        {8, {1}, "the weights file is of another version"},
        {8, {7}, "the weights file is of another version"},
        {12, {1}, "the weights file holds another number of networks"},
        {16, {10}, "the weights file holds another number of layers"},
        {16, {net_layer_count}, "the weights file holds another number of layers"},
        {20, {1, 2, 3, 4}, "the weights file is cut or too long"},
        {24, "fine", "the weights file names other layers"},
        {24 + 7, "doon", "the weights file names other layers"},
        {fine_at, "coar", "the weights file names other layers"},
        {fine_at + 5, "look", "the weights file names other layers"},
        {40, {3, 0, 32}, "the weights file holds layers of another shape"},
        {44, {3, 0, 1}, "the weights file holds layers of another shape"},
        {fine_at + 16, {16, 0, 16}, "the weights file holds layers of another shape"},
        {48, {1, 2, 3, 4}, "the layer table of the weights file does not fit its data"},
        {fine_at + 24, {1, 2, 3, 4}, "the layer table of the weights file does not fit its data"},
        {numbers_at, {0, 0, 128, 127}, "the slope of a gate in the weights file is not a number"},
        {numbers_at + 9 * 4, {0, 0, 192, 127}, "the slope of a gate in the weights file is not a number"},
        {numbers_at + 10 * 4, {0, 0, 128, 255}, "a gain in the weights file is not a number"},
        {numbers_at + 12 * 4, {0, 0, 192, 127}, "a gain in the weights file is not a number"},
        {numbers_at + 13 * 4, {0, 0, 128, 127}, "a share in the weights file is not a number"},
        {numbers_at + 13 * 4, {0, 0, 192, 255}, "a share in the weights file is not a number"},
        {numbers_at + network_bytes,
         {0, 0, 128, 127},
         "the slope of a gate in the weights file is not a number"},
        {numbers_at + network_bytes + 13 * 4,
         {0, 0, 128, 127},
         "a share in the weights file is not a number"},
    };
    struct protect *other;
    const char *why = NULL;
    for (unsigned i = 0; i < sizeof spoilt / sizeof spoilt[0]; i++) {
        uint8_t whole[4];
        memcpy(whole, weights + spoilt[i].at, sizeof whole);
        memcpy(weights + spoilt[i].at, spoilt[i].bytes, sizeof spoilt[i].bytes);
        CU_ASSERT_EQUAL(protect_new(&other, weights, weights_size, &why), IW_WEIGHTS_INVALID);
        CU_ASSERT_PTR_NULL(other);
        CU_ASSERT_STRING_EQUAL(why, spoilt[i].why);
        memcpy(weights + spoilt[i].at, whole, sizeof whole);
    }
    for (size_t size = 0; size < weights_size; size = size * 2 + 1)
        CU_ASSERT_EQUAL(protect_new(&other, weights, size, &why), IW_WEIGHTS_INVALID);
    CU_ASSERT_EQUAL(protect_new(&other, weights, weights_size - 1, &why), IW_WEIGHTS_INVALID);
    CU_ASSERT_STRING_EQUAL(why, "the weights file is cut or too long");
    CU_ASSERT(weights_size < 1000000);
}

/* The destination of the rows of a run's output. */
struct sums {
    float *values;
    size_t row_values;
};

static void sums_pixels(void *data, unsigned cell_px, int64_t y, int64_t x, unsigned count, float *values)
{
    (void)data;
    for (unsigned i = 0; i < count * 3; i++)
        values[i] = (float)(((y + 300) * 37 * cell_px + (x + 300) * 3 + i) % 101) / 101;
}

/* The network reads whole blocks of the mask. */
static void sums_mask(void *data, unsigned cell_px, int64_t y, int64_t x, unsigned count, float *values)
{
    (void)data;
    CU_ASSERT_EQUAL(x * cell_px % net_mask_px, 0);
    CU_ASSERT_EQUAL(count * cell_px % net_mask_px, 0);
    for (unsigned i = 0; i < count * 3; i++)
        values[i] = (float)(((y + 300) * 29 * cell_px + x + 300 + i / 3) % 97 + 1) / 97;
}

static void sums_noise(void *data, int64_t row, int64_t column, unsigned count, float *values)
{
    (void)data;
    for (unsigned i = 0; i < count * net_noise_channels; i++)
        values[i] = (float)(((row + 20) * 41 + (column + 20) * net_noise_channels + i) % 103) / 51.5f - 1;
}

static void sums_sink(void *data, int64_t y_px, int64_t x_px, unsigned count, float *values)
{
    struct sums *sums = data;
    memcpy(sums->values + (size_t)y_px * sums->row_values + (size_t)x_px * 3, values,
           sizeof(float) * count * 3);
}

static void sums_fill(const struct net *net, enum net_network network, unsigned rows, unsigned columns,
                      float *values)
{
    struct sums sums = {values, (size_t)columns * net_block_px * 3};
    const struct net_ends ends = {sums_pixels, sums_mask, sums_noise, sums_sink, &sums,           network,
                                  0.05f,       3,         .8f,        .5f,       PROTECT_STANDARD};
    CU_ASSERT_EQUAL(net_run(net, rows, columns, &ends), IW_OK);
}

enum { values_of_block = net_block_px * net_block_px * 3 };

/* Bands of any width give the same bits, and the same as a picture that ends where they do. */
static void bands_compare(enum net_network network)
{
    enum { rows = 6, columns = 83, row_values = columns * net_block_px * 3 };
    static float whole[rows * columns * values_of_block], banded[rows * columns * values_of_block];
    static const unsigned bands[] = {4, 8, 16, 52, 80};
    struct net net;
    const char *why;
    CU_ASSERT_EQUAL_FATAL(net_init(&net, weights, weights_size, &why), IW_OK);
    net.kernels = kernels;
    net.band_blocks = 84;
    sums_fill(&net, network, rows, columns, whole);
    for (unsigned i = 0; i < sizeof bands / sizeof bands[0]; i++) {
        net.band_blocks = bands[i];
        memset(banded, 0, sizeof banded);
        sums_fill(&net, network, rows, columns, banded);
        CU_ASSERT_EQUAL(memcmp(whole, banded, sizeof whole), 0);
    }
    net.band_blocks = net_band_blocks;
    for (unsigned narrow = 1; narrow < 20; narrow += 3) {
        const size_t narrow_values = (size_t)narrow * net_block_px * 3;
        sums_fill(&net, network, rows, narrow, banded);
        for (size_t row = 0; row < (size_t)rows * net_block_px; row++)
            CU_ASSERT_EQUAL(
                memcmp(whole + row * row_values, banded + row * narrow_values, sizeof(float) * narrow_values),
                0);
    }
    net_fini(&net);
}

static void test_bands_agree(void)
{
    bands_compare(NETWORK_FAINT);
    bands_compare(NETWORK_STRONG);
}

/* The luma and the blue difference of a pixel after draw_blued. */
static void test_blue_is_drawn_where_the_mask_is_low(void)
{
    static const float times[] = {20, 20.0f / 10.5f, 1}; /* of 20, for a mask of 0, a half and 1 */
    float mask[9], pixels[9], luma[3], drawn[3];
    for (unsigned i = 0; i < 9; i++) {
        mask[i] = 0.5f * (float)(i / 3);
        pixels[i] = 0.1f * (float)(i % 4) - 0.15f;
    }
    draw_luma(pixels, 3, luma);
    float before[] = {pixels[2] - luma[0], pixels[5] - luma[1], pixels[8] - luma[2]};
    draw_blued(pixels, mask, 20, 9);
    draw_luma(pixels, 3, drawn);
    for (unsigned i = 0; i < 3; i++) {
        CU_ASSERT_DOUBLE_EQUAL(drawn[i], luma[i], 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(pixels[3 * i + 2] - drawn[i], times[i] * before[i], 1e-5);
    }
}

/* Luma is replaced; blue and red are multiplied by their factors. */
static void test_pixels_are_recast(void)
{
    static const float luma[] = {.3f, -.2f}, blue[] = {2, .5f}, red[] = {1, 3};
    float pixels[] = {.1f, .4f, -.2f, -.5f, .05f, .6f}, before[2], after[2];
    const float reds[] = {pixels[0], pixels[3]}, blues[] = {pixels[2], pixels[5]};
    draw_luma(pixels, 2, before);
    draw_recast(pixels, luma, before, blue, red, 6);
    draw_luma(pixels, 2, after);
    for (unsigned i = 0; i < 2; i++) {
        CU_ASSERT_DOUBLE_EQUAL(after[i], luma[i], 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(pixels[3 * i] - luma[i], red[i] * (reds[i] - before[i]), 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(pixels[3 * i + 2] - luma[i], blue[i] * (blues[i] - before[i]), 1e-6);
    }
}

/* A share of a colour that is constant along a row is removed; luma and finer detail stay.  At most the whole
 * colour is removed. */
static void test_colour_along_rows_is_paled(void)
{
    enum { blocks = 3, values = draw_paled_px * draw_colors };
    static const float color[draw_colors] = {.3f, -.1f, .6f};
    static const float times[draw_paled_px] = {1.5f, 1.5f, 2, 3, 1, 1, 1, 1};
    float row[blocks * values], means[blocks * draw_colors], luma, left_luma;
    for (unsigned i = 0; i < blocks * values; i++) {
        const bool is_even = i / draw_colors % 2 == 0;
        row[i] = color[i % draw_colors] + (i % draw_colors == 2 ? is_even ? .2f : -.2f : 0);
    }
    draw_colors_mean(row, blocks, means);
    draw_luma(color, 1, &luma);
    draw_paled(row + values, .6f, times, means, means, values);
    for (unsigned pixel = 0; pixel < draw_paled_px; pixel++) {
        const float *drawn = row + values + pixel * draw_colors;
        const float left_out = .6f * times[pixel], kept = left_out < 1 ? 1 - left_out : 0;
        const float fine = pixel % 2 == 0 ? .2f : -.2f;
        draw_luma(drawn, 1, &left_luma);
        CU_ASSERT_DOUBLE_EQUAL(drawn[0] - luma, kept * (color[0] - luma), 1e-5);
        CU_ASSERT_DOUBLE_EQUAL(drawn[2] - fine - luma, kept * (color[2] - luma), 1e-5);
        CU_ASSERT_DOUBLE_EQUAL(left_luma, luma + .114f * fine, 1e-5);
    }
}

/* Between different blocks the removed colour follows a spline: the mean of both at the border, three
 * quarters of a block's colour at its centre. */
static void test_colour_between_blocks_is_a_spline(void)
{
    static const float means[3 * draw_colors] = {0, 0, 0, 1, 1, 1, 0, 0, 0};
    static const float times[draw_paled_px] = {1, 1, 1, 1, 1, 1, 1, 1};
    float row[draw_paled_px * draw_colors] = {0};
    draw_paled(row, 1, times, means, means, draw_paled_px * draw_colors);
    for (unsigned pixel = 0; pixel < draw_paled_px; pixel++) {
        const float place = ((float)pixel + .5f) / draw_paled_px;
        CU_ASSERT_DOUBLE_EQUAL(row[pixel * draw_colors + 1], -(.75f - (place - .5f) * (place - .5f)), 1e-6);
    }
}

/* Of strong chroma a larger share is removed: tested with twice and with a hundredth of the bound. */
static void test_strong_colour_is_bounded(void)
{
    static const float means[2 * draw_colors] = {.36f, 0, -.48f, .0018f, 0, -.0024f};
    float bounded[2 * draw_colors];
    draw_colors_bound(means, 2, bounded);
    for (unsigned color = 0; color < draw_colors; color++) {
        CU_ASSERT_DOUBLE_EQUAL(bounded[color], means[color] / sqrtf(5), 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(bounded[draw_colors + color], means[draw_colors + color], 1e-6);
    }
}

/* A row whose bounded colour is kept completely keeps only that. */
static void test_bounded_colour_is_kept(void)
{
    static const float means[3 * draw_colors] = {.4f, 0, 0, .4f, 0, 0, .4f, 0, 0},
                                 bounded[3 * draw_colors] = {.1f, 0, 0, .1f, 0, 0, .1f, 0, 0};
    static const float times[draw_paled_px] = {0};
    float row[draw_paled_px * draw_colors] = {0};
    draw_paled(row, 1, times, means, bounded, draw_paled_px * draw_colors);
    for (unsigned pixel = 0; pixel < draw_paled_px; pixel++)
        CU_ASSERT_DOUBLE_EQUAL(row[pixel * draw_colors], .1f - .4f, 1e-6);
}

/* The suite's kernels and the plain ones agree.  The tolerance is a thousandth of the perturbation or the
 * precision of 32 bits at a sample of 1.  Where a mask is near 0, the next pass reads no more precisely than
 * that. */
static void test_kernels_agree(void)
{
    static const double told_beside_one = 0x1p-24;
    enum { rows = 5, columns = 40, values = rows * columns * values_of_block };
    static float fast[values], plain[values];
    struct net net;
    const char *why;
    double worst = 0, power = 0;
    CU_ASSERT_EQUAL_FATAL(net_init(&net, weights, weights_size, &why), IW_OK);
    net.kernels = kernels;
    sums_fill(&net, NETWORK_FAINT, rows, columns, fast);
    for (unsigned place = 0; conv_kernels_at(place) != NULL; place++)
        net.kernels = conv_kernels_at(place);
    sums_fill(&net, NETWORK_FAINT, rows, columns, plain);
    for (unsigned i = 0; i < values; i++) {
        worst = fmax(worst, fabs((double)fast[i] - (double)plain[i]));
        power += (double)plain[i] * (double)plain[i];
    }
    CU_ASSERT(power > 0);
    CU_ASSERT(worst < fmax(1e-3 * sqrt(power / values), told_beside_one));
    net_fini(&net);
}

static const char *kernels_name(unsigned place)
{
    return conv_kernels_at(place) != NULL ? conv_kernels_at(place)->name : NULL;
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"a wrong or cut weights file is refused", test_weights_refused},
        {"bands agree bit for bit", test_bands_agree},
        {"blue is drawn where the mask is low, and luma stays", test_blue_is_drawn_where_the_mask_is_low},
        {"pixels are recast", test_pixels_are_recast},
        {"colour along rows is paled", test_colour_along_rows_is_paled},
        {"colour between blocks is a spline", test_colour_between_blocks_is_a_spline},
        {"strong colour of rows is bounded", test_strong_colour_is_bounded},
        {"bounded colour of rows is kept", test_bounded_colour_is_kept},
        {"kernels agree", test_kernels_agree},
        CU_TEST_INFO_NULL,
    };
    return runner_run_each(kernels_name, suite_begin, NULL, tests);
}
