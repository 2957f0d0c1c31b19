/*
 * The anti-AI network: its weights file, its bands and its kernels; all of it with each of the kernels that
 * this processor runs.
 */
#include <imgward/protect.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

#include "engine/protect_net.h"

static uint8_t weights[1 << 20];
static size_t weights_size;
static const struct conv_kernels *kernels; /* of the suite that runs */

/* Each suite takes the kernels after those of the one before it. */
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
    enum { slopes_at = 16 + 32 * net_layer_count };
    static const struct {
        size_t at;
        uint8_t bytes[4];
        const char *why;
    } spoilt[] = {
        {0, "IWPA", "it is not a weights file of the anti-AI engine"},
        {8, {1}, "the weights file is of another version"},
        {8, {2}, "the weights file is of another version"},
        {12, {10}, "the weights file holds another number of layers"},
        {16, "doon", "the weights file names other layers"},
        {32, {3, 0, 32}, "the weights file holds layers of another shape"},
        {36, {3, 0, 1}, "the weights file holds layers of another shape"},
        {40, {1, 2, 3, 4}, "the layer table of the weights file does not fit its data"},
        {slopes_at, {0, 0, 128, 127}, "the slope of a gate in the weights file is not a number"},
        {slopes_at + 4 * 4, {0, 0, 192, 127}, "the slope of a gate in the weights file is not a number"},
        {slopes_at + 5 * 4, {0, 0, 128, 255}, "a gain in the weights file is not a number"},
        {slopes_at + 6 * 4, {0, 0, 192, 127}, "a gain in the weights file is not a number"},
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

/* Where a run's output goes: pairs of rows of pixels, so many places wide. */
struct sums {
    float *values;
    unsigned places;
};

static void sums_pixels(void *data, int64_t y_px, int64_t x_px, unsigned count, float *values)
{
    (void)data;
    for (unsigned i = 0; i < count * 3; i++)
        values[i] = (float)(((y_px + 100) * 37 + (x_px + 100) * 3 + i) % 101) / 101;
}

static void sums_noise(void *data, int64_t row, int64_t column, unsigned count, float *values)
{
    (void)data;
    for (unsigned i = 0; i < count * net_noise_channels; i++)
        values[i] = (float)(((row + 20) * 41 + (column + 20) * net_noise_channels + i) % 103) / 51.5f - 1;
}

/* The same pixels, moved a little and in bounds by what was drawn. */
static void sums_shown(void *data, int64_t y_px, int64_t x_px, unsigned count, const float *values,
                       float *const rows[2])
{
    CU_ASSERT_EQUAL(x_px % net_draw_px, 0);
    for (unsigned row = 0; row < 2; row++) {
        sums_pixels(data, y_px + row, x_px, count * 2, rows[row]);
        for (unsigned i = 0; i < count * 6; i++) {
            float value = values[i / 6 * net_raw_channels + row * net_raw_row + i % 6];
            rows[row][i] += value / sqrtf(1 + value * value) / 20;
        }
    }
}

static void sums_sink(void *data, int64_t y_px, int64_t x_px, unsigned count, const float *values)
{
    struct sums *sums = data;
    memcpy(sums->values + ((size_t)y_px / 2 * sums->places + (size_t)x_px / 2) * net_raw_channels, values,
           sizeof(float) * count * net_raw_channels);
}

static void sums_fill(const struct net *net, unsigned rows, unsigned columns, float *values)
{
    struct sums sums = {values, columns * net_block_px / 2};
    const struct net_ends ends = {sums_pixels, sums_noise, sums_shown, sums_sink, &sums};
    CU_ASSERT_EQUAL(net_run(net, rows, columns, &ends), IW_OK);
}

enum { raw_values_of_block = net_block_px * net_block_px / 4 * net_raw_channels };

/* Bands of any width give the same bits, and the same as a picture that ends where they do. */
static void test_bands_agree(void)
{
    enum { rows = 6, columns = 167, values = rows * columns * raw_values_of_block };
    static float whole[values], banded[values];
    static const unsigned bands[] = {4, 8, 32, 104, 164};
    struct net net;
    const char *why;
    CU_ASSERT_EQUAL_FATAL(net_init(&net, weights, weights_size, &why), IW_OK);
    net.kernels = kernels;
    net.band_blocks = 168;
    sums_fill(&net, rows, columns, whole);
    for (unsigned i = 0; i < sizeof bands / sizeof bands[0]; i++) {
        net.band_blocks = bands[i];
        memset(banded, 0, sizeof banded);
        sums_fill(&net, rows, columns, banded);
        CU_ASSERT_EQUAL(memcmp(whole, banded, sizeof whole), 0);
    }
    net.band_blocks = net_band_blocks;
    for (unsigned narrow = 1; narrow < 20; narrow += 3) {
        sums_fill(&net, rows, narrow, banded);
        for (unsigned row = 0; row < rows * net_block_px / 2; row++)
            CU_ASSERT_EQUAL(memcmp(whole + (size_t)row * columns * raw_values_of_block / (net_block_px / 2),
                                   banded + (size_t)row * narrow * raw_values_of_block / (net_block_px / 2),
                                   sizeof(float) * narrow * raw_values_of_block / (net_block_px / 2)),
                            0);
    }
    net_fini(&net);
}

/* The suite's kernels and the plain ones agree. */
static void test_kernels_agree(void)
{
    enum { rows = 5, columns = 40, values = rows * columns * raw_values_of_block };
    static float fast[values], plain[values];
    struct net net;
    const char *why;
    double worst = 0, power = 0;
    CU_ASSERT_EQUAL_FATAL(net_init(&net, weights, weights_size, &why), IW_OK);
    net.kernels = kernels;
    sums_fill(&net, rows, columns, fast);
    for (unsigned place = 0; conv_kernels_at(place) != NULL; place++)
        net.kernels = conv_kernels_at(place);
    sums_fill(&net, rows, columns, plain);
    for (unsigned i = 0; i < values; i++) {
        worst = fmax(worst, fabs((double)fast[i] - (double)plain[i]));
        power += (double)plain[i] * (double)plain[i];
    }
    CU_ASSERT(power > 0);
    CU_ASSERT(worst < 1e-3 * sqrt(power / values));
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
        {"kernels agree", test_kernels_agree},
        CU_TEST_INFO_NULL,
    };
    return runner_run_each(kernels_name, suite_begin, NULL, tests);
}
