#include "engine/watermark/informed.h"

#include <math.h>
#include <string.h>

#include "engine/watermark/registration.h"
#include "engine/watermark/search.h"
#include "engine/watermark/texture.h"

/* No published source; `./dev bench watermark` measures informed reading. */
enum { fit_radius_px = 6 };              /* half the side of the square over which contrast is fitted */
static const float fit_noise = 2.0f;     /* added to the original's variance, squared grey levels */
static const double shrink_least = 1.05; /* from this scale on, the original is reduced as well */

struct overlay {
    struct reader *reader;
    const struct plane *suspect;
    struct plane original;
    double step; /* pixels of the original per pixel of the plane */
    struct affine_map registration;
    float *inside;
};

static void product(const float *a, const float *b, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = a[i] * b[i];
}

/*
 * residual = suspect - mean - gain * (warped - mean of warped). The gain is the local least-squares fit, so
 * changes of brightness, contrast and curves cancel.
 */
static bool residual_take(const struct plane *plane, const float *suspect, const float *warped,
                          float *residual, struct workspace *workspace)
{
    size_t mark = workspace_mark(workspace);
    size_t count = (size_t)plane->width * (size_t)plane->height;
    float *means[2];
    float *products[2];
    float *scratch = workspace_take(workspace, count, sizeof *scratch);

    for (size_t i = 0; i < 2; i++) {
        means[i] = workspace_take(workspace, count, sizeof(float));
        products[i] = workspace_take(workspace, count, sizeof(float));
    }
    if (workspace->failed)
        return false;
    plane_blur(suspect, means[0], plane->width, plane->height, fit_radius_px, scratch);
    plane_blur(warped, means[1], plane->width, plane->height, fit_radius_px, scratch);
    product(suspect, warped, residual, count);
    plane_blur(residual, products[0], plane->width, plane->height, fit_radius_px, scratch);
    product(warped, warped, residual, count);
    plane_blur(residual, products[1], plane->width, plane->height, fit_radius_px, scratch);
    for (size_t i = 0; i < count; i++) {
        float covariance = products[0][i] - means[0][i] * means[1][i];
        float variance = products[1][i] - means[1][i] * means[1][i];
        float gain = covariance / (fmaxf(variance, 0) + fit_noise);

        residual[i] = suspect[i] - means[0][i] - gain * (warped[i] - means[1][i]);
    }
    workspace_rewind(workspace, mark);
    return true;
}

/* Whitens a channel's residual. Returns NULL if memory is short. The result belongs to the workspace. */
static float *channel_whiten(struct overlay *overlay, const float *suspect, const float *original, int blur)
{
    struct workspace *workspace = overlay->reader->workspace;
    const struct plane *plane = overlay->suspect;
    size_t count = (size_t)plane->width * (size_t)plane->height;
    float *result = workspace_take(workspace, count, sizeof *result);
    size_t mark = workspace_mark(workspace);
    float *warped = workspace_take(workspace, count, sizeof *warped);
    float *residual = workspace_take(workspace, count, sizeof *residual);
    struct texture host;
    struct texture damage;
    struct texture seen;

    if (workspace->failed)
        return NULL;
    registration_warp(original, &overlay->original, &overlay->registration, plane->width, plane->height,
                      warped, overlay->inside);
    if (!residual_take(plane, suspect, warped, residual, workspace) ||
        !texture_measure(warped, plane->width, plane->height, blur, workspace, &host) ||
        !texture_measure(suspect, plane->width, plane->height, blur, workspace, &seen) ||
        !texture_measure(residual, plane->width, plane->height, blur, workspace, &damage))
        return NULL;
    texture_whiten_residual(&damage, &host, &seen, plane, overlay->inside);
    memcpy(result, damage.detail, count * sizeof *result);
    workspace_rewind(workspace, mark);
    return result;
}

/* Reads the original at the suspect's scale and registers the two. */
static enum iw_error overlay_make(struct overlay *overlay, const struct image *original)
{
    struct workspace *workspace = overlay->reader->workspace;
    struct affine_map *map = &overlay->registration;

