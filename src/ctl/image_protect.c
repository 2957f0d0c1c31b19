/* imgwardctl image protect: runs the protection engine on a file, as the worker does. */
#include <stdio.h>
#include <stdlib.h>

#include "ctl/ctl.h"
#include "codec/protect_picture.h"

/* Larger than the service's limits, so that an operator can examine a refused picture. */
static const struct codec_limits limits = {.pixels_max = 200000000, .side_max_px = 65500};

enum { file_bytes_max = 512 * 1024 * 1024 };

static bool strength_read(const struct ctl *ctl, enum protect_strength *strength)
{
    const char *name = ctl_option(ctl, "--strength");
    *strength = PROTECT_STANDARD;
    if (name == NULL || protect_strength_by_name(name, strength))
        return true;
    fprintf(stderr, "imgwardctl: --strength is low, standard or high.\n");
    return false;
}

static enum iw_error picture_open(struct ctl *ctl, struct codec_picture *picture)
{
    unsigned char *bytes;
    size_t size;
    enum iw_error error = ctl_file_read(ctl->context, ctl->arguments[0], file_bytes_max, &bytes, &size);
    if (error != IW_OK)
        return error;
    error = codec_decode(ctl->context, bytes, size, &limits, picture);
    free(bytes);
    return error;
}

static enum iw_error file_protect(struct ctl *ctl, const struct protect *protect,
                                  enum protect_strength strength, uint64_t seed)
{
    struct codec_picture picture;
    struct codec_bytes bytes;
    struct protect_report report;
    enum iw_error error = picture_open(ctl, &picture);
    if (error != IW_OK)
        return error;
    error = protect_picture(ctl->context, protect, &picture, strength, seed, &bytes, &report);
    codec_picture_free(&picture);
    if (error != IW_OK)
        return error;
    error = ctl_file_write(ctl->context, ctl->arguments[1], bytes.data, bytes.size, 0644);
    codec_bytes_free(&bytes);
    if (error == IW_OK)
        printf("%s: %s, PSNR %.2f dB, %.0f %% of the change reached\n", ctl->arguments[1],
               protect_strength_name(strength), report.psnr_db, 100 * report.reached);
    if (error == IW_OK && ctl->context->notes != NULL)
        fprintf(stderr, "imgwardctl: note: %s\n", context_notes_text(ctl->context));
    return error;
}

static enum ctl_exit protect_run(struct ctl *ctl)
{
    enum protect_strength strength;
    struct protect *protect;
    struct config config;
    int64_t seed;
    if (!strength_read(ctl, &strength) || !ctl_option_integer(ctl, "--seed", 0, INT64_MAX, 0, &seed))
        return CTL_FAILED;
    const char *path = ctl_option(ctl, "--weights");
    if (path == NULL && ctl_config(ctl, &config))
        path = config.image_weights_file;
    if (path == NULL)
        return CTL_FAILED;
    if (protect_open(ctl->context, path, &protect) != IW_OK)
        return ctl_failed(ctl);
    enum iw_error error = file_protect(ctl, protect, strength, (uint64_t)seed);
    protect_free(protect);
    return error == IW_OK ? CTL_DONE : ctl_failed(ctl);
}

const struct ctl_command ctl_commands_image_protect[] = {
    {.words = {"image", "protect"},
     .arguments = "IN OUT",
     .arguments_least = 2,
     .arguments_most = 2,
     .options = {{"--strength", "NAME", "visibility: low, standard (when omitted) or high"},
                 {"--seed", "N", "seed of the perturbation's noise; 0 when omitted"},
                 {"--weights", "FILE", "weights of the network, instead of the configured file"}},
     .help = "Add the anti-AI perturbation and the metadata opt-out to a JPEG, PNG or WebP.",
     .run = protect_run},
    {.words = {NULL}},
};
