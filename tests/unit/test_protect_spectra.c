/* Companding of the anti-AI engine's perturbation towards the spectrum of the picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

#include "engine/protect/protect_spectra.h"

/* Rows of windows over a plane of width x height.  Its complete part begins and ends one step further in. */
enum { windows = 8, width = (windows + 1) * spectra_step, rows = 6, height = (rows + 1) * spectra_step };

typedef float plane[height][width];

static struct spectra spectra;
static struct spectra_table table;

/* Gains that change nothing. */
static void table_reset(void)
{
    float *gains = &table.cells[0][0][0][0];
    for (unsigned i = 0; i < sizeof table / sizeof *gains; i++)
        gains[i] = 1;
}

static void gained_fill(plane drawn, plane picture, float level, plane sums,
                        float fields[rows][windows][spectra_field_count])
{
    const struct spectra_way way = {level, &table};
    spectra_init(&spectra);
    memset(sums, 0, sizeof(plane));
    for (unsigned row = 0; row < rows; row++) {
        const unsigned y = row * spectra_step;
        spectra_compand(&spectra, drawn[y], picture[y], width, windows, &way, sums[y], fields[row][0]);
    }
}

static void companded_fill(plane drawn, plane picture, float level, plane sums)
{
    float fields[rows][windows][spectra_field_count];
    table_reset();
    gained_fill(drawn, picture, level, sums, fields);
}

/* Deterministic noise, about -size..size. */
static void noise_add(plane values, float size, unsigned seed)
{
    for (unsigned y = 0; y < height; y++) {
        for (unsigned x = 0; x < width; x++) {
            seed = seed * 1664525 + 1013904223;
            values[y][x] += size * ((float)(seed >> 8) / (1 << 23) - 1);
        }
    }
}

/* Upright strokes, period pixels apart. */
static void strokes_add(plane values, float size, unsigned period)
{
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++)
            values[y][x] += x / (period / 2) % 2 == 0 ? size : -size;
}

/* The mean square where windows overlap on all sides. */
static double power_of(plane values)
{
    double sum = 0;
    for (unsigned y = spectra_step; y < height - spectra_step; y++)
        for (unsigned x = spectra_step; x < width - spectra_step; x++)
            sum += (double)values[y][x] * (double)values[y][x];
    return sum / ((height - spectra_side) * (width - spectra_side));
}

static void test_nothing_stays_nothing(void)
{
    static plane drawn, picture, sums;
    noise_add(picture, .3f, 1);
    companded_fill(drawn, picture, 1, sums);
    CU_ASSERT(power_of(sums) == 0);
}

/* A perturbation of 256 times the amplitude becomes 2^7.5 = 181 times as large, in the same places. */
static void test_power_of_fifteen_sixteenths(void)
{
    static const double times = 181.01934;
    static plane drawn, louder, picture, sums, louder_sums;
    double worst = 0;
    noise_add(picture, .05f, 1);
    noise_add(drawn, .05f, 2);
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++)
            louder[y][x] = 256 * drawn[y][x];
    companded_fill(drawn, picture, 1, sums);
    companded_fill(louder, picture, 1, louder_sums);
    for (unsigned y = spectra_step; y < height - spectra_step; y++)
        for (unsigned x = spectra_step; x < width - spectra_step; x++)
            worst = fmax(worst, fabs((double)louder_sums[y][x] - times * (double)sums[y][x]));
    CU_ASSERT(power_of(sums) > 0);
    CU_ASSERT(worst < 0.002 * sqrt(power_of(louder_sums)));
}

/* The companded power of a pattern relative to noise of the same power, over a picture. */
static double strokes_for_noise(plane picture)
{
    static plane strokes, noise, strokes_sums, noise_sums;
    memset(strokes, 0, sizeof strokes);
    memset(noise, 0, sizeof noise);
    strokes_add(strokes, .01f, 8);
    noise_add(noise, .01f * sqrtf(3), 3);
    companded_fill(strokes, picture, 1, strokes_sums);
    companded_fill(noise, picture, 1, noise_sums);
    return power_of(strokes_sums) / power_of(noise_sums) * power_of(noise) / power_of(strokes);
}

