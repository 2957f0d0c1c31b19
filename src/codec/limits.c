#include "codec/limits.h"
#include "base/message.h"

#include <inttypes.h>

static struct picture_load load_of(const struct codec_header *header)
{
    enum { inks = 4 };
    uint64_t pixels = (uint64_t)header->width_px * header->height_px;
    unsigned bytes_px = header->channels * (header->depth_bits / 8) + (header->is_cmyk ? inks : 0);
    return (struct picture_load){header->width_px, header->height_px, pixels * bytes_px,
                                 header->decode_memory_bytes, header->encode_memory_bytes};
}

void limits_estimate(struct codec_header *header)
{
    const struct picture_form form = {.format = header->format,
                                      .width_px = header->width_px,
                                      .height_px = header->height_px,
                                      .channels = header->channels,
                                      .depth_bits = header->depth_bits,
                                      .is_lossless = !header->is_lossy};
    const struct picture_load load = picture_load(&form);
    header->decode_memory_bytes = load.decode_bytes;
    header->encode_memory_bytes = load.encode_bytes;
}

bool limits_fit(const struct codec_limits *limits, const struct codec_header *header)
{
    const struct picture_load load = load_of(header);
    return limits->memory_max_bytes == 0 ||
           picture_work_bytes(&load, &limits->engine) <= limits->memory_max_bytes;
}

enum iw_error limits_check_animation(struct context *context, const struct codec_limits *limits,
                                     const struct codec_header *header)
{
    if (header->is_animated && !limits->engine.is_read_only)
        return context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED, message_picture_animated,
                            header->frame_count, header->frame_count == 1 ? "" : "s");
    if (header->width_px == 0 || header->height_px == 0)
        return context_fail(context, IW_IMAGE_CORRUPT,
                            "The picture has no pixels. Export it again and upload it.");
    return IW_OK;
}

enum iw_error limits_check(struct context *context, const struct codec_limits *limits,
                           const struct codec_header *header)
{
    uint32_t longer = header->width_px > header->height_px ? header->width_px : header->height_px;
    uint32_t shorter = header->width_px > header->height_px ? header->height_px : header->width_px;
    uint64_t pixels = (uint64_t)header->width_px * header->height_px;
    if (limits_check_animation(context, limits, header) != IW_OK)
        return context->error;
    if (limits->side_max_px != 0 && longer > limits->side_max_px)
        return context_fail(context, IW_IMAGE_TOO_LARGE, message_picture_side, header->width_px,
                            header->height_px, limits->side_max_px);
    if (limits->pixels_max != 0 && pixels > limits->pixels_max)
        return context_fail(context, IW_IMAGE_TOO_LARGE, message_picture_pixels, pixels, limits->pixels_max);
    if (shorter < limits->side_min_px)
        return context_fail(context, IW_IMAGE_TOO_SMALL, message_picture_small, header->width_px,
                            header->height_px, limits->side_min_px);
    const struct picture_load load = load_of(header);
    return picture_check_memory(context, &load, &limits->engine, limits->memory_max_bytes);
}