    if (!plane_read(original, PLANE_LUMA, overlay->step, workspace, &overlay->original))
        return IW_NO_MEMORY;
    enum registration_answer answer = registration_find(overlay->suspect, &overlay->original, workspace, map);
    if (answer != REGISTRATION_DONE)
        return answer == REGISTRATION_NONE ? IW_WATERMARK_NOT_FOUND : IW_NO_MEMORY;
    double shrink = sqrt(fabs(map->matrix[0] * map->matrix[3] - map->matrix[1] * map->matrix[2]));
    if (shrink > shrink_least && overlay->original.width / shrink > 32 &&
        overlay->original.height / shrink > 32) {
        overlay->step *= shrink;
        if (!plane_read(original, PLANE_LUMA, overlay->step, workspace, &overlay->original))
            return IW_NO_MEMORY;
        for (int i = 0; i < 4; i++)
            map->matrix[i] /= shrink;
        map->offset[0] /= shrink;
        map->offset[1] /= shrink;
    }
    registration_refine(overlay->suspect, &overlay->original, map);
    return IW_OK;
}

/* Derives the pose of the pattern, whose origin is the original's corner. */
static struct pose overlay_pose(const struct overlay *overlay, double chip_px)
{
    const struct affine_map *map = &overlay->registration;
    double factor = overlay->step / chip_px;
    double x = overlay->suspect->width / 2.0;
    double y = overlay->suspect->height / 2.0;
    struct pose pose;

    for (int i = 0; i < 4; i++)
        pose.matrix[i] = map->matrix[i] * factor;
    pose.offset[0] = (map->matrix[0] * x + map->matrix[1] * y + map->offset[0]) * factor;
    pose.offset[1] = (map->matrix[2] * x + map->matrix[3] * y + map->offset[1]) * factor;
    return pose;
}

static enum iw_error overlay_read(struct overlay *overlay, const struct pose *pose,
                                  struct watermark_report *report)
{
    struct reader *reader = overlay->reader;
    const struct plane *suspect = overlay->suspect;
    struct whitened whitened = {NULL, NULL};
    struct spectrum luma;
    struct spectrum blue;
    bool has_blue = suspect->blue != NULL && overlay->original.blue != NULL;

    whitened.luma = channel_whiten(overlay, suspect->luma, overlay->original.luma, texture_luma_radius);
    if (whitened.luma == NULL)
        return IW_NO_MEMORY;
    if (has_blue) {
        whitened.blue = channel_whiten(overlay, suspect->blue, overlay->original.blue, texture_blue_radius);
        if (whitened.blue == NULL ||
            !spectrum_make(whitened.blue, suspect->width, suspect->height, reader->workspace, &blue))
            return IW_NO_MEMORY;
    }
    if (!spectrum_make(whitened.luma, suspect->width, suspect->height, reader->workspace, &luma))
        return IW_NO_MEMORY;
    if (reader_read_posed(reader, &luma, has_blue ? &blue : NULL, pose)) {
        report->scale = 1 / hypot(pose->matrix[0], pose->matrix[2]);
        report->aspect = 1;
        report->rotation_degree = atan2(pose->matrix[2], pose->matrix[0]) * 57.29577951308232;
        report->is_mirrored = pose->matrix[0] * pose->matrix[3] < pose->matrix[1] * pose->matrix[2];
        return IW_OK;
    }
    return search_read(reader, &whitened, suspect, report);
}

enum iw_error informed_read(struct reader *reader, const struct plane *suspect, const struct image *original,
                            struct watermark_report *report)
{
    struct overlay overlay = {.reader = reader, .suspect = suspect};
    double chip_px = (double)reader_period_px(original->width_px, original->height_px) / lattice_period;

    overlay.step = chip_px;
    overlay.inside =
        workspace_take(reader->workspace, (size_t)suspect->width * (size_t)suspect->height, sizeof(float));
    if (overlay.inside == NULL)
        return IW_NO_MEMORY;
    enum iw_error error = overlay_make(&overlay, original);
    if (error != IW_OK)
        return error;
    struct pose pose = overlay_pose(&overlay, chip_px);
    return overlay_read(&overlay, &pose, report);
}
