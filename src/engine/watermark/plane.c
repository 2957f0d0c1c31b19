#include "engine/watermark/plane.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/watermark/color.h"
#include "engine/image.h"

/* No published source; transparent pixels are filled from this far around them. */
enum { fill_radius_px = 12 };

ENGINE_CLONES
static void row_grey_8(const uint8_t *from, unsigned channels, uint32_t width, float *luma)
{
    for (uint32_t x = 0; x < width; x++)
        luma[x] = (float)from[x * channels];
}

ENGINE_CLONES
static void row_grey_16(const uint16_t *from, unsigned channels, uint32_t width, float *luma)
{
    for (uint32_t x = 0; x < width; x++)
        luma[x] = (float)from[x * channels] / 257.0f;
}

static inline void row_color(const uint8_t *restrict from, unsigned channels, uint32_t width,
                             float *restrict luma, float *restrict blue)
{
    for (uint32_t x = 0; x < width; x++) {
        const uint8_t *pixel = from + (size_t)x * channels;
        float last = (float)pixel[2];
        float grey = luma_red * (float)pixel[0] + luma_green * (float)pixel[1] + luma_blue * last;

        luma[x] = grey;
        blue[x] = cb_scale * (last - grey);
    }
}

/* The two channel counts are constants here, so that the loops unroll. */
ENGINE_CLONES
static void row_color_8(const uint8_t *from, unsigned channels, uint32_t width, float *luma, float *blue)
{
    if (channels == 3)
        row_color(from, 3, width, luma, blue);
    else
        row_color(from, 4, width, luma, blue);
}

ENGINE_CLONES
static void row_color_16(const uint16_t *from, unsigned channels, uint32_t width, float *luma, float *blue)
{
    for (uint32_t x = 0; x < width; x++) {
        const uint16_t *pixel = from + (size_t)x * channels;
        float last = (float)pixel[2] / 257.0f;

        luma[x] = luma_red * ((float)pixel[0] / 257.0f) + luma_green * ((float)pixel[1] / 257.0f) +
                  luma_blue * last;
        blue[x] = cb_scale * (last - luma[x]);
    }
}

static void row_weight(const struct image *image, const void *row, float *weight)
{
    const uint8_t *bytes = row;
    const uint16_t *words = row;

    for (uint32_t x = 0; x < image->width_px; x++) {
        size_t at = (size_t)(x + 1) * image->channels - 1;

        weight[x] = (image->depth_bits == 16 ? words[at] : bytes[at]) != 0 ? 1.0f : 0.0f;
    }
}

/* Writes 128 + Cb and Cr of a row. */
ENGINE_CLONES
static void row_hue(const struct image *image, const void *row, float *luma, float *blue)
{
    const uint8_t *bytes = row;
    const uint16_t *words = row;
    size_t channels = image->channels;

    for (uint32_t x = 0; x < image->width_px; x++) {
        float rgb[3];

        for (unsigned i = 0; i < 3; i++)
            rgb[i] = image->depth_bits == 16 ? (float)words[x * channels + i] / 257.0f
                                             : (float)bytes[x * channels + i];
        float grey = luma_red * rgb[0] + luma_green * rgb[1] + luma_blue * rgb[2];
        luma[x] = 128.0f + cb_scale * (rgb[2] - grey);
        blue[x] = cr_scale * (rgb[0] - grey);
    }
}

/* Converts one row of samples. blue and weight may be NULL. */
static void plane_row(const struct image *image, enum plane_kind kind, uint32_t y, float *luma, float *blue,
                      float *weight)
{
    const void *row = image_row(image, y);

    if (kind == PLANE_COLOR)
        row_hue(image, row, luma, blue);
    else if (image_has_color(image) && image->depth_bits == 16)
        row_color_16(row, image->channels, image->width_px, luma, blue);
    else if (image_has_color(image))
        row_color_8(row, image->channels, image->width_px, luma, blue);
    else if (image->depth_bits == 16)
        row_grey_16(row, image->channels, image->width_px, luma);
    else
        row_grey_8(row, image->channels, image->width_px, luma);
    if (weight != NULL)
        row_weight(image, row, weight);
}

/* Sums a row over intervals of step samples, and multiplies the sums by area. */
static void row_reduce(const float *from, int from_width, double step, float area, float *to, int to_width)
{
    for (int i = 0; i < to_width; i++) {
        double begin = i * step;
        double end = begin + step;
        int first = (int)begin;
        int last = (int)end;
        float sum = 0;

        for (int x = first + 1; x < last; x++)
            sum += from[x];
        sum += from[first] * (float)(first + 1 - begin);
        if (last < from_width)
            sum += from[last] * (float)(end - last);
        to[i] = sum * area;
    }
}

