#include "engine/watermark/keypoint.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/watermark/plane.h"

#define PI           3.14159265358979323846
#define LEVEL_STEP   1.26 /* from one level of the pyramid to the next */
#define SIDE_LEAST   40   /* pixels of the last level */
#define BORDER       12   /* pixels that a description reaches */
#define CELLS        4    /* a side */
#define CELL_SIDE    4.0f /* pixels of the level */
#define DIRECTIONS   8
#define ANGLE_BINS   36
#define SECOND_ANGLE 0.85f /* another direction nearly as strong makes a second point */
#define LIMIT        0.2f  /* on a component, so that one strong edge does not say it all */

struct level {
    int width;
    int height;
    double size;
    float *values;
    float *response;
};

static float at(const float *values, const struct level *level, int x, int y)
{
    return values[(size_t)y * (size_t)level->width + (size_t)x];
}

/* The mean over the area that a pixel of the level covers. */
static void level_reduce(const float *plane, int width, const struct level *level)
{
    int x;
    int y;

    for (y = 0; y < level->height; y++) {
        for (x = 0; x < level->width; x++) {
            int left = (int)(x * level->size);
            int top = (int)(y * level->size);
            int right = (int)((x + 1) * level->size);
            int bottom = (int)((y + 1) * level->size);
            float sum = 0;
            int i;
            int j;

            right = right > left ? right : left + 1;
            bottom = bottom > top ? bottom : top + 1;
            for (j = top; j < bottom; j++)
                for (i = left; i < right; i++)
                    sum += plane[(size_t)j * (size_t)width + (size_t)i];
            level->values[(size_t)y * (size_t)level->width + (size_t)x] =
                sum / (float)((right - left) * (bottom - top));
        }
    }
}

/* A difference of two blurs: strong on blobs and corners. */
static bool level_respond(struct level *level, struct workspace *workspace)
{
    size_t mark = workspace_mark(workspace);
    size_t count = (size_t)level->width * (size_t)level->height;
    float *scratch = workspace_take(workspace, count, sizeof *scratch);
    float *fine = workspace_take(workspace, count, sizeof *fine);
    float *coarse = workspace_take(workspace, count, sizeof *coarse);
    size_t i;

    if (workspace->failed)
        return false;
    plane_blur(level->values, coarse, level->width, level->height, 1, scratch);
    plane_blur(coarse, fine, level->width, level->height, 1, scratch);
    plane_blur(fine, coarse, level->width, level->height, 2, scratch);
    for (i = 0; i < count; i++)
        level->response[i] = fine[i] - coarse[i];
    memcpy(level->values, fine, count * sizeof *fine);
    workspace_rewind(workspace, mark);
    return true;
}

