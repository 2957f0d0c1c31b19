#include "engine/watermark/registration.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/watermark/keypoint.h"

/* No published source; `./dev bench watermark` measures the effect. */
enum {
    matches_least = 6,
    refine_rounds = 12,
    refine_points = 60000, /* sampled pixels per round */
    unknowns = 8           /* six of the map, gain and offset of the grey levels */
};

/*
 * Largest distance of the nearest description relative to the nearest at another place: the ratio test of
 * Lowe (keypoint.h).
 */
static const float distance_ratio = 0.82f;

struct match {
    float from[2];
    float to[2];
    float size; /* scale of the map from this match */
    float angle;
};

ENGINE_CLONES
static int distance(const uint8_t *a, const uint8_t *b)
{
    int sum = 0;

    for (int i = 0; i < keypoint_bytes; i++) {
        int difference = a[i] - b[i];

        sum += difference * difference;
    }
    return sum;
}

/* Returns the point with the nearest description, or NULL if a point at another place is almost as near. */
static const struct keypoint *nearest(const struct keypoint *point, const struct keypoint *points, int count)
{
    const struct keypoint *best = NULL;
    int least = 1 << 30;
    int other = 1 << 30;

    for (int i = 0; i < count; i++) {
        int d = distance(point->description, points[i].description);
        bool is_elsewhere =
            best == NULL || fabsf(points[i].x - best->x) + fabsf(points[i].y - best->y) > 6 * best->size;

        if (d < least) {
            if (is_elsewhere)
                other = least;
            least = d;
            best = &points[i];
        } else if (d < other && is_elsewhere) {
            other = d;
        }
    }
    return best != NULL && (float)least < distance_ratio * distance_ratio * (float)other ? best : NULL;
}

static int matches_find(const struct keypoint *suspect, int suspect_count, const struct keypoint *original,
                        int original_count, struct match *matches)
{
    int count = 0;

    for (int i = 0; i < suspect_count; i++) {
        const struct keypoint *point = nearest(&suspect[i], original, original_count);

        if (point == NULL)
            continue;
        matches[count++] = (struct match){{suspect[i].x, suspect[i].y},
                                          {point->x, point->y},
                                          point->size / suspect[i].size,
                                          point->angle - suspect[i].angle};
    }
    return count;
}

static void map_apply(const struct affine_map *map, double x, double y, double to[2])
{
    to[0] = map->matrix[0] * x + map->matrix[1] * y + map->offset[0];
    to[1] = map->matrix[2] * x + map->matrix[3] * y + map->offset[1];
}

static bool is_inlier(const struct affine_map *map, const struct match *match, double reach)
{
    double to[2];

    map_apply(map, (double)match->from[0], (double)match->from[1], to);
    return hypot(to[0] - (double)match->to[0], to[1] - (double)match->to[1]) < reach;
}

static int inliers_count(const struct affine_map *map, const struct match *matches, int count, double reach)
{
    int inliers = 0;

    for (int i = 0; i < count; i++)
        inliers += is_inlier(map, &matches[i], reach);
    return inliers;
}

/* Returns the map of scale and rotation that follows from a single match. */
static struct affine_map match_map(const struct match *match)
{
    double cosine = (double)match->size * cos((double)match->angle);
    double sine = (double)match->size * sin((double)match->angle);
    struct affine_map map = {{cosine, -sine, sine, cosine}, {0, 0}};
    double to[2];

    map_apply(&map, (double)match->from[0], (double)match->from[1], to);
    map.offset[0] = (double)match->to[0] - to[0];
    map.offset[1] = (double)match->to[1] - to[1];
    return map;
}

/*
 * Solves a symmetric system in place by Gauss-Jordan elimination with pivoting. Returns false if the system
 * is singular.
 */
static bool system_solve(double *matrix, double *right, int size)
{
    for (int i = 0; i < size; i++) {
        int pivot = i;

        for (int j = i + 1; j < size; j++)
            if (fabs(matrix[j * size + i]) > fabs(matrix[pivot * size + i]))
                pivot = j;
        if (fabs(matrix[pivot * size + i]) < 1e-12)
            return false;
        for (int k = 0; k < size && pivot != i; k++) {
            double swapped = matrix[i * size + k];

            matrix[i * size + k] = matrix[pivot * size + k];
            matrix[pivot * size + k] = swapped;
        }
        if (pivot != i) {
            double swapped = right[i];

            right[i] = right[pivot];
            right[pivot] = swapped;
        }
        for (int j = 0; j < size; j++) {
            double factor = j == i ? 0 : matrix[j * size + i] / matrix[i * size + i];

            for (int k = 0; k < size && j != i; k++)
                matrix[j * size + k] -= factor * matrix[i * size + k];
            right[j] -= factor * right[i];
        }
    }
    for (int i = 0; i < size; i++)
        right[i] /= matrix[i * size + i];
    return true;
}

