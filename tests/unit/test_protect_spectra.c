/* What the anti-AI engine draws is brought nearer to the spectrum of what hides it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

#include "engine/protect_spectra.h"

/* Rows of windows over a plane of width x height, of which the whole part begins and ends a step further in.
 */
enum { windows = 8, width = (windows + 1) * spectra_step, rows = 6, height = (rows + 1) * spectra_step };

typedef float plane[height][width];

static struct spectra spectra;

static void companded_fill(plane drawn, plane picture, float level, plane sums)
{
    const struct spectra_way way = {level, INFINITY};
    float gains[windows];
    spectra_init(&spectra);
    memset(sums, 0, sizeof(plane));
    for (unsigned row = 0; row < rows; row++) {
        const unsigned y = row * spectra_step;
        spectra_compand(&spectra, drawn[y], picture[y], width, windows, &way, sums[y], gains);
    }
}

/* Noise that is the same every time, about -size..size. */
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

/* The mean square where windows lie over one another on all sides. */
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

/* 256 times as much drawn becomes 181 times as much, 2 to the power of 7.5, and is drawn in the same places.
 */
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

/* What a pattern becomes beside noise of the same power, over a picture. */
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

/* Grain hides noise better than strokes, strokes hide strokes better than grain does. */
static void test_like_hides_like(void)
{
    static plane grain, stroked;
    noise_add(grain, .02f, 1);
    strokes_add(stroked, .02f / sqrtf(3), 8);
    const double in_grain = strokes_for_noise(grain), in_strokes = strokes_for_noise(stroked);
    CU_ASSERT(in_grain < 0.85);
    CU_ASSERT(in_strokes > 1.1 * in_grain);
}

/* How bright a picture is changes nothing. */
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

/* The same picture and perturbation, turned: what lies level becomes upright. */
static void transpose(plane values)
{
    static plane before;
    memcpy(before, values, sizeof before);
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++)
            values[y][x] = before[x % height][y];
}

/* Of level strokes a quarter of the power is left where half of the amplitude is; of upright ones all. */
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

/* Where little is drawn nearly all of it stays; where much is no more than the ceiling, and from one to the
 * other what is left of the pixels goes over without a step. */
static void test_ceiling(void)
{
    enum { spectra_rows = spectra_rows_count };
    static const struct spectra_way way = {1, .02f};
    static float drawn[spectra_rows][width], picture[spectra_rows][width], companded[spectra_rows][width];
    float upper[windows], lower[windows], gains[width];
    struct spectra_rows planes = {drawn[0], picture[0], companded[0], upper, lower, width};
    for (unsigned y = 0; y < spectra_rows; y++)
        for (unsigned x = 0; x < width; x++)
            drawn[y][x] = (x < width / 2 ? .001f : .5f) * (x / 4 % 2 == 0 ? 1 : -1);
    spectra_init(&spectra);
    spectra_rows_compand(&spectra, &planes, windows, &way, true);
    for (unsigned row = 0; row < spectra_step; row++) {
        spectra_rows_gains(&spectra, &planes, windows, row, gains);
        const unsigned last = (windows - 1) * spectra_step - 1;
        CU_ASSERT(gains[0] > .99f && gains[0] <= 1);
        CU_ASSERT(gains[last] * .5f > .9f * .02f && gains[last] * .5f <= .02f * 1.1f);
        for (unsigned x = 1; x <= last; x++)
            CU_ASSERT(gains[x] <= gains[x - 1] + 1e-3f && gains[x - 1] - gains[x] < .25f);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"of nothing comes nothing", test_nothing_stays_nothing},
        {"amplitudes are taken to the power of fifteen sixteenths", test_power_of_fifteen_sixteenths},
        {"like hides like", test_like_hides_like},
        {"of level lines less is left", test_level_lines},
        {"nowhere is left much more than the ceiling", test_ceiling},
        {"brightness hides nothing", test_brightness_hides_nothing},
        CU_TEST_INFO_NULL,
    };
    return runner_run("spectra", tests);
}
