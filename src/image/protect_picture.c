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

/* An order and its picture; borrowed. */
struct subject {
    struct context *context;
    struct protect_plan *plan;
    struct codec_picture *picture;
    const struct protect_order *order;
};

/* Compares the decoded rows of a lossy result, without a second whole picture in memory. */
struct comparison {
    const struct subject *subject;
    struct change_sums sums;
};

static enum iw_error rows_compare(void *user, uint32_t first_row_px, const struct image *rows)
{
    struct comparison *comparison = user;
    const struct subject *subject = comparison->subject;
    const struct image *image = &subject->picture->image;
    if (rows->width_px != image->width_px || rows->height_px > image->height_px - first_row_px ||
        rows->channels != image->channels || rows->depth_bits != image->depth_bits)
        return context_fail(subject->context, IW_SERVER_INTERNAL_ERROR,
                            "The encoded picture has another size or format.");
    change_compare(subject->plan, image, first_row_px, rows, &comparison->sums);
    return IW_OK;
}

/* An encoding, and the report on it. The bytes are empty if there is none. */
struct trial {
    struct codec_bytes bytes;
    struct protect_report report;
};

/* Decodes bytes and reports on them. Without a change, they show the noise of the encoding. */
static enum iw_error bytes_compare(const struct subject *subject, const struct codec_bytes *bytes,
                                   bool has_change, struct protect_report *report)
{
    static const struct codec_limits limits = {0};
    struct comparison comparison = {.subject = subject};
    enum iw_error error = change_compare_begin(subject->plan, &subject->picture->image, &comparison.sums);
    if (error != IW_OK)
        return context_fail(subject->context, error, NULL);
    error = codec_decode_rows(subject->context, bytes->data, bytes->size, &limits, rows_compare, &comparison);
    if (error == IW_OK && has_change)
        change_compare_end(subject->plan, &comparison.sums, report);
    else if (error == IW_OK)
        change_coding_end(subject->plan, subject->order->strength, report);
    return error;
}

/* Renders, encodes and restores the picture; compares lossy formats. */
static enum iw_error encode_at(const struct subject *subject, double scale, struct trial *trial)
{
    change_add(subject->plan, &subject->picture->image, subject->order->strength, scale, &trial->report);
    enum iw_error error = codec_encode(subject->context, subject->picture, &trial->bytes);
    change_undo(subject->plan, &subject->picture->image);
    if (error != IW_OK || !subject->picture->header.is_lossy)
        return error;
    return bytes_compare(subject, &trial->bytes, true, &trial->report);
}

