/* imgwardctl image protect: runs the protection engine on a file, as the worker does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/batch.h"
#include "ctl/table.h"
#include "image/protect_picture.h"
#include "model/result.h"

/* Larger than the service's limits, so that an operator can examine a refused picture. */
static const struct codec_limits limits = {.pixels_max = 200000000, .side_max_px = 65500};

enum { file_bytes_max = 512 * 1024 * 1024 };

enum { colors_max = 3 };

/* The figures that --verbose and --json print. */
struct protect_summary {
    const char *path, *strength;
    const char *notes; /* NULL if there is none */
    struct protect_report report;
    unsigned colors;
    double tint[colors_max]; /* mean change of red, green and blue, or of grey, in levels of 255 */
};

/* Sums the differences between the decoded result and the original. */
struct tint_comparison {
    const struct image *original;
    struct protect_summary *summary;
};

static double sample_level(const struct image *image, uint32_t y, size_t at)
{
    const unsigned char *row = (const unsigned char *)image->pixels + y * image->stride_bytes;
    uint16_t sample;
    if (image->depth_bits == 8)
        return row[at];
    memcpy(&sample, row + at * sizeof sample, sizeof sample);
    return sample / 257.0;
}

static bool is_hidden(const struct image *image, uint32_t y, uint32_t x)
{
    const size_t alpha = (size_t)(x + 1) * image->channels - 1;
    return image_has_alpha(image) && sample_level(image, y, alpha) <= 0;
}

/* Pixels with alpha 0 do not count. */
static enum iw_error rows_compare(void *user, uint32_t first_row_px, const struct image *rows)
{
    const struct tint_comparison *comparison = user;
    const struct image *original = comparison->original;
    struct protect_summary *summary = comparison->summary;
    for (uint32_t y = 0; y < rows->height_px; y++)
        for (uint32_t x = 0; x < rows->width_px; x++)
            for (unsigned color = 0; color < summary->colors; color++) {
                if (is_hidden(comparison->original, first_row_px + y, x))
                    continue;
                const unsigned result_color = image_has_color(rows) ? color : 0; /* a palette of greys */
                summary->tint[color] +=
                    sample_level(rows, y, (size_t)x * rows->channels + result_color) -
                    sample_level(original, first_row_px + y, (size_t)x * original->channels + color);
            }
    return IW_OK;
}

/* Measures the tint. protect_picture has restored the original's pixels; the result has the same size. */
static enum iw_error tint_measure(struct ctl *ctl, const struct image *original,
                                  const struct codec_bytes *bytes, struct protect_summary *summary)
{
    struct tint_comparison comparison = {original, summary};
    summary->colors = image_has_color(original) ? colors_max : 1;
    enum iw_error error =
        codec_decode_rows(ctl->context, bytes->data, bytes->size, &limits, rows_compare, &comparison);
    for (unsigned color = 0; color < summary->colors; color++)
        summary->tint[color] /= (double)original->width_px * original->height_px;
    return error;
}

static bool is_weak(const struct protect_summary *summary)
{
    return protect_percent(&summary->report) < result_strong_percent;
}

static void outcome_render(struct render *render, const void *facts)
{
    const struct protect_summary *summary = facts;
    render_string(render, "file", summary->path);
    render_string(render, "strength", summary->strength);
    render_real(render, "visibilityBudget", summary->report.visibility);
    render_real(render, "visibilityReached", summary->report.shown);
    render_integer(render, "share", protect_percent(&summary->report));
    render_string(render, "word", result_word((int)protect_percent(&summary->report)));
    render_boolean(render, "isLimited", is_weak(summary));
    render_real(render, "psnrDb", summary->report.psnr_db);
    render_array_begin(render, "tint");
    for (unsigned color = 0; color < summary->colors; color++)
        render_real(render, NULL, summary->tint[color]);
    render_array_end(render);
    render_string(render, "note", summary->notes);
}

/* Prints on stderr, like the other image commands. */
static void summary_print(const struct protect_summary *summary)
{
    static const char *const names[] = {"red", "green", "blue"};
    const double budget = summary->report.visibility;
    fprintf(stderr, "visibility: budget %.3f, reached %.3f%s\ntint in levels of 255:", budget,
            summary->report.shown, is_weak(summary) ? ", weaker than the strength" : "");
    for (unsigned color = 0; color < summary->colors; color++)
        fprintf(stderr, " %s %+.3f", summary->colors == 1 ? "grey" : names[color], summary->tint[color]);
    fputc('\n', stderr);
}

static void result_print(const struct ctl *ctl, const struct protect_summary *summary)
{
    if (ctl_option(ctl, "--json") != NULL)
        table_object_print(ctl, outcome_render, summary);
    else
        printf("%s: %s, PSNR %.2f dB, protection %s, %u %%\n", summary->path, summary->strength,
               summary->report.psnr_db, result_word((int)protect_percent(&summary->report)),
               protect_percent(&summary->report));
    if (ctl_option(ctl, "--verbose") != NULL)
        summary_print(summary);
    ctl_notes_print(ctl);
}

