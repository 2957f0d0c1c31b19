#include "engine/protect/protect_draw.h"

#include <math.h>
#include <string.h>

#include "engine/watermark/clones.h"
#include "engine/protect/protect_weights.h"

ENGINE_CLONES void draw_unpacked(const float *raw, size_t places, float *values)
{
    for (size_t place = 0; place < places; place++)
        memcpy(values + place * 2 * draw_colors, raw + place * net_raw_channels,
               net_raw_row * sizeof *values);
}

ENGINE_CLONES void draw_hidden(float *restrict values, const float *restrict mask, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] *= mask[i];
}

ENGINE_CLONES void draw_softened(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = values[i] / sqrtf(1 + values[i] * values[i]);
}

ENGINE_CLONES void draw_luma(const float *restrict pixels, size_t count, float *restrict luma)
{
    for (size_t i = 0; i < count; i++)
        luma[i] = 0.299f * pixels[3 * i] + 0.587f * pixels[3 * i + 1] + 0.114f * pixels[3 * i + 2];
}

/* Factors of green that keep luma constant when blue or red changes. */
static const float green_of_blue = -0.114f / 0.587f, green_of_red = -0.299f / 0.587f;

ENGINE_CLONES void draw_recast(float *restrict values, const float *restrict luma,
                               const float *restrict luma_before, const float *restrict blue,
                               const float *restrict red, size_t count)
{
    for (size_t i = 0; i < count / draw_colors; i++) {
        float *pixel = values + i * draw_colors;
        const float reds = (pixel[0] - luma_before[i]) * red[i];
        const float blues = (pixel[2] - luma_before[i]) * blue[i];
        pixel[0] = luma[i] + reds;
        pixel[1] = luma[i] + green_of_red * reds + green_of_blue * blues;
        pixel[2] = luma[i] + blues;
    }
}

ENGINE_CLONES void draw_blued(float *restrict values, const float *restrict mask, float blue, size_t count)
{
    for (size_t i = 0; i + 2 < count; i += draw_colors) {
        const float luma = 0.299f * values[i] + 0.587f * values[i + 1] + 0.114f * values[i + 2];
        const float more = (values[i + 2] - luma) * ((blue - 1) * (1 - mask[i]) / (1 + (blue - 1) * mask[i]));
        values[i + 1] += green_of_blue * more;
        values[i + 2] += more;
    }
}

/* Eight values and their place in memory.  A block of pixels is three of these lines. */
enum { line_values = 8, block_lines = draw_colors };
typedef float line __attribute__((vector_size(line_values * sizeof(float))));
typedef float line_place
    __attribute__((vector_size(line_values * sizeof(float)), aligned(sizeof(float)), may_alias));

_Static_assert((int)draw_paled_px == (int)line_values, "a block has a line for each color");

/* The lines of a block of pixels: the same three values for every pixel, */
#define LINES_OF_COLORS(of, r, g, b)                                                                         \
    {                                                                                                        \
        __builtin_shufflevector(of, of, r, g, b, r, g, b, r, g),                                             \
            __builtin_shufflevector(of, of, b, r, g, b, r, g, b, r),                                         \
            __builtin_shufflevector(of, of, g, b, r, g, b, r, g, b)                                          \
    }
/* or one value for each pixel, the same in all colours. */
#define LINES_OF_PIXELS(of)                                                                                  \
    {                                                                                                        \
        __builtin_shufflevector(of, of, 0, 0, 0, 1, 1, 1, 2, 2),                                             \
            __builtin_shufflevector(of, of, 2, 3, 3, 3, 4, 4, 4, 5),                                         \
            __builtin_shufflevector(of, of, 5, 5, 6, 6, 6, 7, 7, 7)                                          \
    }

ENGINE_CLONES void draw_colors_mean(const float *values, size_t blocks, float *means)
{
    enum { last = draw_paled_px - 1 };
    for (size_t block = 0; block < blocks; block++, values += draw_paled_px * draw_colors) {
        float sums[draw_colors + 1] = {0}; /* the last is the next pixel's: a vector sums four */
        for (unsigned pixel = 0; pixel < last; pixel++)
            for (unsigned i = 0; i < draw_colors + 1; i++)
                sums[i] += values[pixel * draw_colors + i] * (1.f / draw_paled_px);
        for (unsigned color = 0; color < draw_colors; color++)
            sums[color] += values[last * draw_colors + color] * (1.f / draw_paled_px);
        const float luma = 0.299f * sums[0] + 0.587f * sums[1] + 0.114f * sums[2];
        for (unsigned color = 0; color < draw_colors; color++)
            means[block * draw_colors + color] = sums[color] - luma;
    }
}

static inline __attribute__((always_inline)) void line_from_zero(line *values)
{
    float each[line_values];
    memcpy(each, values, sizeof each);
    for (unsigned i = 0; i < line_values; i++)
        each[i] = each[i] > 0 ? each[i] : 0;
    memcpy(values, each, sizeof each);
}

/* The weights of the previous, current and next mean for the pixels of a row. */
struct shares {
    float before[block_lines * line_values], here[block_lines * line_values],
        after[block_lines * line_values];
};

