#include "engine/texture.h"

#include <math.h>

#include "engine/clones.h"

#define LUMA_RADIUS     2
#define BLUE_RADIUS     5
#define ACTIVITY_RADIUS 4
#define FLOOR           0.8f  /* texture that even flat areas are taken to have */
#define LUMA_CAP_FLAT   0.75f /* standard deviation, grey levels */
#define LUMA_CAP_SLOPE  0.55f
#define LUMA_CAP_MOST   4.0f
#define BLUE_CAP_FLAT   0.45f
#define BLUE_CAP_SLOPE  0.5f
#define BLUE_CAP_MOST   1.2f
#define HEADROOM        6.0f /* grey levels from black or white under which the strength fades */
#define HEADROOM_LEAST  0.25f

ENGINE_CLONES
static void detail_take(const float *plane, const float *mean, float *detail, float *root, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        detail[i] = plane[i] - mean[i];
        root[i] = sqrtf(fabsf(detail[i]));
    }
}

ENGINE_CLONES
static void square(float *values, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        values[i] *= values[i];
}

bool texture_measure(const float *plane, int width, int height, int radius, struct workspace *workspace,
                     struct texture *texture)
{
    size_t count = (size_t)width * (size_t)height;
    unsigned mark;
    float *mean;
    float *scratch;

    texture->detail = workspace_take(workspace, count, sizeof(float));
    texture->activity = workspace_take(workspace, count, sizeof(float));
    mark = workspace_mark(workspace);
    mean = workspace_take(workspace, count, sizeof(float));
    scratch = workspace_take(workspace, count, sizeof(float));
    if (workspace->failed)
        return false;
    plane_blur(plane, texture->activity, width, height, radius, scratch);
    plane_blur(texture->activity, mean, width, height, radius, scratch);
    detail_take(plane, mean, texture->detail, texture->activity, count);
    plane_blur(texture->activity, mean, width, height, ACTIVITY_RADIUS, scratch);
    plane_blur(mean, texture->activity, width, height, ACTIVITY_RADIUS, scratch);
    square(texture->activity, count);
    workspace_rewind(workspace, mark);
    return true;
}

/* Near black and near white the pattern would be clipped on one side. */
static inline float headroom(float luma)
{
    float room = (luma < 255.0f - luma ? luma : 255.0f - luma) * (1 / HEADROOM);

    return room >= 1 ? 1.0f : room > HEADROOM_LEAST ? room : HEADROOM_LEAST;
}

/* The pattern grows with the square root of the texture. */
static inline float strength(float activity)
{
    return sqrtf(activity + FLOOR);
}

ENGINE_CLONES
static void mask_fill(const float *activity, const float *luma, const float cap[3], float *shape,
                      float *limit, size_t count)
{
    float flat = cap[0];
    float slope = cap[1];
    float most = cap[2];
    size_t i;

    for (i = 0; i < count; i++) {
        float share = headroom(luma[i]);
        float bound = flat + slope * activity[i];

        shape[i] = strength(activity[i]) * share;
        limit[i] = (bound < most ? bound : most) * share;
    }
}

ENGINE_CLONES
static void weight_apply(float *values, const float *weight, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        values[i] *= weight[i];
}

bool texture_mask(const struct plane *plane, struct workspace *workspace, struct texture_mask *mask)
{
    static const float luma_cap[3] = {LUMA_CAP_FLAT, LUMA_CAP_SLOPE, LUMA_CAP_MOST};
    static const float blue_cap[3] = {BLUE_CAP_FLAT, BLUE_CAP_SLOPE, BLUE_CAP_MOST};
    size_t count = (size_t)plane->width * (size_t)plane->height;
    struct texture texture;
    unsigned mark;

    mask->luma_shape = workspace_take(workspace, count, sizeof(float));
    mask->luma_cap = workspace_take(workspace, count, sizeof(float));
    mask->blue_shape = plane->blue == NULL ? NULL : workspace_take(workspace, count, sizeof(float));
    mask->blue_cap = plane->blue == NULL ? NULL : workspace_take(workspace, count, sizeof(float));
    mark = workspace_mark(workspace);
    if (!texture_measure(plane->luma, plane->width, plane->height, LUMA_RADIUS, workspace, &texture))
        return false;
    mask_fill(texture.activity, plane->luma, luma_cap, mask->luma_shape, mask->luma_cap, count);
    if (plane->weight != NULL)
        weight_apply(mask->luma_shape, plane->weight, count);
    if (plane->blue != NULL) {
        mask_fill(texture.activity, plane->luma, blue_cap, mask->blue_shape, mask->blue_cap, count);
        if (plane->weight != NULL)
            weight_apply(mask->blue_shape, plane->weight, count);
    }
    workspace_rewind(workspace, mark);
    return true;
}

static inline float within(float value, float most)
{
    return value > most ? most : value < -most ? -most : value;
}

ENGINE_CLONES
static void whiten(float *detail, const float *activity, const float *luma, float noise, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        float a = activity[i];
        float weight = headroom(luma[i]) * strength(a) / (a * a + noise);

        detail[i] = within(detail[i], 3.0f * (a + 1.0f)) * weight;
    }
}

void texture_whiten(struct texture *texture, const struct plane *plane, bool is_blue)
{
    size_t count = (size_t)plane->width * (size_t)plane->height;

    whiten(texture->detail, texture->activity, plane->luma, is_blue ? 1.0f : 3.0f, count);
    if (plane->weight != NULL)
        weight_apply(texture->detail, plane->weight, count);
}

void texture_whiten_residual(struct texture *damage, const struct texture *host,
                             const struct texture *suspect, const struct plane *plane, const float *inside)
{
    size_t count = (size_t)plane->width * (size_t)plane->height;
    size_t i;

    for (i = 0; i < count; i++) {
        float a = damage->activity[i];
        float kept = fminf((suspect->activity[i] + 0.1f) / (host->activity[i] + 0.5f), 1.0f);
        float weight = kept * kept * strength(host->activity[i]) / (a * a + 6.0f);
        float most = 3.0f * (a + 1.0f);

        damage->detail[i] = within(damage->detail[i], most) * weight * inside[i] *
                            (plane->weight == NULL ? 1.0f : plane->weight[i]);
    }
}