/* Fits an affine map by least squares to the inliers of a map. */
static bool map_fit(struct affine_map *map, const struct match *matches, int count, double reach)
{
    double normal[9] = {0};
    double columns[2][3] = {{0}, {0}};
    double copy[9];

    for (int i = 0; i < count; i++) {
        const double row[3] = {(double)matches[i].from[0], (double)matches[i].from[1], 1};

        if (!is_inlier(map, &matches[i], reach))
            continue;
        for (int j = 0; j < 3; j++) {
            for (int k = 0; k < 3; k++)
                normal[j * 3 + k] += row[j] * row[k];
            columns[0][j] += row[j] * (double)matches[i].to[0];
            columns[1][j] += row[j] * (double)matches[i].to[1];
        }
    }
    memcpy(copy, normal, sizeof copy);
    if (!system_solve(normal, columns[0], 3) || !system_solve(copy, columns[1], 3))
        return false;
    *map = (struct affine_map){{columns[0][0], columns[0][1], columns[1][0], columns[1][1]},
                               {columns[0][2], columns[1][2]}};
    return true;
}

/* Finds the map with the most inliers; returns their count. */
static int matches_agree(const struct match *matches, int count, double reach, struct affine_map *best)
{
    struct affine_map fitted;
    int most = 0;

    for (int i = 0; i < count; i++) {
        struct affine_map map = match_map(&matches[i]);
        int inliers = inliers_count(&map, matches, count, 2 * reach);

        if (inliers > most) {
            most = inliers;
            *best = map;
        }
    }
    for (int i = 0; i < 4 && most >= matches_least; i++) {
        fitted = *best;
        if (!map_fit(&fitted, matches, count, i < 2 ? 2 * reach : reach))
            break;
        *best = fitted;
        most = inliers_count(best, matches, count, reach);
    }
    return most;
}

struct finder {
    const struct plane *suspect;
    const struct plane *original;
    struct keypoint *suspect_points;
    struct keypoint *original_points;
    struct match *matches;
    float *mirrored;
    int original_count;
    double reach;
};

/* Matches the suspect as it is, or mirrored. Returns the number of inliers, or -1 if memory is short. */
static int finder_try(struct finder *finder, bool is_mirrored, struct workspace *workspace,
                      struct affine_map *registration)
{
    const struct plane *suspect = finder->suspect;
    const float *values = suspect->luma;
    size_t width = (size_t)suspect->width;

    if (is_mirrored) {
        for (size_t row = 0; row < (size_t)suspect->height * width; row += width)
            for (size_t x = 0; x < width; x++)
                finder->mirrored[row + x] = values[row + width - 1 - x];
        values = finder->mirrored;
    }
    int count = keypoint_find(values, suspect->width, suspect->height, workspace, finder->suspect_points);
    if (count < 0)
        return -1;
    count = matches_find(finder->suspect_points, count, finder->original_points, finder->original_count,
                         finder->matches);
    count = matches_agree(finder->matches, count, finder->reach, registration);
    if (is_mirrored) {
        /* Convert the mirrored suspect's map to the suspect's map. */
        registration->offset[0] += registration->matrix[0] * suspect->width;
        registration->offset[1] += registration->matrix[2] * suspect->width;
        registration->matrix[0] = -registration->matrix[0];
        registration->matrix[2] = -registration->matrix[2];
    }
    return count;
}

enum registration_answer registration_find(const struct plane *suspect, const struct plane *original,
                                           struct workspace *workspace, struct affine_map *registration)
{
    struct finder finder = {.suspect = suspect, .original = original};
    struct affine_map mirrored = *registration;
    size_t mark = workspace_mark(workspace);

    finder.suspect_points = workspace_take(workspace, keypoints_max, sizeof(struct keypoint));
    finder.original_points = workspace_take(workspace, keypoints_max, sizeof(struct keypoint));
    finder.matches = workspace_take(workspace, keypoints_max, sizeof(struct match));
    finder.mirrored =
        workspace_take(workspace, (size_t)suspect->width * (size_t)suspect->height, sizeof(float));
    finder.reach = 0.006 * hypot(original->width, original->height);
    if (workspace->failed)
        return REGISTRATION_NO_MEMORY;
    finder.original_count =
        keypoint_find(original->luma, original->width, original->height, workspace, finder.original_points);
    if (finder.original_count < 0)
        return REGISTRATION_NO_MEMORY;
    int upright = finder_try(&finder, false, workspace, registration);
    int turned = upright < 0 ? -1 : finder_try(&finder, true, workspace, &mirrored);
    if (upright < 0 || turned < 0)
        return REGISTRATION_NO_MEMORY;
    if (turned > upright)
        *registration = mirrored;
    workspace_rewind(workspace, mark);
    return upright >= matches_least || turned >= matches_least ? REGISTRATION_DONE : REGISTRATION_NONE;
}

