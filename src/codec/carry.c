#include "codec/carry.h"

#include <math.h>

#include "engine/clones.h"

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
enum { change_most = 16 };

/*
 * The share of the mean and the lowest frequency of luma at a higher quality. They take visibility and move
 * most encoders little. With the steps of the file, or without colours, hardly anything else moves. With fine
 * steps of the file, everything moves: at quality 95 all of them cost two encoders 3 to 7 of 100 parts of the
 * shift. Half of them costs the third encoder 7 to 12. The mean step of coarse files is above this one, that
 * of quality 88.
 */
static const float low_share_coarse = 0.5F, low_share_fine = 0.75F;
static const unsigned coarse_mean = 14;

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
    if (table->is_luma && has_colors)
        table->low_share = sum > coarse_mean * carry_entries ? low_share_coarse : low_share_fine;
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

ENGINE_CLONES static void row_color(const float *restrict levels, size_t width_px, float *restrict luma,
                                    float *restrict blue, float *restrict red)
{
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
        row_color(levels, width_px, band->planes[0] + at, band->planes[1] + at, band->planes[2] + at);
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

/* The orthonormal DCT: cosines[x][i] = c(i) cos((2x + 1) i pi / 16). */
static const float cosines[carry_side][carry_side] = {
    {.35355339F, .49039264F, .46193977F, .41573481F, .35355339F, .27778512F, .19134172F, .09754516F},
    {.35355339F, .41573481F, .19134172F, -.09754516F, -.35355339F, -.49039264F, -.46193977F, -.27778512F},
    {.35355339F, .27778512F, -.19134172F, -.49039264F, -.35355339F, .09754516F, .46193977F, .41573481F},
    {.35355339F, .09754516F, -.46193977F, -.27778512F, .35355339F, .41573481F, -.19134172F, -.49039264F},
    {.35355339F, -.09754516F, -.46193977F, .27778512F, .35355339F, -.41573481F, -.19134172F, .49039264F},
    {.35355339F, -.27778512F, -.19134172F, .49039264F, -.35355339F, -.09754516F, .46193977F, -.41573481F},
    {.35355339F, -.41573481F, .19134172F, .09754516F, -.35355339F, .49039264F, -.46193977F, .27778512F},
    {.35355339F, -.49039264F, .46193977F, -.41573481F, .35355339F, -.27778512F, .19134172F, -.09754516F},
};

/* Transforms columns, whose samples are stride apart, then rows. */
ENGINE_CLONES static void block_transform(const float *restrict block, size_t stride,
                                          float *restrict coefficients)
{
    float columns[carry_side][carry_side] = {{0}};
    for (unsigned i = 0; i < carry_side; i++)
        for (unsigned y = 0; y < carry_side; y++)
            for (unsigned x = 0; x < carry_side; x++)
                columns[i][x] += cosines[y][i] * block[y * stride + x];
    for (unsigned i = 0; i < carry_side; i++) {
        float sums[carry_side] = {0};
        for (unsigned x = 0; x < carry_side; x++)
            for (unsigned k = 0; k < carry_side; k++)
                sums[k] += cosines[x][k] * columns[i][x];
        for (unsigned k = 0; k < carry_side; k++)
            coefficients[i * carry_side + k] = sums[k];
    }
}

void carry_transform(const struct carry_band *band, unsigned plane, size_t x, size_t y, unsigned h,
                     unsigned v, float coefficients[carry_entries])
{
    const float *from = band->planes[plane] + y * band->width + x;
    float block[carry_entries];
    if (h * v > 1)
        block_means(from, band->width, h, v, block);
    block_transform(h * v > 1 ? block : from, h * v > 1 ? carry_side : band->width, coefficients);
}

/* ---- the choice */

void carry_rule(const struct carry *carry, const struct carry_table *table, struct carry_rule *rule)
{
    for (unsigned i = 0; i < carry_entries; i++) {
        rule->steps[i] = table->to[i];
        rule->shares[i] = carry->scale * (entry_frequency(i) <= 1 ? table->low_share : 1);
        rule->most[i] = table->to[i] < change_most ? change_most / table->to[i] : 1;
        rule->least[i] = i == 0 ? mean_least : -coefficient_most;
        rule->dead[i] = i == 0 ? rounding_dead : nonzero_dead;
        rule->dead_zero[i] = i == 0 ? rounding_dead : carry->dead;
    }
}

/* Returns the nearest whole number, as rintf does, of one far below 2^22. */
ENGINE_INLINE float nearest_whole(float value)
{
    const float whole = 12582912;
    return value + whole - whole;
}

/*
 * Moves coefficients by the steps above the dead zone, rounded up, but not many.  With a dead zone of .5 that
 * is the nearest number; above it fewer coefficients move, and by less.  waiting receives the wanted steps of
 * coefficients that were 0.
 */
ENGINE_CLONES static void entries_move(const struct carry_rule *rule, const float *restrict source,
                                       const float *restrict change, int16_t *restrict block,
                                       float *restrict waiting)
{
    for (unsigned i = 0; i < carry_entries; i++) {
        const float step = rule->steps[i], dead = rule->dead[i], dead_zero = rule->dead_zero[i];
        const int least = rule->least[i], most = rule->most[i];
        const float base = nearest_whole(source[i] / step);
        const float wanted = (source[i] + rule->shares[i] * change[i]) / step - base, size = fabsf(wanted);
        const int above = (int)(size + 1 - (base == 0 ? dead_zero : dead)), steps = above > 0 ? above : 0;
        const int moved = steps < most ? steps : most;
        const int value = (int)base + (wanted < 0 ? -moved : moved), bounded = value > least ? value : least;
        block[i] = (int16_t)(bounded < coefficient_most ? bounded : coefficient_most);
        waiting[i] = base == 0 ? size : 0;
    }
}

void carry_block(struct carry *carry, const struct carry_rule *rule, const float source[carry_entries],
                 const float change[carry_entries], int16_t block[carry_entries])
{
    float waiting[carry_entries];
    entries_move(rule, source, change, block, waiting);
    for (unsigned i = 1; i < carry_entries; i++)
        if (waiting[i] >= carry_dead_least) {
            const float bin = waiting[i] * bin_parts;
            carry->waiting[bin < carry_bins ? (unsigned)bin : carry_bins - 1]++;
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