static struct shares shares_of(void)
{
    struct shares shares;
    for (unsigned i = 0; i < block_lines * line_values; i++) {
        const float place = ((float)(i / draw_colors) + .5f) / draw_paled_px;
        shares.before[i] = .5f * (1 - place) * (1 - place);
        shares.here[i] = .5f + place * (1 - place);
        shares.after[i] = .5f * place * place;
    }
    return shares;
}

/* Interpolates the lines of a block of pixels between means, starting at the previous block's, and adds them
 * times a factor to other lines. */
static inline __attribute__((always_inline)) void
lines_between(const struct shares *shares, const float *means, const line *times, line *lines)
{
    const line first = *(const line_place *)means, second = *(const line_place *)(means + 1);
    const line before[] = LINES_OF_COLORS(first, 0, 1, 2), here[] = LINES_OF_COLORS(first, 3, 4, 5),
               after[] = LINES_OF_COLORS(second, 5, 6, 7);
    for (unsigned i = 0; i < block_lines; i++)
        lines[i] += times[i] * (*(const line_place *)(shares->before + i * line_values) * before[i] +
                                *(const line_place *)(shares->here + i * line_values) * here[i] +
                                *(const line_place *)(shares->after + i * line_values) * after[i]);
}

ENGINE_CLONES void draw_colors_bound(const float *restrict means, size_t blocks, float *restrict bounded)
{
    const float most = draw_row_color * draw_row_color;
    for (size_t i = 0; i < blocks * draw_colors; i += draw_colors) {
        const float square = means[i] * means[i] + means[i + 1] * means[i + 1] + means[i + 2] * means[i + 2];
        const float share = 1 / sqrtf(1 + square / most);
        for (unsigned color = 0; color < draw_colors; color++)
            bounded[i + color] = share * means[i + color];
    }
}

ENGINE_CLONES void draw_paled(float *restrict values, float pale, const float *restrict times,
                              const float *restrict means, const float *restrict bounded, size_t count)
{
    const struct shares shares = shares_of();
    const line none = {0}, all[block_lines] = {none - 1, none - 1, none - 1};
    for (size_t block = 0; block < count / (block_lines * line_values); block++) {
        line own = 1 - pale * *(const line_place *)(times + block * line_values);
        line_from_zero(&own);
        const line kept[] = LINES_OF_PIXELS(own);
        line lines[block_lines] = {{0}};
        lines_between(&shares, bounded + block * draw_colors, kept, lines);
        lines_between(&shares, means + block * draw_colors, all, lines);
        for (unsigned i = 0; i < block_lines; i++, values += line_values)
            *(line_place *)values += lines[i];
    }
}

ENGINE_CLONES void draw_dithered(float *restrict values, const float *restrict calm,
                                 const float *restrict granted, float grain_times,
                                 const float *restrict grain, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = values[i] * (1 - calm[i]) + grain_times * granted[i] * grain[i];
}

ENGINE_CLONES void draw_tinted(float *values, float color, size_t count)
{
    for (size_t i = 0; i + 2 < count; i += draw_colors) {
        const float luma = 0.299f * values[i] + 0.587f * values[i + 1] + 0.114f * values[i + 2];
        for (unsigned k = 0; k < draw_colors; k++)
            values[i + k] = luma + color * (values[i + k] - luma);
    }
}

ENGINE_CLONES void draw_added(float *restrict values, const float *restrict added, float times, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] += times * added[i];
}

/* A value of the row of twice the size: three quarters of the near value, one quarter of the far one. */
static inline float doubled(float near, float far)
{
    return 0.75f * near + 0.25f * far;
}

/* Each write stores four values; the next write replaces the last of them. */
ENGINE_CLONES void draw_doubled(const float *restrict own, const float *restrict beside, size_t count,
                                float *restrict between, float *restrict values)
{
    enum { lanes = 4 };
    const size_t pixels = count / (2 * draw_colors);
    for (size_t i = 0; i < (pixels + 2) * draw_colors; i++)
        between[i] = doubled(own[i], beside[i]);
    for (size_t pixel = 0; pixel < pixels; pixel++, between += draw_colors, values += 2 * draw_colors) {
        float left[lanes], right[lanes];
        for (unsigned k = 0; k < lanes; k++)
            left[k] = doubled(between[draw_colors + k], between[k]);
        for (unsigned k = 0; k < lanes; k++)
            right[k] = doubled(between[draw_colors + k], between[2 * draw_colors + k]);
        memcpy(values, left, sizeof left);
        memcpy(values + draw_colors, right, sizeof right);
    }
}

ENGINE_CLONES void draw_halved(float *restrict upper, const float *restrict lower, size_t count,
                               float *restrict values)
{
    for (size_t i = 0; i < 2 * count; i++)
        upper[i] += lower[i];
    for (size_t pixel = 0; pixel < count / draw_colors; pixel++)
        for (unsigned color = 0; color < draw_colors; color++)
            values[pixel * draw_colors + color] = 0.25f * (upper[2 * pixel * draw_colors + color] +
                                                           upper[(2 * pixel + 1) * draw_colors + color]);
}