/* Interpolates a value and its slopes along x and y. Returns false outside the plane. */
static bool sample_slope(const struct plane *plane, const double place[2], double sample[3])
{
    double x = place[0] - 0.5;
    double y = place[1] - 0.5;
    int left = (int)floor(x);
    int top = (int)floor(y);

    if (left < 0 || top < 0 || left + 1 >= plane->width || top + 1 >= plane->height)
        return false;
    const float *at = plane->luma + (size_t)top * (size_t)plane->width + (size_t)left;
    x -= left;
    y -= top;
    double a = (double)at[0] + x * (double)(at[1] - at[0]);
    double b = (double)at[plane->width] + x * (double)(at[plane->width + 1] - at[plane->width]);
    sample[0] = a + y * (b - a);
    sample[1] = (1 - y) * (double)(at[1] - at[0]) + y * (double)(at[plane->width + 1] - at[plane->width]);
    sample[2] = b - a;
    return true;
}

/* Makes a Gauss-Newton step. tones holds the gain and the offset of the grey levels. */
static bool refine_step(const struct plane *suspect, const struct plane *original, struct affine_map *map,
                        double tones[2])
{
    double normal[unknowns * unknowns] = {0};
    double right[unknowns] = {0};
    int every = (int)sqrt((double)suspect->width * suspect->height / refine_points) + 1;

    for (int y = every / 2; y < suspect->height; y += every) {
        for (int x = every / 2; x < suspect->width; x += every) {
            double place[2];
            double sample[3];

            map_apply(map, x + 0.5, y + 0.5, place);
            if (!sample_slope(original, place, sample))
                continue;
            double error = (double)suspect->luma[(size_t)y * (size_t)suspect->width + (size_t)x] -
                           tones[0] * sample[0] - tones[1];
            double weight = 1 / (1 + error * error / 400);
            {
                const double dx = tones[0] * sample[1];
                const double dy = tones[0] * sample[2];
                const double row[unknowns] = {
                    dx * (x + 0.5), dx * (y + 0.5), dx, dy * (x + 0.5), dy * (y + 0.5), dy, sample[0], 1};

                for (int i = 0; i < unknowns; i++) {
                    for (int j = 0; j < unknowns; j++)
                        normal[i * unknowns + j] += weight * row[i] * row[j];
                    right[i] += weight * row[i] * error;
                }
            }
        }
    }
    if (!system_solve(normal, right, unknowns))
        return false;
    map->matrix[0] += right[0];
    map->matrix[1] += right[1];
    map->offset[0] += right[2];
    map->matrix[2] += right[3];
    map->matrix[3] += right[4];
    map->offset[1] += right[5];
    tones[0] += right[6];
    tones[1] += right[7];
    return true;
}

void registration_refine(const struct plane *suspect, const struct plane *original,
                         struct affine_map *registration)
{
    struct affine_map refined = *registration;
    double tones[2] = {1, 0};

    for (int round = 0; round < refine_rounds; round++)
        if (!refine_step(suspect, original, &refined, tones))
            return;
    for (int round = 0; round < 4; round++)
        if (!isfinite(refined.matrix[round]) ||
            fabs(refined.matrix[round] - registration->matrix[round]) > 0.1)
            return;
    *registration = refined;
}

/* Computes the weights of four neighbours for cubic convolution, which interpolates the samples. */
static void cubic_weights(double way, double weights[4])
{
    weights[0] = ((-0.5 * way + 1) * way - 0.5) * way;
    weights[1] = (1.5 * way - 2.5) * way * way + 1;
    weights[2] = ((-1.5 * way + 2) * way + 0.5) * way;
    weights[3] = (0.5 * way - 0.5) * way * way;
}

static double cubic_sample(const float *values, const struct plane *plane, int left, int top,
                           const double *across, const double *down)
{
    double sum = 0;

    for (int j = 0; j < 4; j++) {
        const float *line = values + (size_t)(top + j) * (size_t)plane->width + (size_t)left;
        double part = 0;

        for (int i = 0; i < 4; i++)
            part += across[i] * (double)line[i];
        sum += down[j] * part;
    }
    return sum;
}

void registration_warp(const float *values, const struct plane *original,
                       const struct affine_map *registration, int width, int height, float *warped,
                       float *inside)
{
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            size_t to = (size_t)y * (size_t)width + (size_t)x;
            double place[2];
            double across[4];
            double down[4];

            map_apply(registration, x + 0.5, y + 0.5, place);
            int left = (int)floor(place[0] - 0.5) - 1;
            int top = (int)floor(place[1] - 0.5) - 1;
            inside[to] = left >= 0 && top >= 0 && left + 3 < original->width && top + 3 < original->height;
            warped[to] = 0;
            if (inside[to] <= 0)
                continue;
            cubic_weights(place[0] - 0.5 - (left + 1), across);
            cubic_weights(place[1] - 0.5 - (top + 1), down);
            warped[to] = (float)cubic_sample(values, original, left, top, across, down);
        }
    }
}