/* A peak or a pit, and no mere edge. */
static bool is_point(const struct level *level, int x, int y)
{
    float middle = at(level->response, level, x, y);
    float xx = at(level->response, level, x + 1, y) + at(level->response, level, x - 1, y) - 2 * middle;
    float yy = at(level->response, level, x, y + 1) + at(level->response, level, x, y - 1) - 2 * middle;
    float xy = (at(level->response, level, x + 1, y + 1) + at(level->response, level, x - 1, y - 1) -
                at(level->response, level, x + 1, y - 1) - at(level->response, level, x - 1, y + 1)) /
               4;
    float trace = xx + yy;
    float determinant = xx * yy - xy * xy;
    int i;

    if (fabsf(middle) < 0.4f || determinant <= 0 || trace * trace > 12 * determinant)
        return false;
    for (i = 0; i < 9; i++) {
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

static struct gradient gradient_at(const struct level *level, int x, int y)
{
    float dx = at(level->values, level, x + 1, y) - at(level->values, level, x - 1, y);
    float dy = at(level->values, level, x, y + 1) - at(level->values, level, x, y - 1);

    return (struct gradient){sqrtf(dx * dx + dy * dy), atan2f(dy, dx)};
}

static void angles_gather(const struct level *level, int x, int y, float bins[ANGLE_BINS])
{
    float raw[ANGLE_BINS] = {0};
    int i;
    int j;

    for (j = -6; j <= 6; j++) {
        for (i = -6; i <= 6; i++) {
            struct gradient gradient = gradient_at(level, x + i, y + j);
            float place = (gradient.angle + (float)PI) / (2 * (float)PI) * ANGLE_BINS;

            raw[(int)place % ANGLE_BINS] += gradient.size * expf(-(float)(i * i + j * j) / 18.0f);
        }
    }
    for (i = 0; i < ANGLE_BINS; i++)
        bins[i] = raw[(i + ANGLE_BINS - 1) % ANGLE_BINS] + 2 * raw[i] + raw[(i + 1) % ANGLE_BINS];
}

/* Spreads a gradient over the cells and directions around its place. */
static void cells_add(float *cells, const float place[3], float value)
{
    int base[3];
    float way[3];
    int i;

    for (i = 0; i < 3; i++) {
        base[i] = (int)floorf(place[i]);
        way[i] = place[i] - (float)base[i];
    }
    for (i = 0; i < 8; i++) {
        int column = base[0] + (i & 1);
        int row = base[1] + (i >> 1 & 1);
        int direction = (base[2] + (i >> 2) + DIRECTIONS) % DIRECTIONS;
        float share =
            (i & 1 ? way[0] : 1 - way[0]) * (i & 2 ? way[1] : 1 - way[1]) * (i & 4 ? way[2] : 1 - way[2]);

        if (column >= 0 && column < CELLS && row >= 0 && row < CELLS)
            cells[(row * CELLS + column) * DIRECTIONS + direction] += share * value;
    }
}

static void description_scale(const float *cells, uint8_t *description)
{
    float sum = 1e-6f;
    float limited = 1e-6f;
    int i;

    for (i = 0; i < KEYPOINT_BYTES; i++)
        sum += cells[i] * cells[i];
    for (i = 0; i < KEYPOINT_BYTES; i++) {
        float value = fminf(cells[i] / sqrtf(sum), LIMIT);

        limited += value * value;
    }
    for (i = 0; i < KEYPOINT_BYTES; i++) {
        float value = fminf(cells[i] / sqrtf(sum), LIMIT) / sqrtf(limited) * 512;

        description[i] = (uint8_t)fminf(value, 255);
    }
}

static void describe(const struct level *level, int x, int y, struct keypoint *point)
{
    float cells[KEYPOINT_BYTES] = {0};
    float cosine = cosf(point->angle);
    float sine = sinf(point->angle);
    int i;
    int j;

    for (j = -BORDER + 1; j < BORDER; j++) {
        for (i = -BORDER + 1; i < BORDER; i++) {
            struct gradient gradient = gradient_at(level, x + i, y + j);
            float across = ((float)i * cosine + (float)j * sine) / CELL_SIDE;
            float down = ((float)j * cosine - (float)i * sine) / CELL_SIDE;
            float turned = gradient.angle - point->angle;
            const float place[3] = {across + CELLS / 2.0f - 0.5f, down + CELLS / 2.0f - 0.5f,
                                    (turned < 0 ? turned + 2 * (float)PI : turned) / (2 * (float)PI) *
                                        DIRECTIONS};

            cells_add(cells, place, gradient.size * expf(-(across * across + down * down) / 8.0f));
        }
    }
    description_scale(cells, point->description);
}

static int points_add(const struct level *level, int x, int y, struct keypoint *points, int room)
{
    float bins[ANGLE_BINS];
    float most = 0;
    int count = 0;
    int i;

    angles_gather(level, x, y, bins);
    for (i = 0; i < ANGLE_BINS; i++)
        most = fmaxf(most, bins[i]);
    for (i = 0; i < ANGLE_BINS && count < room; i++) {
        float before = bins[(i + ANGLE_BINS - 1) % ANGLE_BINS];
        float after = bins[(i + 1) % ANGLE_BINS];
        float peak;

        if (bins[i] < SECOND_ANGLE * most || bins[i] <= before || bins[i] < after)
            continue;
        peak = (float)i + 0.5f + 0.5f * (before - after) / (before - 2 * bins[i] + after);
        points[count].x = (float)((x + 0.5) * level->size);
        points[count].y = (float)((y + 0.5) * level->size);
        points[count].size = (float)level->size;
        points[count].angle = peak / ANGLE_BINS * 2 * (float)PI - (float)PI;
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

/* The response that KEYPOINT_LEVEL_MAX points of the level reach. */
static float level_threshold(const struct level *level, float *strengths)
{
    size_t count = 0;
    int x;
    int y;

    for (y = BORDER; y < level->height - BORDER; y++)
        for (x = BORDER; x < level->width - BORDER; x++)
            if (is_point(level, x, y))
                strengths[count++] = fabsf(at(level->response, level, x, y));
    if (count <= KEYPOINT_LEVEL_MAX)
        return 0;
    qsort(strengths, count, sizeof *strengths, float_compare);
    return strengths[KEYPOINT_LEVEL_MAX];
}

static int level_points(struct level *level, struct workspace *workspace, struct keypoint *points, int room)
{
    size_t mark = workspace_mark(workspace);
    float *strengths =
        workspace_take(workspace, (size_t)level->width * (size_t)level->height, sizeof *strengths);
    float threshold;
    int count = 0;
    int x;
    int y;

    if (strengths == NULL || !level_respond(level, workspace))
        return -1;
    threshold = level_threshold(level, strengths);
    for (y = BORDER; y < level->height - BORDER; y++)
        for (x = BORDER; x < level->width - BORDER; x++)
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
    struct level level = {.size = 1};
    int count = 0;

    level.values = workspace_take(workspace, most, sizeof(float));
    level.response = workspace_take(workspace, most, sizeof(float));
    if (workspace->failed)
        return -1;
    for (;; level.size *= LEVEL_STEP) {
        int found;

        level.width = (int)(width / level.size);
        level.height = (int)(height / level.size);
        if (level.width < SIDE_LEAST || level.height < SIDE_LEAST || count == KEYPOINTS_MAX)
            break;
        level_reduce(plane, width, &level);
        found = level_points(&level, workspace, points + count, KEYPOINTS_MAX - count);
        if (found < 0)
            return -1;
        count += found;
    }
    workspace_rewind(workspace, mark);
    return count;
}
