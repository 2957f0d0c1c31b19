/*
 * The anti-AI network: the file of weights, the line buffers and the kernels. All tests run with each of the
 * kernels that this processor supports.
 */
#include "engine/protect/protect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

#include "engine/protect/plan.h"

static uint8_t weights[1 << 20];
static size_t weights_size;
static const struct conv_kernels *kernels; /* of the suite that runs */

/* Each suite uses the next kernels. */
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
        first_at = 20,
        fine_at = first_at + 32 * net_layer_count,
        numbers_at = first_at + 32 * layers,
        thresholds_at = numbers_at + 27 * 4
    };
    static const struct {
        size_t at;
        uint8_t bytes[4];
        const char *why;
    } spoilt[] = {
        {0, "IWPA", "it is not a weights file of the anti-AI engine"},
        {8, {1}, "the weights file is of another version"},
        {8, {9}, "the weights file is of another version"},
        {12, {10}, "the weights file has another number of layers"},
        {12, {net_layer_count}, "the weights file has another number of layers"},
        {16, {1, 2, 3, 4}, "the weights file is cut off or too long"},
        {first_at, "fine", "the weights file names other layers"},
        {first_at + 7, "doon", "the weights file names other layers"},
        {fine_at, "coar", "the weights file names other layers"},
        {fine_at + 5, "look", "the weights file names other layers"},
        {first_at + 16, {3, 0, 32}, "the weights file has layers of another shape"},
        {first_at + 20, {3, 0, 1}, "the weights file has layers of another shape"},
        {fine_at + 16, {16, 0, 16}, "the weights file has layers of another shape"},
        {first_at + 24, {1, 2, 3, 4}, "the layer table of the weights file does not fit its data"},
        {fine_at + 24, {1, 2, 3, 4}, "the layer table of the weights file does not fit its data"},
        {numbers_at, {0, 0, 128, 127}, "a number in the weights file is out of range"},
        {numbers_at + 26 * 4, {0, 0, 192, 127}, "a number in the weights file is out of range"},
        {thresholds_at, {0, 0, 0, 0}, "a number in the weights file is out of range"},
        {thresholds_at + 14 * 4, {0, 0, 128, 191}, "a number in the weights file is out of range"},
        {thresholds_at + 24 * 4, {0, 0, 128, 255}, "a number in the weights file is out of range"},
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
    CU_ASSERT_STRING_EQUAL(why, "the weights file is cut off or too long");
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

static void sums_noise(void *data, int64_t row, int64_t column, unsigned count, float *values)
{
    (void)data;
    for (unsigned i = 0; i < count * net_noise_channels; i++)
        values[i] = (float)(((row + 20) * 41 + (column + 20) * net_noise_channels + i) % 103) / 51.5f - 1;
}

static void sums_sink(void *data, unsigned y_px, float *values)
{
    struct sums *sums = data;
    memcpy(sums->values + (size_t)y_px * sums->row_values, values, sizeof(float) * sums->row_values);
}

static void sums_fill(const struct net *net, unsigned rows, unsigned columns, float *values)
{
    struct sums sums = {values, (size_t)columns * net_block_px * 3};
    const struct net_ends ends = {sums_pixels, sums_noise, sums_sink, &sums};
    CU_ASSERT_EQUAL(net_run(net, rows, columns, &ends), IW_OK);
}

enum { values_of_block = net_block_px * net_block_px * 3 };

/* A picture of any width has the same output, bit by bit, as a wider picture that continues it. */
static void test_widths_agree(void)
{
    enum { rows = 6, columns = 83, row_values = columns * net_block_px * 3 };
    static float whole[rows * columns * values_of_block], part[rows * columns * values_of_block];
    static const unsigned widths[] = {1, 4, 7, 8, 10, 13, 16, 19, 24, 52, 80};
    struct net net;
    const char *why;
    CU_ASSERT_EQUAL_FATAL(net_init(&net, weights, weights_size, &why), IW_OK);
    net.kernels = kernels;
    sums_fill(&net, rows, columns, whole);
    for (unsigned i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        const size_t part_values = (size_t)widths[i] * net_block_px * 3;
        sums_fill(&net, rows, widths[i], part);
        for (size_t row = 0; row < (size_t)rows * net_block_px; row++)
            CU_ASSERT_EQUAL(
                memcmp(whole + row * row_values, part + row * part_values, sizeof(float) * part_values), 0);
    }
    net_fini(&net);
}

/* The suite's kernels and the plain ones agree to a thousandth of the perturbation. */
static void test_kernels_agree(void)
{
    enum { rows = 5, columns = 40, values = rows * columns * values_of_block };
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
        {"widths agree bit for bit", test_widths_agree},
        {"kernels agree", test_kernels_agree},
        CU_TEST_INFO_NULL,
    };
    return runner_run_each(kernels_name, suite_begin, NULL, tests);
}
