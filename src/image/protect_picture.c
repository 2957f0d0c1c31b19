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

/* Rounding: a coefficient of 0 moves from half a step on. */
static const double dead_least = 0.5, dead_most = 7;

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
                                    struct codec_picture *picture, struct protect_report *report)
{
    struct codec_bytes bytes;
    struct change_sums sums;
    enum iw_error error = codec_encode(context, picture, &bytes);
    if (error != IW_OK)
        return error;
    error = result_decode(context, plan, &picture->image, &bytes, &sums);
    if (error == IW_OK)
        change_coding_end(plan, report);
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
    enum iw_error error = picture->header.is_lossy ? coding_measure(context, plan, picture, report) : IW_OK;
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
 * may be above 1.  Few results need a third measurement.
 */
enum { carried_tries_max = 4 };
static const double carried_first = 1.08, carried_least = 0.97, carried_aim = 1.02, carried_power = 0.9,
                    carried_most = 8;

/*
 * A result of a higher quality below this share of the budget has too few bytes for its change. The file's
 * steps then keep more: 94 % of the protection instead of 65 % (kodim20, quality 88, growth to 110 %).
 */
static const double finer_least = 0.9;

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

/* Returns the next scale, from a result's visibility as a share of the budget; 0 if the result is as wanted.
 */
static double carried_next(double scale, double shown, bool is_full)
{
    const bool is_weak = shown < carried_least && !is_full && scale < carried_most;
    if (shown <= slack_share && !is_weak)
        return 0;
    const double factor = shown > 0 ? pow(carried_aim / shown, carried_power) : 2;
    return fmin(scale * fmin(fmax(factor, 0.5), 2), carried_most);
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
 * Encodes until the measured visibility is the budget. The bytes are empty if the size has no room for a
 * change, or if every result is more visible than the budget.
 */
static enum iw_error encode_carried(struct context *context, struct protect_plan *plan,
                                    struct codec_picture *picture, const struct protect_order *order,
                                    unsigned finer, struct codec_bytes *bytes, struct protect_report *report)
{
    const size_t bytes_max = codec_file_bytes(picture) * order->growth_max_percent / 100;
    const double dead_max = finer > 1 ? dead_least : dead_most;
    struct codec_change change = {.data = order->data,
                                  .size = order->size,
                                  .row = carried_row,
                                  .user = plan,
                                  .scale = carried_first,
                                  .finer = finer,
                                  .bytes_max = finer > 0 ? bytes_max : 0,
                                  .dead = dead_least};
    carried_begin(plan, picture, order->strength, report);
    enum iw_error error = IW_OK;
    for (unsigned try = 0; error == IW_OK && try < carried_tries_max && change.dead <= dead_max; try++) {
        struct codec_bytes next = {NULL, 0};
        struct protect_report measured = *report;
        error = codec_encode_change(context, picture, &change, &next);
        if (error != IW_OK || next.data == NULL)
            continue;
        error = result_compare(context, plan, &picture->image, &next, &measured);
        const double scale = carried_next(change.scale, measured.shown / measured.visibility, try > 1);
        carried_take(bytes, report, &next, &measured);
        if (error != IW_OK || scale == 0)
            break;
        change.dead = fmin(fmax(change.dead * scale / change.scale, dead_least), dead_max);
        change.scale = scale;
    }
    const bool is_weak = finer > 0 && report->shown < finer_least * report->visibility;
    if (error != IW_OK || is_shown_more(report) || is_weak)
        bytes_free(bytes);
    return error;
}

/* Returns the level to begin with. Of ten JPEG files of quality 85, none had room for the finest at 125 %. */
static int finest_of(unsigned growth_max_percent)
{
    enum { finest_from_percent = 130 };
    return growth_max_percent >= finest_from_percent ? codec_finest : growth_max_percent > 100;
}

/* Encodes with finer steps if the limits allow it, then with those of the file, then by pixels. */
static enum iw_error encode_best(struct context *context, struct protect_plan *plan,
                                 struct codec_picture *picture, const struct protect_order *order,
                                 struct codec_bytes *bytes, struct protect_report *report)
{
    enum iw_error error = IW_OK;
    memset(bytes, 0, sizeof *bytes);
    for (int finer = finest_of(order->growth_max_percent);
         finer >= 0 && error == IW_OK && bytes->data == NULL; finer--) {
        if (codec_carries(picture, (unsigned)finer, order->limits))
            error = encode_carried(context, plan, picture, order, (unsigned)finer, bytes, report);
        if (finer > 0 && bytes->size > codec_file_bytes(picture))
            context_note(context, "ENCODED_FINER", message_protected_finer, bytes->size,
                         codec_file_bytes(picture));
    }
    return error != IW_OK || bytes->data != NULL
               ? error
               : encode_to_strength(context, plan, picture, order->strength, bytes, report);
}

/* ---- drawings */

/*
 * A drawing's file grows at most this many times if a form of the change makes that possible. Without forms
 * drawings grow up to 25 times (doc/protection-engine.md).
 */
enum { growth_most = 3 };

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
    *is_taken = error == IW_OK && plain.size <= growth_most * order->size;
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
