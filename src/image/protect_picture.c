#include "image/protect_picture.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/message.h"
#include "engine/protect/change.h"
#include "engine/protect/flat.h"
#include "model/result.h"

enum { weights_bytes_max = 1 << 20, tries_max = 3 };

/*
 * The coefficients of a JPEG lie on the encoder's steps.  Encoding removes changes below half a step and
 * enlarges others to a whole step.  On flat colours the result is more visible than the rendered change.  So
 * the scale is lowered until the decoded change is within the budget and slack_share.
 */
static const double slack_share = 1.05, scale_least = 0.1;

/*
 * Rounding: a coefficient of 0 moves from half a step on.  At the finest level, a larger dead zone keeps less
 * than the next level does (tests/bench/protect.py --jpeg 85 --growth 150).
 */
static const double dead_least = 0.5, dead_most = 7, dead_finest_most = 0.6;

/* change_psnr is 99 for equal pictures; a sum over rows differs from it only by rounding. */
static const double unchanged_db = 98.99;

/* ---- the weights */

static enum iw_error weights_read(struct context *context, const char *path, const char *name, uint8_t *bytes,
                                  size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return context_fail(context, IW_IO_FAILED, "The weights file %s cannot be opened: %s.", name,
                            strerror(errno));
    *size = fread(bytes, 1, weights_bytes_max, file);
    int failed = ferror(file);
    fclose(file);
    if (failed)
        return context_fail(context, IW_IO_FAILED, "The weights file %s cannot be read.", name);
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

enum iw_error protect_picture_open(struct context *context, const char *path, const char *name,
                                   struct protect **protect)
{
    const char *why = NULL;
    size_t size = 0;
    uint8_t *bytes = malloc(weights_bytes_max);
    *protect = NULL;
    name = name != NULL ? name : path;
    if (bytes == NULL)
        return context_fail(context, IW_NO_MEMORY, NULL);
    enum iw_error error = weights_read(context, path, name, bytes, &size);
    if (error == IW_OK) {
        error = protect_new(protect, bytes, size, &why);
        if (error == IW_OK && !weights_digest_fits(bytes, size)) {
            why = "its SHA-256 does not match";
            error = IW_WEIGHTS_INVALID;
            protect_free(*protect);
            *protect = NULL;
        }
        if (error != IW_OK)
            error = context_fail(context, error, "The weights file %s is refused: %s.", name, why);
    }
    free(bytes);
    return error;
}

/* ---- the picture */

/* Compares the decoded rows of a lossy result, without a second whole picture in memory. */
struct comparison {
    struct context *context;
    struct protect_plan *plan;
    const struct image *image;
    struct change_sums sums;
};

static enum iw_error rows_compare(void *user, uint32_t first_row_px, const struct image *rows)
{
    struct comparison *comparison = user;
    const struct image *image = comparison->image;
    if (rows->width_px != image->width_px || rows->height_px > image->height_px - first_row_px ||
        rows->channels != image->channels || rows->depth_bits != image->depth_bits)
        return context_fail(comparison->context, IW_SERVER_INTERNAL_ERROR,
                            "The encoded picture has another size or format.");
    change_compare(comparison->plan, image, first_row_px, rows, &comparison->sums);
    return IW_OK;
}

/* Begins a comparison and adds all rows. */
static enum iw_error result_decode(struct context *context, struct protect_plan *plan,
                                   const struct image *image, const struct codec_bytes *bytes,
                                   struct change_sums *sums)
{
    static const struct codec_limits limits = {0};
    struct comparison comparison = {.context = context, .plan = plan, .image = image};
    enum iw_error error = change_compare_begin(plan, image, &comparison.sums);
    if (error != IW_OK)
        return context_fail(context, error, NULL);
    error = codec_decode_rows(context, bytes->data, bytes->size, &limits, rows_compare, &comparison);
    *sums = comparison.sums;
    return error;
}

static enum iw_error result_compare(struct context *context, struct protect_plan *plan,
                                    const struct image *image, const struct codec_bytes *bytes,
                                    struct protect_report *report)
{
    struct change_sums sums;
    enum iw_error error = result_decode(context, plan, image, bytes, &sums);
    if (error == IW_OK)
        change_compare_end(plan, &sums, report);
    return error;
}

/* Renders, encodes and restores the picture; compares lossy formats. */
static enum iw_error encode_at(struct context *context, struct protect_plan *plan,
                               struct codec_picture *picture, enum protect_strength strength, double scale,
                               struct codec_bytes *bytes, struct protect_report *report)
{
    change_add(plan, &picture->image, strength, scale, report);
    enum iw_error error = codec_encode(context, picture, bytes);
    change_undo(plan, &picture->image);
    if (error != IW_OK || !picture->header.is_lossy)
        return error;
    error = result_compare(context, plan, &picture->image, bytes, report);
    if (error != IW_OK)
        bytes_free(bytes);
    return error;
}

/* Encodes without a change. The noise of the encoding is no protection. */
static enum iw_error coding_measure(struct context *context, struct protect_plan *plan,
                                    struct codec_picture *picture, enum protect_strength strength,
                                    size_t *size, struct protect_report *report)
{
    struct codec_bytes bytes;
    struct change_sums sums;
    enum iw_error error = codec_encode(context, picture, &bytes);
    if (error != IW_OK)
        return error;
    error = result_decode(context, plan, &picture->image, &bytes, &sums);
    if (error == IW_OK)
        change_coding_end(plan, strength, report);
    *size = bytes.size;
    bytes_free(&bytes);
    return error;
}

/* Returns the visibility of the change without that of the encoding. The powers of independent changes add
 * up. */
static double change_shown(const struct protect_report *report)
{
    return sqrt(fmax(report->shown * report->shown - report->coding * report->coding, 0));
}

/*
 * Encodes; while the change of a lossy result is more visible than the budget, repeats with a smaller scale.
 * A smaller scale does not lower the visibility of the encoding itself.
 */
static enum iw_error encode_to_strength(struct context *context, struct protect_plan *plan,
                                        struct codec_picture *picture, enum protect_strength strength,
                                        struct codec_bytes *bytes, struct protect_report *report)
{
    double scale = 1;
    size_t size = 0;
    enum iw_error error =
        picture->header.is_lossy ? coding_measure(context, plan, picture, strength, &size, report) : IW_OK;
    if (error == IW_OK)
        error = encode_at(context, plan, picture, strength, scale, bytes, report);
    for (unsigned try = 1; error == IW_OK && try < tries_max; try++) {
        if (change_shown(report) <= slack_share * report->visibility)
            break;
        scale = fmax(scale * report->visibility / change_shown(report), scale_least);
        bytes_free(bytes);
        error = encode_at(context, plan, picture, strength, scale, bytes, report);
    }
    return error;
}

/* ---- coefficients */

/*
 * The encoder chooses the coefficients of the result, so the change that they show is measured, and the scale
 * may be above 1.
 */
enum { carried_tries_max = 8, carried_tries_strong = 5 };
static const double carried_first = 1.08, carried_most = 8;

/* The exponent of a correction: at first, and within these bounds from two results that differ. */
static const double carried_power = 0.9, power_least = 0.5, power_most = 2.5, shown_differs = 0.02;

/*
 * The visibility of a result as a share of the budget. Below enough, coarser levels are tried, too, and below
 * a share of the effect: in a noisy picture new steps show more than they keep.
 */
struct carried_aim {
    double least, wanted, most, enough, share_enough;
};

/*
 * Stripes show up to 4 % less than the whole picture, because their edges mask. A result of a setting that
 * was found on stripes may be a little weaker, so that few need a second encoding. A share of .8 is that of
 * photographs of quality 85 at the finest level (doc/protection-engine.md).
 */
static const struct carried_aim aim_whole = {0.97, 1.02, 1.05, 0.97, 0.8},
                                aim_stripes = {0.96, 1.01, 1.03, 0.96, 0.8},
                                aim_tried = {0.95, 1.02, 1.05, 0, 0};

/* The settings of a search by level. */
struct carried_search {
    struct codec_change levels[codec_finest + 1];
    unsigned first; /* the level to begin with */
    const struct carried_aim *aim;
};

static const float *carried_row(void *user, uint32_t y_px)
{
    return change_row(user, y_px);
}

/* Sets the plan's amplitude, and the preview from the changed pixels. */
static void carried_begin(struct protect_plan *plan, struct codec_picture *picture,
                          enum protect_strength strength, struct protect_report *report)
{
    change_add(plan, &picture->image, strength, 1, report);
    codec_preview(picture);
    change_undo(plan, &picture->image);
}

/* A result of a search: its scale, and its visibility as a share of the budget. */
struct carried_point {
    double scale, shown;
};

/* Returns the next scale, from the last result and the one before it; 0 if the last one is as wanted. */
static double carried_next(const struct carried_point *last, const struct carried_point *before,
                           const struct carried_aim *aim, bool is_weak_taken)
{
    double power = carried_power;
    if (last->shown <= aim->most &&
        (last->shown >= aim->least || is_weak_taken || last->scale >= carried_most))
        return 0;
    if (last->shown <= 0)
        return fmin(2 * last->scale, carried_most);
    if (before->shown > 0 && fabs(last->shown / before->shown - 1) > shown_differs)
        power = log(last->scale / before->scale) / log(last->shown / before->shown);
    power = fmin(fmax(power, power_least), power_most);
    const double factor = pow(aim->wanted / last->shown, power);
    return fmin(last->scale * fmin(fmax(factor, 0.5), 2), carried_most);
}

static void finer_note(struct context *context, const struct codec_picture *picture,
                       const struct codec_bytes *bytes)
{
    if (bytes->size > codec_file_bytes(picture))
        context_note(context, "ENCODED_FINER", message_protected_finer, bytes->size,
                     codec_file_bytes(picture));
}

static bool is_shown_more(const struct protect_report *report)
{
    return report->shown > slack_share * report->visibility;
}

/* Takes a result instead of an earlier one, unless only the earlier one is within the budget. */
static void carried_take(struct codec_bytes *bytes, struct protect_report *report, struct codec_bytes *next,
                         const struct protect_report *measured)
{
    if (bytes->data != NULL && is_shown_more(measured) && measured->shown > report->shown) {
        bytes_free(next);
        return;
    }
    bytes_free(bytes);
    *bytes = *next;
    *report = *measured;
}

/*
 * Encodes from a setting on until the measured visibility is the budget. The bytes are empty if the size has
 * no room for a change, or if every result is more visible than the budget.
 */
static enum iw_error encode_carried(struct context *context, struct protect_plan *plan,
                                    struct codec_picture *picture, struct codec_change *change,
                                    const struct carried_aim *aim, struct codec_bytes *bytes,
                                    struct protect_report *report)
{
    const double dead_max = change->finer > 1 ? dead_finest_most : dead_most;
    struct carried_point before = {0, 0};
    enum iw_error error = IW_OK;
    change->dead = fmin(change->dead, dead_max);
    for (unsigned try = 0; error == IW_OK && try < carried_tries_max && change->dead <= dead_max; try++) {
        struct codec_bytes next = {NULL, 0};
        struct protect_report measured = *report;
        error = codec_encode_change(context, picture, change, &next);
        if (error != IW_OK || next.data == NULL)
            continue;
        error = result_compare(context, plan, &picture->image, &next, &measured);
        const struct carried_point last = {change->scale, measured.shown / measured.visibility};
        const double scale = carried_next(&last, &before, aim, try >= carried_tries_strong);
        carried_take(bytes, report, &next, &measured);
        if (error != IW_OK || scale == 0)
            break;
        change->dead = fmin(fmax(change->dead * scale / change->scale, dead_least), dead_max);
        change->scale = scale;
        before = last;
    }
    if (error != IW_OK || is_shown_more(report))
        bytes_free(bytes);
    return error;
}

/*
 * Encodes with the steps of a level, then with those of coarser ones, until a result has the visibility
 * wanted. A level with too few bytes for its change may have less of the share than a coarser one. The result
 * with the largest share is taken; its level becomes the first one.
 */
static enum iw_error encode_levels(struct context *context, struct protect_plan *plan,
                                   struct codec_picture *picture, struct carried_search *search,
                                   struct codec_bytes *bytes, struct protect_report *report)
{
    static const struct codec_limits limits = {0};
    enum iw_error error = IW_OK;
    bool is_full = false;
    for (unsigned level = search->first + 1; level-- > 0 && error == IW_OK && !is_full;) {
        struct codec_bytes next = {NULL, 0};
        struct protect_report measured = *report;
        if (codec_carries(picture, level, &limits))
            error =
                encode_carried(context, plan, picture, &search->levels[level], search->aim, &next, &measured);
        if (next.data == NULL || (bytes->data != NULL && measured.share <= report->share)) {
            bytes_free(&next);
            continue;
        }
        bytes_free(bytes);
        *bytes = next;
        *report = measured;
        search->first = level;
        is_full = measured.shown >= search->aim->enough * measured.visibility &&
                  measured.share >= search->aim->share_enough;
    }
    if (error != IW_OK)
        bytes_free(bytes);
    return error;
}

/* Searches on stripes of the picture, whose file is given. */
static enum iw_error stripes_search(struct context *context, struct protect_plan *plan,
                                    const struct codec_bytes *file, struct carried_search *search,
                                    struct protect_report report)
{
    static const struct codec_limits limits = {0};
    struct codec_picture picture;
    struct codec_bytes bytes = {NULL, 0};
    enum iw_error error = codec_decode(context, file->data, file->size, &limits, &picture);
    if (error != IW_OK)
        return error;
    for (unsigned level = 0; level <= codec_finest; level++) {
        search->levels[level].data = file->data;
        search->levels[level].size = file->size;
    }
    error = encode_levels(context, plan, &picture, search, &bytes, &report);
    codec_picture_free(&picture);
    bytes_free(&bytes);
    return error;
}

/*
 * Stripes have about as many coefficients as other rows of the picture: within .1 in seven photographs of 4
 * to 24 megapixels. A picture beyond this is searched as a whole.
 */
static const double stripes_unlike = 0.15;

/* The rows of stripes. Pictures of less than twice as many are searched as a whole. */
enum { stripes_px = 768, stripes_every_least = 2 };

static struct image_stripes stripes_of(const struct image *image)
{
    const uint32_t every = image->height_px / stripes_px, all = image->height_px / image_stripe_px;
    if (every < stripes_every_least)
        return (struct image_stripes){0};
    return (struct image_stripes){every, ((all - every / 2 - 1) / every + 1) * image_stripe_px};
}

/* Finds the settings of a large picture on stripes, if that is possible. */
static enum iw_error settings_find(struct context *context, struct protect_plan *plan,
                                   struct codec_picture *picture, struct carried_search *search,
                                   const struct protect_report *report)
{
    const struct image_stripes stripes = stripes_of(&picture->image);
    struct carried_search tried = *search;
    struct codec_bytes file = {NULL, 0};
    double part = 0;
    if (stripes.every == 0)
        return IW_OK;
    enum iw_error error = codec_stripes(context, picture, &stripes, &search->levels[0], &file, &part);
    if (error != IW_OK || file.data == NULL)
        return error;
    if (fabs(part * picture->image.height_px / stripes.height_px - 1) > stripes_unlike) {
        bytes_free(&file);
        return IW_OK;
    }
    for (unsigned level = 1; level <= codec_finest; level++) {
        const size_t most = search->levels[level].bytes_max, rest = codec_metadata_bytes(picture);
        tried.levels[level].bytes_max = most > rest ? (size_t)(part * (double)(most - rest)) : 1;
    }
    tried.aim = &aim_stripes;
    change_stripes(plan, stripes);
    error = stripes_search(context, plan, &file, &tried, *report);
    change_stripes(plan, (struct image_stripes){0});
    bytes_free(&file);
    for (unsigned level = 0; level <= codec_finest; level++) {
        search->levels[level].scale = tried.levels[level].scale;
        search->levels[level].dead = tried.levels[level].dead;
    }
    search->first = tried.first;
    search->aim = &aim_tried;
    return error;
}

/* Returns the level to begin with. Of ten JPEG files of quality 85, none had room for the finest at 125 %. */
static unsigned finest_of(const struct codec_picture *picture, const struct protect_order *order)
{
    enum { finest_from_percent = 130 };
    const unsigned growth = order->growth_max_percent;
    unsigned finer = growth >= finest_from_percent ? codec_finest : growth > 100;
    while (finer > 0 && !codec_carries(picture, finer, order->limits))
        finer--;
    return finer;
}

static struct carried_search search_of(struct protect_plan *plan, const struct codec_picture *picture,
                                       const struct protect_order *order)
{
    struct carried_search search = {.first = finest_of(picture, order), .aim = &aim_whole};
    for (unsigned level = 0; level <= codec_finest; level++)
        search.levels[level] = (struct codec_change){
            .data = order->data,
            .size = order->size,
            .row = carried_row,
            .user = plan,
            .scale = carried_first,
            .finer = level,
            .bytes_max = level > 0 ? codec_file_bytes(picture) * order->growth_max_percent / 100 : 0,
            .dead = dead_least};
    return search;
}

/* Encodes with a change of the coefficients. The bytes are empty if that is not possible. */
static enum iw_error encode_change(struct context *context, struct protect_plan *plan,
                                   struct codec_picture *picture, const struct protect_order *order,
                                   struct codec_bytes *bytes, struct protect_report *report)
{
    struct carried_search search = search_of(plan, picture, order);
    if (!codec_carries(picture, search.first, order->limits))
        return IW_OK;
    carried_begin(plan, picture, order->strength, report);
    enum iw_error error = settings_find(context, plan, picture, &search, report);
    if (error == IW_OK)
        error = encode_levels(context, plan, picture, &search, bytes, report);
    if (search.first > 0)
        finer_note(context, picture, bytes);
    return error;
}

/* ---- qualities */

/*
 * The size of a result, by its quality. The bytes of the picture grow with a power of the distance to quality
 * 100. The change adds bits: more for finer steps relative to its visibility, none at the file's steps, and
 * about as many in every picture. The figures are of 16 photographs as WebP of quality 75 and 90 at each
 * strength.
 */
struct finer {
    float *setting;                /* of the encoder */
    double quality, bytes, pixels; /* of the file */
    double visibility;
    double power, times; /* times: measured relative to expected */
    double scale;        /* of the next attempt */
};

static const double change_bits = 1.9, change_span = 4.7, bytes_spare = 1.05;

/* The finest quality has nearly the finest steps. */
static const double quality_step = 0.25, quality_finest = 98;

static double growth_expected(const struct finer *finer, double quality)
{
    const double span = change_span * finer->visibility;
    const double plain = pow((100 - finer->quality) / (100 - quality), finer->power);
    const double bits = change_bits * (exp((quality - 100) / span) - exp((finer->quality - 100) / span));
    return finer->times * (plain + bits / 8 * finer->pixels / finer->bytes);
}

/* Returns the best quality for a growth, or that of the file. */
static double quality_for(const struct finer *finer, double growth)
{
    double quality = quality_finest;
    while (quality > finer->quality && growth_expected(finer, quality) > growth / bytes_spare)
        quality -= quality_step;
    return fmax(quality, finer->quality);
}

/*
 * The scale may be above 1, because an encoding keeps about three quarters of a change (a line through these
 * photographs). The whole result then shows finer_shown budgets, so that butteraugli is within the mean that
 * tests/bench/protect.py requires. A result may show finer_slack more than the scale was for.
 */
static const double kept_most = 1.13, kept_slope = 0.45, kept_least = 0.5, finer_shown = 1.15,
                    finer_slack = 1.1, change_aim = 0.95, finer_scale_most = 1.5;

/* A smaller scale that shows as much: the noise of the encoding shows. It was measured at another quality. */
static const double shown_alike = 0.98;

/* Returns the next scale, from the visibilities of the encoding and of the change at this scale, in budgets.
 */
static double finer_scale(double scale, double coding, double change)
{
    const double room = sqrt(fmax(finer_shown * finer_shown - coding * coding, 0));
    const double next = scale * fmin(room, change_aim) / change;
    return next >= 1 ? fmin(next, finer_scale_most) : fmin(scale * change_aim / change, 1);
}

/*
 * Encodes without a change, at the quality that photographs have for this growth. The size tells the quality
 * to try. The noise stands for that of the result and tells the scale.
 */
static enum iw_error finer_measure(struct context *context, struct protect_plan *plan,
                                   struct codec_picture *picture, const struct protect_order *order,
                                   struct finer *finer, struct protect_report *report)
{
    size_t size = 0;
    const double growth = order->growth_max_percent / 100.0, distance = 100 - finer->quality;
    const double tried = fmax(distance / (growth * growth), 100 - quality_finest);
    *finer->setting = (float)(100 - tried);
    enum iw_error error = coding_measure(context, plan, picture, order->strength, &size, report);
    if (error != IW_OK)
        return error;
    const double coding = report->coding / report->visibility;
    finer->visibility = report->visibility;
    finer->power = fmax(log((double)size / finer->bytes) / log(distance / tried), 0);
    finer->scale = finer_scale(1, coding, fmax(kept_most - kept_slope * coding, kept_least));
    *finer->setting = (float)quality_for(finer, growth);
    return error;
}

/* Returns whether a result is as wanted. Otherwise chooses the next scale, and the quality if it is too
 * large.
 */
static bool is_finer_done(struct finer *finer, double growth, double growth_most,
                          const struct protect_report *report)
{
    const double next = finer_scale(finer->scale, report->coding / report->visibility,
                                    change_shown(report) / report->visibility);
    if (growth <= growth_most && next * finer_slack >= finer->scale)
        return true;
    finer->scale = fmax(next, scale_least);
    finer->times *= growth / growth_expected(finer, (double)*finer->setting);
    if (growth > growth_most)
        *finer->setting = (float)quality_for(finer, growth_most);
    return false;
}

/*
 * Encodes at a higher quality that keeps the limit of growth; while the file is too large or too visible,
 * repeats with a lower one and another scale. The bytes are empty if no try keeps the limit.
 */
static enum iw_error encode_finer(struct context *context, struct protect_plan *plan,
                                  struct codec_picture *picture, const struct protect_order *order,
                                  float *quality, struct codec_bytes *bytes, struct protect_report *report)
{
    const double most = order->growth_max_percent / 100.0;
    struct finer finer = {.setting = quality,
                          .quality = (double)*quality,
                          .bytes = (double)codec_file_bytes(picture),
                          .pixels = (double)picture->header.width_px * picture->header.height_px,
                          .times = 1};
    bool is_done = false;
    enum iw_error error = finer_measure(context, plan, picture, order, &finer, report);
    for (unsigned try = 0; error == IW_OK && !is_done && try < tries_max && (double)*quality > finer.quality;
         try++) {
        struct codec_bytes next = {NULL, 0};
        struct protect_report measured = *report;
        error = encode_at(context, plan, picture, order->strength, finer.scale, &next, &measured);
        const double growth = (double)next.size / finer.bytes;
        is_done = error != IW_OK || is_finer_done(&finer, growth, most, &measured);
        const bool is_alike = bytes->data != NULL && measured.shown > shown_alike * report->shown;
        if (error != IW_OK || growth > most || is_alike) {
            is_done |= is_alike;
            bytes_free(&next);
            continue;
        }
        bytes_free(bytes);
        *bytes = next;
        *report = measured;
    }
    *quality = (float)finer.quality;
    if (error != IW_OK)
        bytes_free(bytes);
    else if (bytes->data != NULL)
        finer_note(context, picture, bytes);
    return error;
}

/* Encodes with a change of the coefficients if the format has them, else by pixels, finer if there is room.
 */
static enum iw_error encode_best(struct context *context, struct protect_plan *plan,
                                 struct codec_picture *picture, const struct protect_order *order,
                                 struct codec_bytes *bytes, struct protect_report *report)
{
    memset(bytes, 0, sizeof *bytes);
    enum iw_error error = encode_change(context, plan, picture, order, bytes, report);
    float *quality = codec_quality(picture);
    if (error == IW_OK && bytes->data == NULL && quality != NULL && order->growth_max_percent > 100)
        error = encode_finer(context, plan, picture, order, quality, bytes, report);
    return error != IW_OK || bytes->data != NULL
               ? error
               : encode_to_strength(context, plan, picture, order->strength, bytes, report);
}

/* ---- drawings */

/*
 * A drawing's file grows at most this many times if a form of the change makes that possible, and less
 * without a form. Without forms drawings grow up to 25 times (doc/protection-engine.md).
 */
enum { growth_most = 4, plain_growth_most = 3 };

/* Beyond this size the time of several encodings counts for more than the size of the file. */
static const uint64_t forms_most_px = 16 * 1000 * 1000;

/* A clear difference of two shares: twice the mean error of the estimate (tools/train/protection_fit.py). */
static const double share_clear = 0.1;

static bool is_drawing(const struct codec_header *header)
{
    return header->is_small && (uint64_t)header->width_px * header->height_px <= forms_most_px;
}

/* Drops notes about a result that is not delivered. */
static void result_drop(struct codec_bytes *bytes, struct context_note **notes_end)
{
    bytes_free(bytes);
    *notes_end = NULL;
}

/* Encodes a drawing in the first form that is small enough, or in the last one. */
static enum iw_error encode_forms(struct context *context, struct protect_plan *plan,
                                  struct codec_picture *picture, const struct protect_order *order,
                                  struct context_note **notes_end, struct codec_bytes *bytes,
                                  struct protect_report *report)
{
    for (unsigned form = 0; form < flat_forms; form++) {
        double shown = 0;
        if (form > 0)
            result_drop(bytes, notes_end);
        enum iw_error error = change_flat_form(plan, &picture->image, order->strength, form, &shown);
        if (error != IW_OK)
            return context_fail(context, error, NULL);
        error = encode_at(context, plan, picture, order->strength, 1, bytes, report);
        report->shown = shown;
        if (error != IW_OK || bytes->size <= growth_most * order->size)
            return error;
    }
    return IW_OK;
}

/*
 * Encodes the change without a form, which may be stronger next to black and white. It replaces the drawing's
 * result if the file is small enough.
 */
static enum iw_error encode_plain(struct context *context, struct protect_plan *plan,
                                  struct codec_picture *picture, const struct protect_order *order,
                                  struct context_note **notes_end, struct codec_bytes *bytes, bool *is_taken)
{
    struct context_note *form_notes = *notes_end;
    struct codec_bytes plain = {NULL, 0};
    struct protect_report report; /* of limited units; the first change_add had the whole ones */
    *notes_end = NULL;
    change_flat_end(plan);
    enum iw_error error = encode_at(context, plan, picture, order->strength, 1, &plain, &report);
    *is_taken = error == IW_OK && plain.size <= plain_growth_most * order->size;
    struct codec_bytes left = *is_taken ? *bytes : plain;
    if (*is_taken)
        *bytes = plain;
    else
        *notes_end = form_notes;
    bytes_free(&left);
    if (error != IW_OK)
        bytes_free(bytes);
    return error;
}

/* Encodes a drawing so that its file stays small, and other pictures as they are. */
static enum iw_error encode_any(struct context *context, struct protect_plan *plan,
                                struct codec_picture *picture, const struct protect_order *order,
                                struct codec_bytes *bytes, struct protect_report *report)
{
    bool is_flat = false;
    enum iw_error error = IW_OK;
    struct protect_report plain = {0};
    struct context_note **notes_end = &context->notes;
    while (*notes_end != NULL)
        notes_end = &(*notes_end)->next;
    if (is_drawing(&picture->header))
        error = change_flat_new(plan, &picture->image, order->strength, &is_flat, &plain);
    if (error != IW_OK)
        return context_fail(context, error, NULL);
    if (!is_flat)
        return encode_best(context, plan, picture, order, bytes, report);
    error = encode_forms(context, plan, picture, order, notes_end, bytes, report);
    bool is_plain = false;
    if (error == IW_OK && report->share < plain.share - share_clear)
        error = encode_plain(context, plan, picture, order, notes_end, bytes, &is_plain);
    if (is_plain)
        *report = plain;
    return error;
}

/* Notes a result below the strength, before the notes on metadata and size. */
static void strength_note(struct context *context, const struct codec_picture *picture,
                          enum protect_strength strength, const struct protect_report *report)
{
    const char *name = protect_strength_name(strength);
    if (protect_percent(report) >= result_strong_percent)
        return;
    if (report->psnr_db >= unchanged_db && picture->header.is_lossy)
        context_note(context, "PROTECTION_REDUCED", message_unchanged_compressed, name);
    else if (report->psnr_db >= unchanged_db)
        context_note(context, "PROTECTION_REDUCED", message_unchanged_flat, name);
    else
        context_note(context, "PROTECTION_REDUCED", "%s %s",
                     arena_printf(context->arena, message_protection_weaker, name, protect_percent(report)),
                     picture->header.is_lossy ? message_rest_compressed : message_rest_visible);
    context_note_lead(context, "PROTECTION_REDUCED");
}

enum iw_error protect_picture(struct context *context, const struct protect *protect,
                              const struct protect_order *order, struct codec_picture *picture,
                              struct codec_bytes *bytes, struct protect_report *report)
{
    struct protect_plan *plan = NULL;
    enum iw_error error = codec_opt_out(context, picture);
    if (error != IW_OK)
        return error;
    error = protect_plan_new(&plan, protect, &picture->image, order->seed);
    if (error != IW_OK)
        return context_fail(context, error, NULL);
    report->coding = 0;
    error = encode_any(context, plan, picture, order, bytes, report);
    protect_plan_free(plan);
    if (error == IW_OK)
        strength_note(context, picture, order->strength, report);
    return error;
}