/* Encodes without a change. The noise of the encoding is no protection. */
static enum iw_error coding_measure(const struct subject *subject, size_t *size,
                                    struct protect_report *report)
{
    struct codec_bytes bytes;
    enum iw_error error = codec_encode(subject->context, subject->picture, &bytes);
    if (error != IW_OK)
        return error;
    error = bytes_compare(subject, &bytes, false, report);
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

/* ---- tuning */

/* Tries settings, which each trial improves, and keeps the best trial. */
struct tuning {
    const struct subject *subject;
    unsigned try, tries_max;
    double scale;                /* of the change of pixels */
    struct codec_change *change; /* of coefficients, or NULL */
    /* Takes the next trial if it is the best one. Chooses the next settings, or returns true at the end. */
    bool (*judge)(struct tuning *tuning, struct trial *best, struct trial *next);
};

static void trial_take(struct trial *best, struct trial *next)
{
    const struct trial left = *best;
    *best = *next;
    *next = left;
}

/* The bytes stay empty if the size has no room for a change of coefficients. */
static enum iw_error tuning_encode(const struct tuning *tuning, struct trial *next)
{
    const struct subject *subject = tuning->subject;
    if (tuning->change == NULL)
        return encode_at(subject, tuning->scale, next);
    enum iw_error error =
        codec_encode_change(subject->context, subject->picture, tuning->change, &next->bytes);
    if (error != IW_OK || next->bytes.data == NULL)
        return error;
    return bytes_compare(subject, &next->bytes, true, &next->report);
}

static enum iw_error tuning_run(struct tuning *tuning, struct trial *best)
{
    enum iw_error error = IW_OK;
    bool is_done = false;
    for (; error == IW_OK && !is_done && tuning->try < tuning->tries_max; tuning->try++) {
        struct trial next = {{NULL, 0}, best->report};
        error = tuning_encode(tuning, &next);
        is_done = error == IW_OK && tuning->judge(tuning, best, &next);
        bytes_free(&next.bytes);
    }
    return error;
}

/* A smaller scale does not lower the visibility of the encoding itself. */
static bool scale_judge(struct tuning *tuning, struct trial *best, struct trial *next)
{
    const double budget = next->report.visibility, shown = change_shown(&next->report);
    trial_take(best, next);
    if (shown > slack_share * budget)
        tuning->scale = fmax(tuning->scale * budget / shown, scale_least);
    return shown <= slack_share * budget;
}

/* Encodes; while the change of a lossy result is more visible than the budget, with a smaller scale. */
static enum iw_error encode_to_strength(const struct subject *subject, struct trial *best)
{
    struct tuning tuning = {.subject = subject, .tries_max = tries_max, .scale = 1, .judge = scale_judge};
    size_t size = 0;
    enum iw_error error =
        subject->picture->header.is_lossy ? coding_measure(subject, &size, &best->report) : IW_OK;
    return error == IW_OK ? tuning_run(&tuning, best) : error;
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
struct levels {
    struct codec_change change; /* of all levels; bytes_max is for those of a higher quality */
    double scale[codec_finest + 1], dead[codec_finest + 1];
    unsigned first; /* the level to begin with */
    const struct carried_aim *aim;
};

static const float *carried_row(void *user, uint32_t y_px)
{
    return change_row(user, y_px);
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

static bool is_shown_more(const struct protect_report *report)
{
    return report->shown > slack_share * report->visibility;
}

/* Tuning at a level. */
struct carried {
    struct tuning tuning;
    const struct carried_aim *aim;
    double dead_max;
    struct carried_point before;
};

/* Takes a result instead of an earlier one, unless only the earlier one is within the budget. */
static bool carried_judge(struct tuning *tuning, struct trial *best, struct trial *next)
{
    struct carried *carried = (struct carried *)tuning;
    struct codec_change *change = tuning->change;
    const struct protect_report *report = &next->report;
    if (next->bytes.data == NULL)
        return change->dead > carried->dead_max;
    const struct carried_point last = {change->scale, report->shown / report->visibility};
    const double scale =
        carried_next(&last, &carried->before, carried->aim, tuning->try >= carried_tries_strong);
    if (best->bytes.data == NULL || !is_shown_more(report) || report->shown <= best->report.shown)
        trial_take(best, next);
    if (scale == 0)
        return true;
    change->dead = fmin(fmax(change->dead * scale / change->scale, dead_least), carried->dead_max);
    change->scale = scale;
    carried->before = last;
    return false;
}

/*
 * Encodes from a level's setting on until the measured visibility is the budget. The bytes are empty if the
 * size has no room for a change, or if every result is more visible than the budget.
 */
static enum iw_error encode_carried(const struct subject *subject, struct levels *levels, unsigned level,
                                    struct trial *best)
{
    struct codec_change change = levels->change;
    struct carried carried = {
        {.subject = subject, .tries_max = carried_tries_max, .change = &change, .judge = carried_judge},
        .aim = levels->aim,
        .dead_max = level > 1 ? dead_finest_most : dead_most};
    change.finer = level;
    change.bytes_max *= level > 0;
    change.scale = levels->scale[level];
    change.dead = fmin(levels->dead[level], carried.dead_max);
    enum iw_error error = tuning_run(&carried.tuning, best);
    levels->scale[level] = change.scale;
    levels->dead[level] = change.dead;
    if (is_shown_more(&best->report))
        bytes_free(&best->bytes);
    return error;
}

/*
 * Encodes with the steps of a level, then with those of coarser ones, until a result has the visibility
 * wanted. A level with too few bytes for its change may have less of the share than a coarser one. The result
 * with the largest share is taken; its level becomes the first one.
 */
static enum iw_error encode_levels(const struct subject *subject, struct levels *levels, struct trial *best)
{
    static const struct codec_limits limits = {0};
    enum iw_error error = IW_OK;
    bool is_full = false;
    for (unsigned level = levels->first + 1; level-- > 0 && error == IW_OK && !is_full;) {
        struct trial next = {{NULL, 0}, best->report};
        if (codec_carries(subject->picture, level, &limits))
            error = encode_carried(subject, levels, level, &next);
        if (next.bytes.data != NULL && (best->bytes.data == NULL || next.report.share > best->report.share)) {
            trial_take(best, &next);
            levels->first = level;
            is_full = best->report.shown >= levels->aim->enough * best->report.visibility &&
                      best->report.share >= levels->aim->share_enough;
        }
        bytes_free(&next.bytes);
    }
    return error;
}

/* Searches on stripes of the picture, whose file is given. */
static enum iw_error stripes_search(const struct subject *subject, const struct codec_bytes *file,
                                    struct levels *levels, const struct protect_report *report)
{
    static const struct codec_limits limits = {0};
    struct codec_picture picture;
    const struct subject striped = {subject->context, subject->plan, &picture, subject->order};
    struct trial best = {{NULL, 0}, *report};
    enum iw_error error = codec_decode(subject->context, file->data, file->size, &limits, &picture);
    if (error != IW_OK)
        return error;
    levels->change.data = file->data;
    levels->change.size = file->size;
    error = encode_levels(&striped, levels, &best);
    codec_picture_free(&picture);
    bytes_free(&best.bytes);
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
static enum iw_error settings_find(const struct subject *subject, struct levels *levels,
                                   const struct protect_report *report)
{
    const struct image_stripes stripes = stripes_of(&subject->picture->image);
    const size_t most = levels->change.bytes_max, rest = codec_metadata_bytes(subject->picture);
    struct levels tried = *levels;
    struct codec_bytes file = {NULL, 0};
    double part = 0;
    if (stripes.every == 0)
        return IW_OK;
    enum iw_error error =
        codec_stripes(subject->context, subject->picture, &stripes, &tried.change, &file, &part);
    if (error != IW_OK || file.data == NULL)
        return error;
    if (fabs(part * subject->picture->image.height_px / stripes.height_px - 1) > stripes_unlike) {
        bytes_free(&file);
        return IW_OK;
    }
    tried.change.bytes_max = most > rest ? (size_t)(part * (double)(most - rest)) : 1;
    tried.aim = &aim_stripes;
    change_stripes(subject->plan, stripes);
    error = stripes_search(subject, &file, &tried, report);
    change_stripes(subject->plan, (struct image_stripes){0});
    bytes_free(&file);
    tried.change = levels->change;
    tried.aim = &aim_tried;
    *levels = tried;
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

static struct levels levels_of(const struct subject *subject)
{
    const struct protect_order *order = subject->order;
    const size_t bytes_max = codec_file_bytes(subject->picture) * order->growth_max_percent / 100;
    _Static_assert(codec_finest == 2, "each level has its first setting");
    return (struct levels){.change = {order->data, order->size, .row = carried_row, .user = subject->plan,
                                      .bytes_max = bytes_max},
                           .scale = {carried_first, carried_first, carried_first},
                           .dead = {dead_least, dead_least, dead_least},
                           .first = finest_of(subject->picture, order),
                           .aim = &aim_whole};
}

static void finer_note(const struct subject *subject, const struct codec_bytes *bytes)
{
    const size_t file_bytes = codec_file_bytes(subject->picture);
    if (bytes->size > file_bytes)
        context_note(subject->context, "ENCODED_FINER", message_protected_finer, bytes->size, file_bytes);
}

/* Encodes with a change of the coefficients. The bytes are empty if that is not possible. */
static enum iw_error encode_change(const struct subject *subject, struct trial *best)
{
    struct levels levels = levels_of(subject);
    if (!codec_carries(subject->picture, levels.first, subject->order->limits))
        return IW_OK;
    /* The plan's amplitude, and the preview of the changed pixels. */
    change_add(subject->plan, &subject->picture->image, subject->order->strength, 1, &best->report);
    codec_preview(subject->picture);
    change_undo(subject->plan, &subject->picture->image);
    enum iw_error error = settings_find(subject, &levels, &best->report);
    if (error == IW_OK)
        error = encode_levels(subject, &levels, best);
    if (levels.first > 0)
        finer_note(subject, &best->bytes);
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
    struct tuning tuning;
    float *setting;                /* of the encoder */
    double quality, bytes, pixels; /* of the file */
    double growth_most;
    double visibility;
    double power, times; /* times: measured relative to expected */
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
static enum iw_error finer_measure(struct finer *finer, struct protect_report *report)
{
    size_t size = 0;
    const double growth = finer->growth_most, distance = 100 - finer->quality;
    const double tried = fmax(distance / (growth * growth), 100 - quality_finest);
    *finer->setting = (float)(100 - tried);
    enum iw_error error = coding_measure(finer->tuning.subject, &size, report);
    if (error != IW_OK)
        return error;
    const double coding = report->coding / report->visibility;
    finer->visibility = report->visibility;
    finer->power = fmax(log((double)size / finer->bytes) / log(distance / tried), 0);
    finer->tuning.scale = finer_scale(1, coding, fmax(kept_most - kept_slope * coding, kept_least));
    *finer->setting = (float)quality_for(finer, growth);
    return error;
}

/* Takes a result that keeps the limit of growth and shows less than the last one. Chooses the next scale, and
 * the quality if it is too large. */
static bool finer_judge(struct tuning *tuning, struct trial *best, struct trial *next)
{
    struct finer *finer = (struct finer *)tuning;
    const struct protect_report *report = &next->report;
    const double growth = (double)next->bytes.size / finer->bytes;
    const double scale = finer_scale(tuning->scale, report->coding / report->visibility,
                                     change_shown(report) / report->visibility);
    const bool is_small = growth <= finer->growth_most,
               is_alike = best->bytes.data != NULL && report->shown > shown_alike * best->report.shown;
    if (is_small && !is_alike)
        trial_take(best, next);
    if (is_alike || (is_small && scale * finer_slack >= tuning->scale))
        return true;
    tuning->scale = fmax(scale, scale_least);
    finer->times *= growth / growth_expected(finer, (double)*finer->setting);
    if (!is_small)
        *finer->setting = (float)quality_for(finer, finer->growth_most);
    return (double)*finer->setting <= finer->quality;
}

/*
 * Encodes at a higher quality that keeps the limit of growth; while the file is too large or too visible,
 * repeats with a lower one and another scale. The bytes are empty if no try keeps the limit.
 */
static enum iw_error encode_finer(const struct subject *subject, float *quality, struct trial *best)
{
    const struct codec_header *header = &subject->picture->header;
    struct finer finer = {{.subject = subject, .tries_max = tries_max, .judge = finer_judge},
                          .setting = quality,
                          .quality = (double)*quality,
                          .bytes = (double)codec_file_bytes(subject->picture),
                          .pixels = (double)header->width_px * header->height_px,
                          .growth_most = subject->order->growth_max_percent / 100.0,
                          .times = 1};
    enum iw_error error = finer_measure(&finer, &best->report);
    if (error == IW_OK && (double)*quality > finer.quality)
        error = tuning_run(&finer.tuning, best);
    *quality = (float)finer.quality;
    finer_note(subject, &best->bytes);
    return error;
}

/* Encodes with a change of the coefficients if the format has them, else by pixels, finer if there is room.
 */
static enum iw_error encode_best(const struct subject *subject, struct trial *best)
{
    enum iw_error error = encode_change(subject, best);
    float *quality = codec_quality(subject->picture);
    if (error == IW_OK && best->bytes.data == NULL && quality != NULL &&
        subject->order->growth_max_percent > 100)
        error = encode_finer(subject, quality, best);
    return error != IW_OK || best->bytes.data != NULL ? error : encode_to_strength(subject, best);
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

/* Encodes a drawing in the first form that is small enough, or in the last one. */
static enum iw_error encode_forms(const struct subject *subject, struct context_note **notes_end,
                                  struct trial *result)
{
    for (unsigned form = 0; form < flat_forms; form++) {
        double shown = 0;
        bytes_free(&result->bytes);
        *notes_end = NULL; /* those about the form before */
        enum iw_error error =
            change_flat_form(subject->plan, &subject->picture->image, subject->order->strength, form, &shown);
        if (error != IW_OK)
            return context_fail(subject->context, error, NULL);
        error = encode_at(subject, 1, result);
        result->report.shown = shown;
        if (error != IW_OK || result->bytes.size <= growth_most * subject->order->size)
            return error;
    }
    return IW_OK;
}

/*
 * Encodes the change without a form, which may be stronger next to black and white. It replaces the drawing's
 * result if the file is small enough. plain_report: of the whole units; encode_at reports on limited ones.
 */
static enum iw_error encode_plain(const struct subject *subject, const struct protect_report *plain_report,
                                  struct context_note **notes_end, struct trial *result)
{
    struct context_note *form_notes = *notes_end;
    struct trial plain = {{NULL, 0}, *plain_report};
    *notes_end = NULL;
    change_flat_end(subject->plan);
    enum iw_error error = encode_at(subject, 1, &plain);
    plain.report = *plain_report;
    if (error == IW_OK && plain.bytes.size <= plain_growth_most * subject->order->size)
        trial_take(result, &plain);
    else
        *notes_end = form_notes;
    bytes_free(&plain.bytes);
    return error;
}

/* Encodes a drawing so that its file stays small, and other pictures as they are. */
static enum iw_error encode_any(const struct subject *subject, struct trial *result)
{
    bool is_flat = false;
    enum iw_error error = IW_OK;
    struct protect_report plain = {0};
    struct context_note **notes_end = &subject->context->notes;
    while (*notes_end != NULL)
        notes_end = &(*notes_end)->next;
    if (is_drawing(&subject->picture->header))
        error = change_flat_new(subject->plan, &subject->picture->image, subject->order->strength, &is_flat,
                                &plain);
    if (error != IW_OK)
        return context_fail(subject->context, error, NULL);
    if (!is_flat)
        return encode_best(subject, result);
    error = encode_forms(subject, notes_end, result);
    return error == IW_OK && result->report.share < plain.share - share_clear
               ? encode_plain(subject, &plain, notes_end, result)
               : error;
}

/* Notes a result below the strength, before the notes on metadata and size. */
static void strength_note(const struct subject *subject, const struct protect_report *report)
{
    struct context *context = subject->context;
    const char *name = protect_strength_name(subject->order->strength);
    const bool is_lossy = subject->picture->header.is_lossy;
    if (protect_percent(report) >= result_strong_percent)
        return;
    if (report->psnr_db >= unchanged_db)
        context_note(context, "PROTECTION_REDUCED",
                     is_lossy ? message_unchanged_compressed : message_unchanged_flat, name);
    else
        context_note(context, "PROTECTION_REDUCED", "%s %s",
                     arena_printf(context->arena, message_protection_weaker, name, protect_percent(report)),
                     is_lossy ? message_rest_compressed : message_rest_visible);
    context_note_lead(context, "PROTECTION_REDUCED");
}

enum iw_error protect_picture(struct context *context, const struct protect *protect,
                              const struct protect_order *order, struct codec_picture *picture,
                              struct codec_bytes *bytes, struct protect_report *report)
{
    struct subject subject = {context, NULL, picture, order};
    struct trial result = {0};
    enum iw_error error = codec_opt_out(context, picture);
    if (error != IW_OK)
        return error;
    error = protect_plan_new(&subject.plan, protect, &picture->image, order->seed);
    if (error != IW_OK)
        return context_fail(context, error, NULL);
    error = encode_any(&subject, &result);
    protect_plan_free(subject.plan);
    if (error == IW_OK)
        strength_note(&subject, &result.report);
    else
        bytes_free(&result.bytes);
    *bytes = result.bytes;
    *report = result.report;
    return error;
}
