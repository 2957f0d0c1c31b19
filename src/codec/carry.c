#include "codec/carry.h"

#include <math.h>

/* Parts of a step in a bin of the waiting coefficients. */
enum { bin_parts = 32 };

/* Limits of a coefficient (ITU-T T.81, F.1.2); the mean has one more downwards. */
enum { coefficient_most = 1023, mean_least = -1024 };

/* A coefficient that is not 0 has its bits already, so it moves earlier than by rounding. */
static const float nonzero_dead = 0.4F, rounding_dead = 0.5F;

/*
 * Large single steps show more than they move (visibility is pooled with exponent 4): a coefficient changes
 * by one step, or up to this number of levels.
 */
static const float change_most = 16;

/*
 * The share of the mean and the lowest frequency of luma at a higher quality. They take visibility and move
 * an encoder little. With the steps of the file, or without colours, hardly anything else moves. With fine
 * steps of the file, everything moves: halving costs 2 to 10 of 100 parts of the share from quality 88 on. So
 * the mean step of the file is above this one, that of quality 88.
 */
static const float low_luma_share = 0.5F;
static const unsigned low_halved_mean = 14;

/* Steps of a result of a higher quality, by the larger frequency: the change is within them. */
static const uint16_t luma_steps_most[carry_levels] = {UINT16_MAX, 14, 7};
static const uint16_t color_steps[carry_side] = {8, 8, 12, 16, 16, 20, 20, 20};

static unsigned entry_frequency(unsigned entry)
{
    const unsigned x = entry % carry_side, y = entry / carry_side;
    return x > y ? x : y;
}

void carry_finer(struct carry_table *table, unsigned level, bool has_colors)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < carry_entries; i++) {
        const unsigned most = table->is_luma ? luma_steps_most[level] : color_steps[entry_frequency(i)];
        const unsigned parts = (table->from[i] + most - 1) / most;
        table->to[i] = (uint16_t)(parts > 1 ? (table->from[i] + parts / 2) / parts : table->from[i]);
        sum += table->from[i];
    }
    table->is_low_halved = table->is_luma && has_colors && sum > low_halved_mean * carry_entries;
}

/*
 * A frequency has h times the number in the file's blocks, which are h times as wide.  The noise of a step is
 * that of a block of h x v times the samples, so the step of equal noise is sqrt(h v) times as large.
 */
void carry_resampled(struct carry_table *table, unsigned h, unsigned v)
{
    const unsigned last = carry_side - 1;
    for (unsigned i = 0; i < carry_entries; i++) {
        const unsigned x = i % carry_side * h, y = i / carry_side * v;
        const unsigned step = table->from[(y < last ? y : last) * carry_side + (x < last ? x : last)];
        const float alike = rintf((float)step * sqrtf((float)(h * v)));
        table->to[i] = (uint16_t)fminf(alike, color_steps[entry_frequency(i)]);
    }
}

/* ---- blocks of a band */

static void row_color(const struct carry_band *band, size_t at, const float *levels, size_t width_px)
{
    float *luma = band->planes[0] + at, *blue = band->planes[1] + at, *red = band->planes[2] + at;
    for (size_t x = 0; x < width_px; x++) {
        const float r = levels[3 * x], g = levels[3 * x + 1], b = levels[3 * x + 2];
        luma[x] = 0.299F * r + 0.587F * g + 0.114F * b;
        blue[x] = -0.168736F * r - 0.331264F * g + 0.5F * b;
        red[x] = 0.5F * r - 0.418688F * g - 0.081312F * b;
    }
}

void carry_band_put(const struct carry_band *band, size_t row, const float *levels, size_t width_px,
                    unsigned colors)
{
    const size_t at = row * band->width;
    if (colors == 3)
        row_color(band, at, levels, width_px);
    else
        for (size_t x = 0; x < width_px; x++)
            band->planes[0][at + x] = levels[x];
    for (unsigned plane = 0; plane < colors; plane++)
        for (size_t x = width_px; x < band->width; x++)
            band->planes[plane][at + x] = band->planes[plane][at + width_px - 1];
}

static void block_means(const float *from, size_t stride, unsigned h, unsigned v, float *block)
{
    const float share = 1 / (float)(h * v);
    for (unsigned y = 0; y < carry_side; y++)
        for (unsigned x = 0; x < carry_side; x++) {
            float sum = 0;
            for (unsigned i = 0; i < v; i++)
                for (unsigned k = 0; k < h; k++)
                    sum += from[(y * v + i) * stride + x * h + k];
            block[y * carry_side + x] = sum * share;
        }
}

