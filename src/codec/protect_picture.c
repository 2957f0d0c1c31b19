#include "codec/protect_picture.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "codec/protect_sample.h"

enum { weights_bytes_max = 1 << 20, tries_max = 4 };

/* Two attempts with scales further apart than this give the slope, within these bounds. */
static const double slope_apart_db = 0.15, slope_least = 0.4, slope_most = 3;

/* Strips whose change differs by more than this from the whole picture's are not representative. */
static const double unlike_sample_db = 2;

/*
 * A lossy result within this distance of the strength is accepted; strips may be this far from
 * the picture.
 */
static const double near_enough_db = 0.1, near_enough_sample_db = 0.05;

/* protect_psnr returns 99 for equal pictures; a mean over rows differs from it only by rounding. */
static const double unchanged_db = 98.99;

/*
 * Limit on the scale relative to the one that is right before encoding. A coarse JPEG removes
 * the perturbation, and overcoming that would be visible.
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
            why = "its SHA-256 does not match";
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

/*
 * Search for the scale at which the encoded result has the strength. The error is about
 * proportional to the square of the scale; two attempts give the exact slope.
 */
struct scale_search {
    double first, aim_db; /* scale that is right before encoding, and its PSNR */
    double scale;         /* of the last attempt; 0: none */
    double missed_db;     /* of the last attempt; above 0: too weak */
    double slope;         /* dB of the result per dB of the scale */
};

/* Next scale after an attempt with psnr_db; 0: near enough, or no improvement possible. */
static double search_next(struct scale_search *search, double scale, double psnr_db, double near_db)
{
    double missed_db = psnr_db - search->aim_db;
    double apart_db = search->scale > 0 ? 20 * log10(search->scale / scale) : 0;
    if (fabs(apart_db) >= slope_apart_db)
        search->slope = fmin(fmax((missed_db - search->missed_db) / apart_db, slope_least), slope_most);
    search->scale = scale;
    search->missed_db = missed_db;
    double next = scale * pow(10, missed_db / 20 / search->slope);
    next = fmin(fmax(next, search->first / scale_correction_max), search->first * scale_correction_max);
    return fabs(missed_db) <= near_db || fabs(next / scale - 1) < 0.002 ? 0 : next;
}

/* Find the starting scale on strips of a large picture. */
static enum iw_error search_on_sample(struct context *context, struct protect_plan *plan,
                                      const struct codec_picture *picture, struct scale_search *search,
                                      double *scale)
{
    struct protect_sample sample;
    double nearest_db = INFINITY;
    enum iw_error error = sample_take(context, picture, &sample);
    if (error != IW_OK)
        return error;
    double next = *scale;
    for (unsigned try = 0; next > 0 && try < tries_max; try++) {
        double here = next, plan_db = protect_plan_psnr(plan, here), rendered_db = 0, encoded_db = 0;
        error = sample_measure(context, plan, &sample, here, &rendered_db, &encoded_db);
        if (error != IW_OK || fabs(rendered_db - plan_db) > unlike_sample_db)
            break;
        next = search_next(search, here, plan_db + encoded_db - rendered_db, near_enough_sample_db);
        if (fabs(search->missed_db) < nearest_db) {
            nearest_db = fabs(search->missed_db);
            *scale = here;
        }
    }
    search->scale = 0;
    sample_free(&sample);
    return error;
}

/* Render at the scale, encode, restore the picture, and measure lossy formats. */
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
    error = bytes_measure(context, bytes, &picture->image, &report->psnr_db);
    if (error != IW_OK)
        codec_bytes_free(bytes);
    return error;
}

/* Encode; while a lossy result misses the strength, repeat with a corrected scale. */
static enum iw_error encode_to_strength(struct context *context, struct protect_plan *plan,
                                        struct codec_picture *picture, struct codec_bytes *bytes,
                                        struct protect_report *report)
{
    bool is_limited = false;
    double scale = protect_plan_scale(plan, report->target_db, &is_limited);
    double aim_db = is_limited ? protect_plan_psnr(plan, scale) : report->target_db;
    struct scale_search search = {.first = scale, .aim_db = aim_db, .slope = 1};
    enum iw_error error = IW_OK;
    if (sample_is_worth(picture))
        error = search_on_sample(context, plan, picture, &search, &scale);
    if (error == IW_OK)
        error = encode_at(context, plan, picture, scale, bytes, report);
    for (unsigned try = 1; error == IW_OK && picture->header.is_lossy && try < tries_max; try++) {
        double next = search_next(&search, scale, report->psnr_db, near_enough_db);
        if (next == 0)
            break;
        scale = next;
        codec_bytes_free(bytes);
        error = encode_at(context, plan, picture, scale, bytes, report);
    }
    report->is_limited = is_limited || report->psnr_db > report->target_db + 0.3;
    return error;
}

/* Note a result below the strength. */
static void strength_note(struct context *context, const struct codec_picture *picture,
                          enum protect_strength strength, const struct protect_report *report)
{
    const char *name = protect_strength_name(strength);
    if (!report->is_limited)
        return;
    if (report->psnr_db >= unchanged_db && picture->header.is_lossy)
        context_note(context, "PROTECTION_REDUCED",
                     "No pixel changed: the compression of this file removes a change of strength \"%s\". "
                     "Export the image with less compression and upload it again.",
                     name);
    else if (report->psnr_db >= unchanged_db)
        context_note(context, "PROTECTION_REDUCED",
                     "No pixel changed: the image has no texture that masks a change of strength \"%s\".",
                     name);
    else
        context_note(context, "PROTECTION_REDUCED",
                     "The protection is weaker than strength \"%s\": the change is %.1f dB below the image, "
                     "where \"%s\" means %.0f dB. %s",
                     name, report->psnr_db, name, report->target_db,
                     picture->header.is_lossy
                         ? "A stronger change would be visible, or its compression would remove it."
                         : "A stronger change would be visible.");
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
    error = protect_plan_new(&plan, protect, &picture->image, strength, seed);
    if (error != IW_OK)
        return context_fail(context, error, NULL);
    error = encode_to_strength(context, plan, picture, bytes, report);
    protect_plan_free(plan);
    if (error == IW_OK)
        strength_note(context, picture, strength, report);
    return error;
}