/* What is done with each picture. */
struct protection {
    struct protect *protect;
    enum protect_strength strength;
    int64_t seed, growth_percent;
};

/* Decodes a file and protects the picture. On success the caller owns the picture and the result. */
static enum iw_error picture_protect(struct ctl *ctl, const struct protection *work, const char *in,
                                     struct codec_picture *picture, struct codec_bytes *result,
                                     struct protect_report *report)
{
    unsigned char *bytes;
    size_t size;
    enum iw_error error = ctl_file_read(ctl->context, in, file_bytes_max, &bytes, &size);
    if (error != IW_OK)
        return error;
    const struct protect_order order = {.data = bytes,
                                        .size = size,
                                        .limits = &limits,
                                        .strength = work->strength,
                                        .seed = (uint64_t)work->seed,
                                        .growth_max_percent = (unsigned)work->growth_percent};
    error = codec_decode(ctl->context, bytes, size, &limits, picture);
    if (error == IW_OK) {
        error = protect_picture(ctl->context, work->protect, &order, picture, result, report);
        if (error != IW_OK)
            codec_picture_free(picture);
    }
    free(bytes);
    return error;
}

static enum iw_error file_protect(struct ctl *ctl, const struct protection *work, const char *in,
                                  const char *out)
{
    struct codec_picture picture;
    struct codec_bytes bytes;
    struct protect_summary summary = {.path = out, .strength = protect_strength_name(work->strength)};
    enum iw_error error = picture_protect(ctl, work, in, &picture, &bytes, &summary.report);
    if (error != IW_OK)
        return error;
    summary.notes = ctl->context->notes != NULL ? context_notes_text(ctl->context) : NULL;
    if (ctl_option(ctl, "--verbose") != NULL || ctl_option(ctl, "--json") != NULL)
        error = tint_measure(ctl, &picture.image, &bytes, &summary);
    if (error == IW_OK)
        error = ctl_file_write(ctl->context, summary.path, in, bytes.data, bytes.size);
    bytes_free(&bytes);
    codec_picture_free(&picture);
    if (error == IW_OK)
        result_print(ctl, &summary);
    return error;
}

/* Reads the configuration for the weights, and for the growth if the user may read it. */
static bool protect_config(struct ctl *ctl, struct config *config)
{
    const bool is_readable = ctl->is_config_named || access(ctl->config_path, R_OK) == 0;
    config_init(config);
    if (ctl_option(ctl, "--weights") != NULL && (ctl_option(ctl, "--growth") != NULL || !is_readable))
        return true;
    return ctl_config_or_defaults(ctl, config);
}

static enum ctl_exit protect_run(struct ctl *ctl)
{
    struct protection work = {.strength = PROTECT_STANDARD};
    const char *name = ctl_option(ctl, "--strength");
    struct config config;
    struct batch batch;
    const char *path = ctl_option(ctl, "--weights");
    if (!protect_config(ctl, &config))
        return CTL_FAILED;
    if ((name != NULL && !protect_strength_by_name(name, &work.strength)) ||
        !ctl_option_integer(ctl, "--seed", 0, INT64_MAX, 0, &work.seed) ||
        !ctl_option_integer(ctl, "--growth", 100, 1000, config.image_protect_growth_max_percent,
                            &work.growth_percent))
        return CTL_FAILED;
    path = path != NULL ? path : config.image_weights_file;
    if (protect_picture_open(ctl->context, path, NULL, &work.protect) != IW_OK)
        return ctl_failed(ctl);
    for (bool goes_on = batch_begin(&batch, ctl, true); goes_on && batch_next(&batch);)
        batch_done(&batch, file_protect(ctl, &work, batch.in, batch.out));
    protect_free(work.protect);
    return batch_end(&batch);
}

const struct ctl_command image_protect_commands[] = {
    {.words = {"image", "protect"},
     .arguments = "IN... OUT",
     .arguments_least = 2,
     .arguments_most = ctl_arguments_any,
     .options =
         {{"--strength", "low|standard|high", "visibility; standard when omitted"},
          {"--seed", "N", "seed for the noise of the perturbation; 0 when omitted"},
          {"--weights", "FILE", "file with the weights of the network, instead of the configured file"},
          {"--growth", "PERCENT",
           "largest JPEG or lossy WebP of a higher quality, relative to the file; 100 keeps its quality; the "
           "configured one when omitted"},
          {"--verbose", NULL, "print the visibility and the tint that were reached on stderr"},
          {"--json", NULL, "print a JSON object with the same figures and the note"}},
     .help =
         "Add the anti-AI perturbation and the metadata opt-out to pictures.  OUT is a "
         "file for one picture, an existing folder for several pictures and for the pictures of a folder.",
     .example = "imgwardctl image protect --strength high photo.jpg protected.jpg",
     .run = protect_run},
    {.words = {NULL}},
};