/* Grain masks noise better than strokes; strokes mask strokes better than grain does. */
static void test_like_hides_like(void)
{
    static plane grain, stroked;
    noise_add(grain, .02f, 1);
    strokes_add(stroked, .02f / sqrtf(3), 8);
    const double in_grain = strokes_for_noise(grain), in_strokes = strokes_for_noise(stroked);
    CU_ASSERT(in_grain < 0.85);
    CU_ASSERT(in_strokes > 1.1 * in_grain);
}

/* The brightness of a picture has no effect. */
static void test_brightness_hides_nothing(void)
{
    static plane drawn, dark, bright, sums, bright_sums;
    double worst = 0;
    noise_add(drawn, .01f, 4);
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++)
            bright[y][x] = .9f;
    companded_fill(drawn, dark, 1, sums);
    companded_fill(drawn, bright, 1, bright_sums);
    for (unsigned y = spectra_step; y < height - spectra_step; y++)
        for (unsigned x = spectra_step; x < width - spectra_step; x++)
            worst = fmax(worst, fabs((double)bright_sums[y][x] - (double)sums[y][x]));
    CU_ASSERT(worst < 1e-5 * sqrt(power_of(sums)));
}

/* The same picture and perturbation, transposed: level lines become upright. */
static void transpose(plane values)
{
    static plane before;
    memcpy(before, values, sizeof before);
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++)
            values[y][x] = before[x % height][y];
}

/* A quarter of the power of level strokes is left where half of the amplitude is; upright strokes keep
 * all. */
static void test_level_lines(void)
{
    static plane drawn, picture, all, left;
    noise_add(picture, .05f, 1);
    strokes_add(drawn, .01f, 8);
    companded_fill(drawn, picture, 1, all);
    companded_fill(drawn, picture, .5f, left);
    CU_ASSERT(power_of(left) > .99 * power_of(all));
    transpose(drawn);
    companded_fill(drawn, picture, 1, all);
    companded_fill(drawn, picture, .5f, left);
    CU_ASSERT(power_of(left) < .27 * power_of(all) && power_of(left) > .23 * power_of(all));
}

/* Every frequency belongs to a group: upright strokes, slanting ones or level lines of a radial band. */
static void test_groups(void)
{
    unsigned counts[spectra_groups] = {0};
    spectra_init(&spectra);
    for (unsigned down = 0; down < spectra_bins; down++)
        for (unsigned across = 0; across < spectra_bins; across++)
            counts[spectra.groups[down][across]]++;
    for (unsigned group = 0; group < spectra_groups; group++)
        CU_ASSERT(counts[group] > 0);
    CU_ASSERT_EQUAL(spectra.groups[0][7] % spectra_turns, 0);
    CU_ASSERT_EQUAL(spectra.groups[3][3] % spectra_turns, 1);
    CU_ASSERT_EQUAL(spectra.groups[7][0] % spectra_turns, 2);
    CU_ASSERT_EQUAL(spectra.groups[0][0], 1);
    CU_ASSERT_EQUAL(spectra.groups[7][7], spectra_groups - 2);
}

/* A gain of upright strokes reduces upright strokes and keeps level ones. */
static void test_gain_of_a_group(void)
{
    static plane drawn, picture, all, left;
    float fields[rows][windows][spectra_field_count];
    noise_add(picture, .05f, 1);
    strokes_add(drawn, .01f, 8);
    for (unsigned is_level = 0; is_level < 2; is_level++) {
        companded_fill(drawn, picture, 1, all);
        float *gains = &table.cells[0][0][0][0];
        for (unsigned i = 0; i < sizeof table / sizeof *gains; i++)
            if (i % spectra_lanes < spectra_groups && i % spectra_lanes % spectra_turns == 0)
                gains[i] = .5f;
        gained_fill(drawn, picture, 1, left, fields);
        const double share = power_of(left) / power_of(all);
        CU_ASSERT(is_level ? share > .98 : share < .3 && share > .24);
        transpose(drawn);
    }
}

