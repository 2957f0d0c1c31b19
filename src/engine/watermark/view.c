#include "engine/watermark/view.h"

#include <math.h>

enum {
    pitch_least_chips = 8,
    pitch_most_chips = 128,
    side_most = 255,
    samples_side = 4 /* of the samples of a pixel */
};

/* chips = (matrix * place + offset) / (1 + slant . place); place is relative to the plane's centre. */
struct mapping {
    const struct plane *plane;
    const struct pose *pose;
    const double *slant;
};

static void chips_of(const struct mapping *mapping, double x, double y, double chips[2])
{
    const double *matrix = mapping->pose->matrix;
    double depth = 1 + mapping->slant[0] * x + mapping->slant[1] * y;

    chips[0] = (matrix[0] * x + matrix[1] * y + mapping->pose->offset[0]) / depth;
    chips[1] = (matrix[2] * x + matrix[3] * y + mapping->pose->offset[1]) / depth;
}

/* Solves the map for the place of chips in the plane, from its corner. */
static void place_of(const struct mapping *mapping, double u, double v, float place[2])
{
    const double *matrix = mapping->pose->matrix;
    const double *slant = mapping->slant;
    double rows[4] = {matrix[0] - u * slant[0], matrix[1] - u * slant[1], matrix[2] - v * slant[0],
                      matrix[3] - v * slant[1]};
    double factor = 1 / (rows[0] * rows[3] - rows[1] * rows[2]);
    double across = u - mapping->pose->offset[0];
    double down = v - mapping->pose->offset[1];

    place[0] = (float)((rows[3] * across - rows[1] * down) * factor + mapping->plane->width / 2);
    place[1] = (float)((rows[0] * down - rows[2] * across) * factor + mapping->plane->height / 2);
}

/* Returns the sample at a place; negative outside the plane. */
static float sample_at(const struct plane *plane, float x, float y)
{
    if (!(x >= 0 && y >= 0 && x < (float)plane->width && y < (float)plane->height))
        return -1;
    size_t at = (size_t)y * (size_t)plane->width + (size_t)x;
    return plane->weight != NULL && plane->weight[at] <= 0 ? -1 : plane->luma[at];
}

/*
 * Returns the mean of the samples of a pixel, or 0 if most samples are outside. Within a pixel the map is
 * linear.
 */
static uint8_t pixel_at(const struct mapping *mapping, double left, double top, double pitch)
{
    float corner[2], across[2], down[2];
    float sum = 0;
    int count = 0;

    place_of(mapping, left, top, corner);
    place_of(mapping, left + pitch, top, across);
    place_of(mapping, left, top + pitch, down);
    for (int i = 0; i < samples_side * samples_side; i++) {
        float u = ((float)(i % samples_side) + 0.5f) / samples_side;
        float v = ((float)(i / samples_side) + 0.5f) / samples_side;
        float sample =
            sample_at(mapping->plane, corner[0] + u * (across[0] - corner[0]) + v * (down[0] - corner[0]),
                      corner[1] + u * (across[1] - corner[1]) + v * (down[1] - corner[1]));

        sum += sample < 0 ? 0 : sample;
        count += sample >= 0;
    }
    if (2 * count < samples_side * samples_side)
        return 0;
    float mean = sum / (float)count;
    return (uint8_t)(mean < 1 ? 1 : mean > 255 ? 255 : mean + 0.5f);
}

/* Computes the extent of the plane's corners in chips. */
static void extent_find(const struct mapping *mapping, double least[2], double most[2])
{
    double half[2] = {mapping->plane->width / 2.0, mapping->plane->height / 2.0};

    for (int corner = 0; corner < 4; corner++) {
        double chips[2];

        chips_of(mapping, corner & 1 ? half[0] : -half[0], corner & 2 ? half[1] : -half[1], chips);
        for (int i = 0; i < 2; i++) {
            least[i] = corner == 0 ? chips[i] : fmin(least[i], chips[i]);
            most[i] = corner == 0 ? chips[i] : fmax(most[i], chips[i]);
        }
    }
}

/*
 * Returns the finest pitch at which a view of this extent is within the limits, or 0 if there is no such
 * pitch.
 */
static int pitch_choose(double width, double height)
{
    for (int pitch = pitch_least_chips; pitch <= pitch_most_chips; pitch *= 2)
        if (width < (side_most + 1) * pitch && height < (side_most + 1) * pitch &&
            floor(width / pitch) * floor(height / pitch) <= WATERMARK_VIEW_PX_MOST)
            return width >= pitch && height >= pitch ? pitch : 0;
    return 0;
}

void view_make(const struct plane *plane, const struct pose *pose, const double slant[2],
               struct watermark_view *view)
{
    const struct mapping mapping = {plane, pose, slant};
    double least[2];
    double most[2];

    *view = (struct watermark_view){.width = 0};
    extent_find(&mapping, least, most);
    int pitch = pitch_choose(most[0] - least[0], most[1] - least[1]);
    if (pitch == 0)
        return;
    view->width = (uint8_t)((most[0] - least[0]) / pitch);
    view->height = (uint8_t)((most[1] - least[1]) / pitch);
    view->pitch_chips = (uint8_t)pitch;
    for (int i = 0; i < 2; i++)
        view->origin_chips[i] = (uint8_t)(least[i] - lattice_period * floor(least[i] / lattice_period));
    for (int y = 0; y < view->height; y++)
        for (int x = 0; x < view->width; x++)
            view->pixels[y * view->width + x] =
                pixel_at(&mapping, least[0] + x * pitch, least[1] + y * pitch, pitch);
}

void view_make_read(const struct plane *luma, const struct reader *reader, const struct plane *plane,
                    double chips, struct watermark_view *view)
{
    double scale = (double)plane->width / luma->width;
    struct pose pose = reader->pose;
    const double slant[2] = {reader->slant[0] * scale, reader->slant[1] * scale};

    for (int i = 0; i < 4; i++)
        pose.matrix[i] *= chips * scale;
    for (int i = 0; i < 2; i++)
        pose.offset[i] *= chips;
    view_make(luma, &pose, slant, view);
}
