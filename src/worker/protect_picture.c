#include "worker/protect_picture.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"

enum { weights_bytes_max = 1 << 20, tries_max = 4 };

/* A lossy result this near to the strength is not tried again. */
static const double near_enough_db = 0.1;

/*
 * How far the scale may leave the one that is right before the encode: a coarse
 * JPEG swallows the perturbation, and driving it through would be seen.
 */
static const double scale_correction_max = 1.6;

/* ---- the weights */

static enum iw_error weights_read(struct context *context, const char *path, uint8_t *bytes, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return context_fail(context, IW_IO_FAILED, "The weights file %s cannot be opened: %s.", path,
                            strerror(errno));
    *size = fread(bytes, 1, weights_bytes_max, file);
    int failed = ferror(file);
    fclose(file);
    if (failed)
        return context_fail(context, IW_IO_FAILED, "The weights file %s cannot be read.", path);
    return IW_OK;
}

static bool weights_digest_fits(const uint8_t *bytes, size_t size)
{
    uint8_t digest[sha256_bytes];
    if (size <= sha256_bytes)
        return false;
    crypto_sha256(bytes, size - sha256_bytes, digest);
    return memcmp(digest, bytes + size - sha256_bytes, sha256_bytes) == 0;
}

enum iw_error protect_open(struct context *context, const char *path, struct protect **protect)
{
    const char *why = NULL;
    size_t size = 0;
    uint8_t *bytes = malloc(weights_bytes_max);
    *protect = NULL;
    if (bytes == NULL)
        return context_fail(context, IW_NO_MEMORY, NULL);
    enum iw_error error = weights_read(context, path, bytes, &size);
    if (error == IW_OK) {
        error = protect_new(protect, bytes, size, &why);
        if (error == IW_OK && !weights_digest_fits(bytes, size)) {
            why = "its SHA-256 does not fit";
            error = IW_WEIGHTS_INVALID;
            protect_free(*protect);
            *protect = NULL;
        }
        if (error != IW_OK)
            error = context_fail(context, error, "The weights file %s is refused: %s.", path, why);
    }
    free(bytes);
    return error;
}

/* ---- the picture */

/* What the encoded bytes decode to, summed up strip by strip beside the picture. */
struct measure {
    struct context *context;
    const struct image *image;
    double error_sum; /* mean square error of each strip, times its rows */
};

static enum iw_error measure_strip(void *user, uint32_t first_row_px, const struct image *strip)
{
    struct measure *measure = user;
    struct image beside = *measure->image;
    if (strip->width_px != beside.width_px || strip->height_px > beside.height_px - first_row_px ||
        strip->channels != beside.channels || strip->depth_bits != beside.depth_bits)
        return context_fail(measure->context, IW_SERVER_INTERNAL_ERROR,
                            "The encoded picture has another shape.");
    beside.pixels = (unsigned char *)beside.pixels + first_row_px * beside.stride_bytes;
    beside.height_px = strip->height_px;
    measure->error_sum += strip->height_px * pow(10, -protect_psnr(&beside, strip) / 10);
    return IW_OK;
}

/* The PSNR of encoded bytes against the picture, without a second whole picture in memory. */
static enum iw_error bytes_measure(struct context *context, const struct codec_picture *picture,
                                   const struct codec_bytes *bytes, double *psnr_db)
{
    static const struct codec_limits limits = {0};
    struct measure measure = {context, &picture->image, 0};
    enum iw_error error =
        codec_decode_rows(context, bytes->data, bytes->size, &limits, measure_strip, &measure);
    if (error == IW_OK)
        *psnr_db = -10 * log10(measure.error_sum / picture->image.height_px);
    return error;
}

/* Renders at the scale, encodes, gives the picture back, and measures when the format is lossy. */
static enum iw_error encode_at(struct context *context, struct protect_plan *plan,
                               struct codec_picture *picture, double scale, struct codec_bytes *bytes,
                               struct protect_report *report)
{
    report->scale = scale;
    report->psnr_db = protect_plan_psnr(plan, scale);
    protect_render(plan, &picture->image, scale);
    enum iw_error error = codec_encode(context, picture, bytes);
    protect_undo(plan, &picture->image);
    if (error != IW_OK || !picture->header.is_lossy)
        return error;
    error = bytes_measure(context, picture, bytes, &report->psnr_db);
    if (error != IW_OK)
        codec_bytes_free(bytes);
    return error;
}

/*
 * Encodes, and while a lossy result misses the strength, again with the scale
 * corrected by what was missed: the error grows about as the square of it.
 */
static enum iw_error encode_to_strength(struct context *context, struct protect_plan *plan,
                                        struct codec_picture *picture, struct codec_bytes *bytes,
                                        struct protect_report *report)
{
    bool is_limited = false;
    double first = protect_plan_scale(plan, report->target_db, &is_limited), scale = first;
    double aim_db = is_limited ? protect_plan_psnr(plan, first) : report->target_db;
    enum iw_error error = encode_at(context, plan, picture, scale, bytes, report);
    for (unsigned try = 1; error == IW_OK && picture->header.is_lossy && try < tries_max; try++) {
        double missed_db = report->psnr_db - aim_db;
        double next = scale * pow(10, missed_db / 20);
        next = fmin(fmax(next, first / scale_correction_max), first * scale_correction_max);
        if (fabs(missed_db) <= near_enough_db || fabs(next / scale - 1) < 0.005)
            break;
        scale = next;
        codec_bytes_free(bytes);
        error = encode_at(context, plan, picture, scale, bytes, report);
    }
    report->is_limited = is_limited || report->psnr_db > report->target_db + 0.3;
    return error;
}

enum iw_error protect_picture(struct context *context, const struct protect *protect,
                              struct codec_picture *picture, enum protect_strength strength, uint64_t seed,
                              struct codec_bytes *bytes, struct protect_report *report)
{
    struct protect_plan *plan = NULL;
    report->target_db = protect_strength_db(strength);
    enum iw_error error = codec_opt_out(context, picture);
    if (error != IW_OK)
        return error;
    error = protect_plan_new(&plan, protect, &picture->image, seed);
    if (error != IW_OK)
        return context_fail(context, error, NULL);
    error = encode_to_strength(context, plan, picture, bytes, report);
    protect_plan_free(plan);
    return error;
}