ENGINE_CLONES
static void row_add(float *restrict to, const float *restrict from, float share, int width)
{
    for (int x = 0; x < width; x++)
        to[x] += from[x] * share;
}

/* State of a reduction: rows are summed first, then reduced along x. */
struct reducer {
    const struct image *image;
    enum plane_kind kind;
    double step;
    struct plane *plane;
    float *rows[3]; /* luma, Cb, weight of the row that was read */
    float *sums[3]; /* of the current plane row */
    int done;       /* plane rows finished */
};

static void reducer_add(struct reducer *reducer, double share)
{
    for (unsigned i = 0; i < 3; i++)
        if (reducer->sums[i] != NULL)
            row_add(reducer->sums[i], reducer->rows[i], (float)share, (int)reducer->image->width_px);
}

/* Finishes a plane row and clears the sums. */
static void reducer_flush(struct reducer *reducer)
{
    float *planes[3] = {reducer->plane->luma, reducer->plane->blue, reducer->plane->weight};
    size_t first = (size_t)reducer->done * (size_t)reducer->plane->width;
    float area = (float)(1 / (reducer->step * reducer->step));

    for (unsigned i = 0; i < 3; i++) {
        if (reducer->sums[i] == NULL)
            continue;
        row_reduce(reducer->sums[i], (int)reducer->image->width_px, reducer->step, area, planes[i] + first,
                   reducer->plane->width);
        memset(reducer->sums[i], 0, reducer->image->width_px * sizeof(float));
    }
    reducer->done++;
}

/* Adds one row of the picture to the plane rows that it overlaps. */
static void reducer_row(struct reducer *reducer, uint32_t y)
{
    double left =
        (reducer->done + 1) * reducer->step - y; /* rows that the plane row still needs, this one included */

    if (reducer->done >= reducer->plane->height)
        return;
    plane_row(reducer->image, reducer->kind, y, reducer->rows[0], reducer->rows[1], reducer->rows[2]);
    for (unsigned i = 0; i < 2 && reducer->rows[2] != NULL; i++)
        for (uint32_t x = 0; reducer->sums[i] != NULL && x < reducer->image->width_px; x++)
            reducer->rows[i][x] *= reducer->rows[2][x];
    reducer_add(reducer, left < 1 ? left : 1);
    if (left > 1)
        return;
    reducer_flush(reducer);
    if (left < 1)
        reducer_add(reducer, 1 - left);
}

/* Converts a picture that is neither reduced nor transparent. */
static void plane_copy(const struct image *image, enum plane_kind kind, struct plane *plane)
{
    for (uint32_t y = 0; y < image->height_px; y++) {
        size_t first = (size_t)y * (size_t)plane->width;

        plane_row(image, kind, y, plane->luma + first, plane->blue == NULL ? NULL : plane->blue + first,
                  NULL);
    }
}

/* Divides by the weight. Fully transparent pixels get the weighted mean of their neighbourhood. */
static void channel_fill(float *values, const struct plane *plane, const float *weight_blurred,
                         float *blurred, float *scratch)
{
    size_t count = (size_t)plane->width * (size_t)plane->height;
    double sum = 0;
    double weights = 0;

    for (size_t i = 0; i < count; i++) {
        sum += (double)values[i];
        weights += (double)plane->weight[i];
    }
    plane_blur(values, blurred, plane->width, plane->height, fill_radius_px, scratch);
    for (size_t i = 0; i < count; i++) {
        if (plane->weight[i] > 0.01f)
            values[i] /= plane->weight[i];
        else if (weight_blurred[i] > 0.001f)
            values[i] = blurred[i] / weight_blurred[i];
        else
            values[i] = weights > 0 ? (float)(sum / weights) : 128.0f;
    }
}

static bool plane_fill(struct plane *plane, struct workspace *workspace)
{
    size_t mark = workspace_mark(workspace);
    size_t count = (size_t)plane->width * (size_t)plane->height;
    float *blurred = workspace_take(workspace, count, sizeof *blurred);
    float *scratch = workspace_take(workspace, count, sizeof *scratch);
    float *weights = workspace_take(workspace, count, sizeof *weights);

    if (workspace->failed)
        return false;
    plane_blur(plane->weight, weights, plane->width, plane->height, fill_radius_px, scratch);
    channel_fill(plane->luma, plane, weights, blurred, scratch);
    if (plane->blue != NULL)
        channel_fill(plane->blue, plane, weights, blurred, scratch);
    workspace_rewind(workspace, mark);
    return true;
}

static bool plane_reduce(const struct image *image, enum plane_kind kind, double step,
                         struct workspace *workspace, struct plane *plane)
{
    struct reducer reducer = {.image = image, .kind = kind, .step = step, .plane = plane};
    const float *planes[3] = {plane->luma, plane->blue, plane->weight};
    size_t mark = workspace_mark(workspace);