/* Sets a window's field to its table's cell: 1, 10 and 100 times the position along each axis. */
static void cells_number(void)
{
    for (unsigned light = 0; light < spectra_nodes; light++)
        for (unsigned hides = 0; hides < spectra_nodes; hides++)
            for (unsigned shown = 0; shown < spectra_nodes; shown++)
                table.cells[light][hides][shown][spectra_groups + FIELD_RED] =
                    (float)(light + 10 * hides + 100 * shown);
}

/* Gains are interpolated between nodes and constant beyond the last ones. */
static void test_cells(void)
{
    static const struct {
        float light, drawn, wanted_light, wanted_shown;
    } cases[] = {{0, 0, 0, 0}, {.05f, .006f, 0, 0}, {.1f, .03f, .5f, 1}, {.35f, .06f, 2, 1.5f}, {1, 3, 3, 3}};
    static plane drawn, picture, sums;
    float fields[rows][windows][spectra_field_count];
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        table_reset();
        cells_number();
        for (unsigned y = 0; y < height; y++)
            for (unsigned x = 0; x < width; x++) {
                picture[y][x] = cases[i].light;
                drawn[y][x] = x / 2 % 2 == 0 ? cases[i].drawn : -cases[i].drawn;
            }
        gained_fill(drawn, picture, 1, sums, fields);
        const float wanted = cases[i].wanted_light + 100 * cases[i].wanted_shown;
        CU_ASSERT_DOUBLE_EQUAL(fields[2][3][FIELD_RED], wanted, .5 + .02 * (double)wanted);
        CU_ASSERT_EQUAL(fields[2][3][FIELD_BLUE], 1);
    }
}

/* Fields are continuous from one window to the next. */
static void test_fields_between_windows(void)
{
    enum { planes_rows = spectra_rows_count };
    static float drawn[planes_rows][width], picture[planes_rows][width], companded[planes_rows][width];
    float upper[windows][spectra_field_count], lower[windows][spectra_field_count];
    float fields[spectra_field_count][width];
    struct spectra_rows planes = {drawn[0], picture[0], companded[0], upper[0], lower[0], width};
    spectra_init(&spectra);
    for (unsigned window = 0; window < windows; window++)
        for (unsigned field = 0; field < spectra_field_count; field++) {
            upper[window][field] = (float)(field + window % 2);
            lower[window][field] = upper[window][field] + 2;
        }
    for (unsigned row = 0; row < spectra_step; row++) {
        spectra_rows_fields(&spectra, &planes, windows, row, fields[0]);
        for (unsigned field = 0; field < spectra_field_count; field++) {
            const double down = 2 * (double)spectra.shares[row] + field;
            for (unsigned x = 0; x < (windows - 1) * spectra_step; x++) {
                const double share = (double)spectra.shares[x % spectra_step];
                const double wanted = down + (x / spectra_step % 2 == 0 ? share : 1 - share);
                CU_ASSERT_DOUBLE_EQUAL(fields[field][x], wanted, 1e-5);
            }
        }
    }
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"zero stays zero", test_nothing_stays_nothing},
        {"amplitudes are raised to the power 15/16", test_power_of_fifteen_sixteenths},
        {"similar patterns mask each other", test_like_hides_like},
        {"level lines are attenuated further", test_level_lines},
        {"each frequency is in a group", test_groups},
        {"gains of a group apply to its frequencies", test_gain_of_a_group},
        {"gains are interpolated between cells", test_cells},
        {"fields are interpolated between windows", test_fields_between_windows},
        {"brightness does not mask", test_brightness_hides_nothing},
        CU_TEST_INFO_NULL,
    };
    return runner_run("spectra", tests);
}
