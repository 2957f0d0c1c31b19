#include "engine/protect/protect_skin.h"

#include <math.h>

#include "engine/watermark/clones.h"
#include "engine/protect/protect_around.h"
#include "engine/protect/ramp.h"

/* Red and yellow are colour differences, as in YCbCr: red minus luma, luma minus blue. */
static const float red_times = 0.713f, yellow_times = 0.564f;
static const float least_red = 0.004f, lit_more = 0.06f;
static const struct ramp red_enough = {0.025f, 0.035f},
                         too_red = {0.36f, 0.08f}; /* red above luma and lit_more */
static const struct ramp yellow_enough = {0.25f, 0.15f}, too_yellow = {1.7f, 0.6f}; /* yellow above red */
static const struct ramp lit = {0.08f, 0.08f};
static const struct ramp enough_around = {0.3f, 0.4f};
static const float skin_busy = 0.012f; /* distance of luma from planes at which a block counts half */

ENGINE_CLONES void skin_colors(const float *means, size_t count, float *warm)
{
    for (size_t i = 0; i < count; i++, means += 3) {
        const float luma = 0.299f * means[0] + 0.587f * means[1] + 0.114f * means[2];
        const float red = red_times * (means[0] - luma), yellow = yellow_times * (luma - means[2]);
        const float much = red / (luma + lit_more), hue = yellow / (red > least_red ? red : least_red);
        warm[i] = ramped(red_enough, much) * (1 - ramped(too_red, much)) * ramped(yellow_enough, hue) *
                  (1 - ramped(too_yellow, hue)) * ramped(lit, luma);
    }
}

double skin_colorfulness(const float *means, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++, means += 3) {
        const float luma = 0.299f * means[0] + 0.587f * means[1] + 0.114f * means[2];
        const float red = red_times * (means[0] - luma), blue = yellow_times * (means[2] - luma);
        sum += (double)sqrtf(red * red + blue * blue);
    }
    return sum;
}

ENGINE_CLONES static void skin_of(const float *spread, size_t count, float *skin)
{
    for (size_t i = 0; i < count; i++)
        skin[i] = ramped(enough_around, skin[i]) * nearness(spread[i], skin_busy);
}

void skin_row(const float *const warm[skin_rows], const float *spread, size_t count, float *sums, float *skin)
{
    around_means(warm, skin_around, count, sums, skin);
    skin_of(spread, count, skin);
}