/* The orthonormal DCT: cosines[i][x] = c(i) cos((2x + 1) i pi / 16). */
#define COSINES(a, b, c, d)                                                                                  \
    {                                                                                                        \
        a, b, c, d, d, c, b, a                                                                               \
    }
#define SINES(a, b, c, d)                                                                                    \
    {                                                                                                        \
        a, b, c, d, -(d), -(c), -(b), -(a)                                                                   \
    }
static const float cosines[carry_side][carry_side] = {
    COSINES(.35355339F, .35355339F, .35355339F, .35355339F),
    SINES(.49039264F, .41573481F, .27778512F, .09754516F),
    COSINES(.46193977F, .19134172F, -.19134172F, -.46193977F),
    SINES(.41573481F, -.09754516F, -.49039264F, -.27778512F),
    COSINES(.35355339F, -.35355339F, -.35355339F, .35355339F),
    SINES(.27778512F, -.49039264F, .09754516F, .41573481F),
    COSINES(.19134172F, -.46193977F, .46193977F, -.19134172F),
    SINES(.09754516F, -.27778512F, .41573481F, -.49039264F),
};
#undef COSINES
#undef SINES

/* Transforms the columns of a block and turns it: rows become columns. */
static void columns_transform(const float *restrict block, float *restrict turned)
{
    for (unsigned i = 0; i < carry_side; i++) {
        float sums[carry_side] = {0};
        for (unsigned y = 0; y < carry_side; y++)
            for (unsigned x = 0; x < carry_side; x++)
                sums[x] += cosines[i][y] * block[y * carry_side + x];
        for (unsigned x = 0; x < carry_side; x++)
            turned[x * carry_side + i] = sums[x];
    }
}

void carry_transform(const struct carry_band *band, unsigned plane, size_t x, size_t y, unsigned h,
                     unsigned v, float coefficients[carry_entries])
{
    float block[carry_entries], turned[carry_entries];
    block_means(band->planes[plane] + y * band->width + x, band->width, h, v, block);
    columns_transform(block, turned);
    columns_transform(turned, coefficients);
}

/* ---- the choice */

static int in_range(float value, unsigned entry)
{
    const float least = entry == 0 ? mean_least : -coefficient_most;
    return (int)(value < least ? least : value > coefficient_most ? coefficient_most : value);
}

/*
 * Returns the steps that a coefficient moves by: those above the dead zone, rounded up, but not many. With a
 * dead zone of .5 that is the nearest number; above it fewer coefficients move, and by less.
 */
static float moved_steps(float wanted, float dead, float step)
{
    const float size = fmaxf(0, floorf(fabsf(wanted) + 1 - dead)),
                most = fmaxf(1, floorf(change_most / step));
    return copysignf(fminf(size, most), wanted);
}

static void waiting_add(struct carry *carry, float wanted)
{
    const float bin = fabsf(wanted) * bin_parts;
    carry->waiting[bin < carry_bins ? (unsigned)bin : carry_bins - 1]++;
}

void carry_block(struct carry *carry, const struct carry_table *table, const float source[carry_entries],
                 const float change[carry_entries], int16_t block[carry_entries])
{
    for (unsigned i = 0; i < carry_entries; i++) {
        const float step = table->to[i], base = rintf(source[i] / step);
        const bool is_low = table->is_low_halved && entry_frequency(i) <= 1, is_zero = base == 0 && i > 0;
        const float share = carry->scale * (is_low ? low_luma_share : 1);
        const float wanted = (source[i] + share * change[i]) / step - base;
        const float dead = is_zero ? carry->dead : i == 0 ? rounding_dead : nonzero_dead;
        if (is_zero)
            waiting_add(carry, wanted);
        block[i] = (int16_t)in_range(base + moved_steps(wanted, dead, step), i);
    }
}

float carry_dead(const struct carry *carry, double count)
{
    const unsigned least = (unsigned)(carry_dead_least * bin_parts);
    unsigned bin = (unsigned)(carry->dead * bin_parts);
    while (bin < carry_bins && count > 0)
        count -= carry->waiting[bin++];
    while (bin > least && count + carry->waiting[bin - 1] < 0)
        count += carry->waiting[--bin];
    return (float)bin / bin_parts;
}