    for (unsigned i = 0; i < 3; i++) {
        if (planes[i] == NULL)
            continue;
        reducer.rows[i] = workspace_take_unset(workspace, image->width_px, sizeof(float));
        reducer.sums[i] = workspace_take(workspace, image->width_px, sizeof(float));
    }
    if (workspace->failed)
        return false;
    for (uint32_t y = 0; y < image->height_px; y++)
        reducer_row(&reducer, y);
    if (reducer.done < plane->height)
        reducer_flush(&reducer);
    workspace_rewind(workspace, mark);
    return true;
}

bool plane_read(const struct image *image, enum plane_kind kind, double step, struct workspace *workspace,
                struct plane *plane)
{
    bool is_copy = step <= 1 && !image_has_alpha(image);

    plane->width = (int)(image->width_px / step);
    plane->height = (int)(image->height_px / step);
    size_t count = (size_t)plane->width * (size_t)plane->height;
    plane->luma = workspace_take_unset(workspace, count, sizeof(float));
    plane->blue = image_has_color(image) ? workspace_take_unset(workspace, count, sizeof(float)) : NULL;
    plane->weight = image_has_alpha(image) ? workspace_take_unset(workspace, count, sizeof(float)) : NULL;
    if (workspace->failed)
        return false;
    if (is_copy)
        plane_copy(image, kind, plane);
    else if (!plane_reduce(image, kind, step, workspace, plane))
        return false;
    return plane->weight == NULL || plane_fill(plane, workspace);
}

static int lesser(int a, int b)
{
    return a < b ? a : b;
}

/* Returns the mean of the row's samples within radius of x. */
static float row_mean(const float *from, int x, int width, int radius)
{
    int first = x > radius ? x - radius : 0;
    int last = lesser(x + radius, width - 1);
    float sum = 0;

    for (int i = first; i <= last; i++)
        sum += from[i];
    return sum / (float)(last - first + 1);
}

ENGINE_CLONES
static void row_blur_inside(const float *from, float *to, int count, int taps)
{
    float factor = 1 / (float)taps;

    for (int x = 0; x < count; x++)
        to[x] = from[x];
    for (int i = 1; i < taps; i++)
        for (int x = 0; x < count; x++)
            to[x] += from[x + i];
    for (int x = 0; x < count; x++)
        to[x] *= factor;
}

static void row_blur(const float *from, float *to, int width, int radius)
{
    for (int x = 0; x < lesser(radius, width); x++)
        to[x] = row_mean(from, x, width, radius);
    if (width > 2 * radius)
        row_blur_inside(from, to + radius, width - 2 * radius, 2 * radius + 1);
    for (int x = width - radius > radius ? width - radius : radius; x < width; x++)
        to[x] = row_mean(from, x, width, radius);
}

ENGINE_CLONES
static void columns_slide(double *sums, const float *enter, const float *leave, int width)
{
    for (int x = 0; enter != NULL && x < width; x++)
        sums[x] += (double)enter[x];
    for (int x = 0; leave != NULL && x < width; x++)
        sums[x] -= (double)leave[x];
}

ENGINE_CLONES
static void sums_divide(const double *sums, double factor, float *to, int width)
{
    for (int x = 0; x < width; x++)
        to[x] = (float)(sums[x] * factor);
}

/* Blurs down the columns, a strip of columns at a time. */
static void columns_blur(const float *from, float *to, int width, int height, int radius)
{
    double sums[256];

    for (int left = 0; left < width; left += 256) {
        int strip = lesser(256, width - left);
        const float *column = from + left;
        int count = lesser(radius, height);

        memset(sums, 0, sizeof sums);
        for (int y = 0; y < count; y++)
            columns_slide(sums, column + (size_t)y * (size_t)width, NULL, strip);
        for (int y = 0; y < height; y++) {
            const float *enter = y + radius < height ? column + (size_t)(y + radius) * (size_t)width : NULL;
            const float *leave = y - radius > 0 ? column + (size_t)(y - radius - 1) * (size_t)width : NULL;

            count += (enter != NULL) - (leave != NULL);
            columns_slide(sums, enter, leave, strip);
            sums_divide(sums, 1.0 / count, to + (size_t)y * (size_t)width + left, strip);
        }
    }
}

void plane_blur(const float *from, float *to, int width, int height, int radius, float *scratch)
{
    for (int y = 0; y < height; y++)
        row_blur(from + (size_t)y * (size_t)width, scratch + (size_t)y * (size_t)width, width, radius);
    columns_blur(scratch, to, width, height, radius);
}
