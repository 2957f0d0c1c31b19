#include "engine/watermark/keypoint.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/watermark/plane.h"

/* Cells, directions, bins and the limit on a component are those of Lowe's paper (see the header). */
enum {
    cells_across = 4, /* a description has cells_across * cells_across cells */
    directions = 8,
    angle_bins = 36,
    border_px = 12,    /* pixels of the level that a description reaches */
    side_least_px = 40 /* of the last level's shorter side */
};
static const float cell_side_px = 4.0f;        /* pixels of the level */
static const float component_most = 0.2f;      /* keeps one strong edge from dominating a description */
static const float second_angle_share = 0.85f; /* a direction this strong makes a second point */
static const double level_step = 1.26;         /* scale from one level to the next */

struct keypoint_level {
    int width;
    int height;
    double size;
    float *values;
    float *response;
};

static float at(const float *values, const struct keypoint_level *level, int x, int y)
{
    return values[(size_t)y * (size_t)level->width + (size_t)x];
}

/* Reduces the plane by the mean over the area of each pixel of the level. */
static void level_reduce(const float *plane, int width, const struct keypoint_level *level)
{
    for (int y = 0; y < level->height; y++) {
        for (int x = 0; x < level->width; x++) {
            int left = (int)(x * level->size);
            int top = (int)(y * level->size);
            int right = (int)((x + 1) * level->size);
            int bottom = (int)((y + 1) * level->size);
            float sum = 0;

            right = right > left ? right : left + 1;
            bottom = bottom > top ? bottom : top + 1;
            for (int j = top; j < bottom; j++)
                for (int i = left; i < right; i++)
                    sum += plane[(size_t)j * (size_t)width + (size_t)i];
            level->values[(size_t)y * (size_t)level->width + (size_t)x] =
                sum / (float)((right - left) * (bottom - top));
        }
    }
}

/* Computes a difference of two blurs, which is strong on blobs and corners. */
static bool level_respond(struct keypoint_level *level, struct workspace *workspace)
{
    size_t mark = workspace_mark(workspace);
    size_t count = (size_t)level->width * (size_t)level->height;
    float *scratch = workspace_take(workspace, count, sizeof *scratch);
    float *fine = workspace_take(workspace, count, sizeof *fine);
    float *coarse = workspace_take(workspace, count, sizeof *coarse);

    if (workspace->failed)
        return false;
    plane_blur(level->values, coarse, level->width, level->height, 1, scratch);
    plane_blur(coarse, fine, level->width, level->height, 1, scratch);
    plane_blur(fine, coarse, level->width, level->height, 2, scratch);
    for (size_t i = 0; i < count; i++)
        level->response[i] = fine[i] - coarse[i];
    memcpy(level->values, fine, count * sizeof *fine);
    workspace_rewind(workspace, mark);
    return true;
}

/* Returns true at an extremum that is not on an edge. */
static bool is_point(const struct keypoint_level *level, int x, int y)
{
    float middle = at(level->response, level, x, y);
    float xx = at(level->response, level, x + 1, y) + at(level->response, level, x - 1, y) - 2 * middle;
    float yy = at(level->response, level, x, y + 1) + at(level->response, level, x, y - 1) - 2 * middle;
    float xy = (at(level->response, level, x + 1, y + 1) + at(level->response, level, x - 1, y - 1) -
                at(level->response, level, x + 1, y - 1) - at(level->response, level, x - 1, y + 1)) /
               4;
    float trace = xx + yy;
    float determinant = xx * yy - xy * xy;

    if (fabsf(middle) < 0.4f || determinant <= 0 || trace * trace > 12 * determinant)
        return false;
    for (int i = 0; i < 9; i++) {
        float other = at(level->response, level, x + i % 3 - 1, y + i / 3 - 1);

        if (i != 4 && (middle > 0 ? other >= middle : other <= middle))
            return false;
    }
    return true;
}

struct gradient {
    float size;
    float angle;
};

static struct gradient gradient_at(const struct keypoint_level *level, int x, int y)
{
    float dx = at(level->values, level, x + 1, y) - at(level->values, level, x - 1, y);
    float dy = at(level->values, level, x, y + 1) - at(level->values, level, x, y - 1);

    return (struct gradient){sqrtf(dx * dx + dy * dy), atan2f(dy, dx)};
}

static void angles_gather(const struct keypoint_level *level, int x, int y, float bins[angle_bins])
{
    float raw[angle_bins] = {0};

    for (int j = -6; j <= 6; j++) {
        for (int i = -6; i <= 6; i++) {
            struct gradient gradient = gradient_at(level, x + i, y + j);
            float place = (gradient.angle + (float)M_PI) / (2 * (float)M_PI) * angle_bins;

            raw[(int)place % angle_bins] += gradient.size * expf(-(float)(i * i + j * j) / 18.0f);
        }
    }
    for (int i = 0; i < angle_bins; i++)
        bins[i] = raw[(i + angle_bins - 1) % angle_bins] + 2 * raw[i] + raw[(i + 1) % angle_bins];
}

/* Distributes a gradient over the neighbouring cells and directions (trilinear). */
static void cells_add(float *cells, const float place[3], float value)
{
    int base[3];
    float way[3];

    for (int i = 0; i < 3; i++) {
        base[i] = (int)floorf(place[i]);
        way[i] = place[i] - (float)base[i];
    }
    for (int i = 0; i < 8; i++) {
        int column = base[0] + (i & 1);
        int row = base[1] + (i >> 1 & 1);
        int direction = (base[2] + (i >> 2) + directions) % directions;
        float share =
            (i & 1 ? way[0] : 1 - way[0]) * (i & 2 ? way[1] : 1 - way[1]) * (i & 4 ? way[2] : 1 - way[2]);

        if (column >= 0 && column < cells_across && row >= 0 && row < cells_across)
            cells[(row * cells_across + column) * directions + direction] += share * value;
    }
}

