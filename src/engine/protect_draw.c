#include "engine/protect_draw.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/protect_weights.h"

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

/* What keeps luma where blue changes, and where red does. */
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

ENGINE_CLONES void draw_colors_mean(const float *values, size_t blocks, float *means)
{
    for (size_t block = 0; block < blocks; block++) {
        float colors[draw_colors] = {0};
        for (unsigned i = 0; i < draw_paled_px * draw_colors; i++)
            colors[i % draw_colors] += *values++ * (1.f / draw_paled_px);
        const float luma = 0.299f * colors[0] + 0.587f * colors[1] + 0.114f * colors[2];
        for (unsigned color = 0; color < draw_colors; color++)
            means[block * draw_colors + color] = colors[color] - luma;
    }
}

ENGINE_CLONES void draw_paled(float *restrict values, const float *restrict mask, float pale,
                              const float *restrict times, const float *restrict means, size_t count)
{
    enum { block_values = draw_paled_px * draw_colors };
    float before[block_values], here[block_values], after[block_values]; /* shares of blocks */
    for (unsigned i = 0; i < block_values; i++) {
        const float place = ((float)(i / draw_colors) + .5f) / draw_paled_px;
        before[i] = .5f * (1 - place) * (1 - place);
        here[i] = .5f + place * (1 - place);
        after[i] = .5f * place * place;
    }
    for (size_t block = 0; block < count / block_values;
         block++, values += block_values, mask += block_values, means += draw_colors, times += draw_paled_px)
        for (unsigned i = 0; i < block_values; i++) {
            const float *color = means + i % draw_colors;
            const float left_out = pale * times[i / draw_colors] * (1 - mask[i]);
            values[i] -=
                (left_out < 1 ? left_out : 1) *
                (before[i] * color[0] + here[i] * color[draw_colors] + after[i] * color[2 * draw_colors]);
        }
}

ENGINE_CLONES void draw_dithered(float *restrict values, const float *restrict calm,
                                 const float *restrict granted, float grain_times,
                                 const float *restrict grain, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = values[i] * (1 - calm[i]) + grain_times * granted[i] * grain[i];
}

ENGINE_CLONES void draw_added(float *restrict values, const float *restrict added, float times, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] += times * added[i];
}

/* A value of the row of twice the size: three quarters of the near one, a quarter of the far one. */
static inline float doubled(float near, float far)
{
    return 0.75f * near + 0.25f * far;
}

/* Four values are written at once, the last of which is the next one's. */
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