static void description_scale(const float *cells, uint8_t *description)
{
    float sum = 1e-6f;
    float limited = 1e-6f;

    for (int i = 0; i < keypoint_bytes; i++)
        sum += cells[i] * cells[i];
    for (int i = 0; i < keypoint_bytes; i++) {
        float value = fminf(cells[i] / sqrtf(sum), component_most);

        limited += value * value;
    }
    for (int i = 0; i < keypoint_bytes; i++) {
        float value = fminf(cells[i] / sqrtf(sum), component_most) / sqrtf(limited) * 512;

        description[i] = (uint8_t)fminf(value, 255);
    }
}

static void describe(const struct keypoint_level *level, int x, int y, struct keypoint *point)
{
    float cells[keypoint_bytes] = {0};
    float cosine = cosf(point->angle);
    float sine = sinf(point->angle);

    for (int j = -border_px + 1; j < border_px; j++) {
        for (int i = -border_px + 1; i < border_px; i++) {
            struct gradient gradient = gradient_at(level, x + i, y + j);
            float across = ((float)i * cosine + (float)j * sine) / cell_side_px;
            float down = ((float)j * cosine - (float)i * sine) / cell_side_px;
            float turned = gradient.angle - point->angle;
            const float place[3] = {across + cells_across / 2.0f - 0.5f, down + cells_across / 2.0f - 0.5f,
                                    (turned < 0 ? turned + 2 * (float)M_PI : turned) / (2 * (float)M_PI) *
                                        directions};

            cells_add(cells, place, gradient.size * expf(-(across * across + down * down) / 8.0f));
        }
    }
    description_scale(cells, point->description);
}

static int points_add(const struct keypoint_level *level, int x, int y, struct keypoint *points, int room)
{
    float bins[angle_bins];
    float most = 0;
    int count = 0;

    angles_gather(level, x, y, bins);
    for (int i = 0; i < angle_bins; i++)
        most = fmaxf(most, bins[i]);
    for (int i = 0; i < angle_bins && count < room; i++) {
        float before = bins[(i + angle_bins - 1) % angle_bins];
        float after = bins[(i + 1) % angle_bins];

        if (bins[i] < second_angle_share * most || bins[i] <= before || bins[i] < after)
            continue;
        float peak = (float)i + 0.5f + 0.5f * (before - after) / (before - 2 * bins[i] + after);
        points[count].x = (float)((x + 0.5) * level->size);
        points[count].y = (float)((y + 0.5) * level->size);
        points[count].size = (float)level->size;
        points[count].angle = peak / angle_bins * 2 * (float)M_PI - (float)M_PI;
        points[count].strength = fabsf(at(level->response, level, x, y));
        describe(level, x, y, &points[count]);
        count++;
    }
    return count;
}

static int float_compare(const void *left, const void *right)
{
    const float *a = left;
    const float *b = right;

    return *a < *b ? 1 : *a > *b ? -1 : 0;
}

/* Returns the response that keypoint_level_max points of the level exceed. */
static float level_threshold(const struct keypoint_level *level, float *strengths)
{
    size_t count = 0;

    for (int y = border_px; y < level->height - border_px; y++)
        for (int x = border_px; x < level->width - border_px; x++)
            if (is_point(level, x, y))
                strengths[count++] = fabsf(at(level->response, level, x, y));
    if (count <= keypoint_level_max)
        return 0;
    qsort(strengths, count, sizeof *strengths, float_compare);
    return strengths[keypoint_level_max];
}

static int level_points(struct keypoint_level *level, struct workspace *workspace, struct keypoint *points,
                        int room)
{
    size_t mark = workspace_mark(workspace);
    float *strengths =
        workspace_take(workspace, (size_t)level->width * (size_t)level->height, sizeof *strengths);
    int count = 0;

    if (strengths == NULL || !level_respond(level, workspace))
        return -1;
    float threshold = level_threshold(level, strengths);
    for (int y = border_px; y < level->height - border_px; y++)
        for (int x = border_px; x < level->width - border_px; x++)
            if (is_point(level, x, y) && fabsf(at(level->response, level, x, y)) > threshold)
                count += points_add(level, x, y, points + count, room - count);
    workspace_rewind(workspace, mark);
    return count;
}

int keypoint_find(const float *plane, int width, int height, struct workspace *workspace,
                  struct keypoint *points)
{
    size_t mark = workspace_mark(workspace);
    size_t most = (size_t)width * (size_t)height;
    struct keypoint_level level = {.size = 1};
    int count = 0;

    level.values = workspace_take(workspace, most, sizeof(float));
    level.response = workspace_take(workspace, most, sizeof(float));
    if (workspace->failed)
        return -1;
    for (;; level.size *= level_step) {
        level.width = (int)(width / level.size);
        level.height = (int)(height / level.size);
        if (level.width < side_least_px || level.height < side_least_px || count == keypoints_max)
            break;
        level_reduce(plane, width, &level);
        int found = level_points(&level, workspace, points + count, keypoints_max - count);
        if (found < 0)
            return -1;
        count += found;
    }
    workspace_rewind(workspace, mark);
    return count;
}
