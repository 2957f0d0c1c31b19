#include "codec/driver.h"

#include <stdlib.h>
#include <string.h>

enum iw_error driver_cut(struct context *context, size_t size)
{
    context->reason = "cut";
    return context_fail(context, IW_IMAGE_CORRUPT, "The file is cut off after %zu bytes; upload it again.",
                        size);
}

enum iw_error driver_damaged(struct context *context, const char *format)
{
    return context_fail(context, IW_IMAGE_CORRUPT,
                        "The %s image is damaged and cannot be decoded. Export it again and upload the new "
                        "file.",
                        format);
}

static enum iw_error picture_make(struct context *context, struct codec_picture *picture)
{
    const struct codec_header *header = &picture->header;
    struct image *image = &picture->image;
    image->width_px = header->width_px;
    image->height_px = header->height_px;
    image->channels = header->channels;
    image->depth_bits = header->depth_bits;
    image->stride_bytes = (size_t)header->width_px * header->channels * (header->depth_bits / 8);
    image->pixels = calloc(header->height_px, image->stride_bytes);
    if (image->pixels == NULL)
        return context_fail(context, IW_NO_MEMORY, NULL);
    picture->keep = keep_new();
    picture->keep->loss.rows_px = header->height_px;
    return IW_OK;
}

enum iw_error driver_decode(struct context *context, const struct codec_driver *driver, const void *data,
                            size_t size, const struct codec_limits *limits, struct codec_picture *picture)
{
    enum iw_error error = driver->probe(context, data, size, limits, &picture->header);
    if (error == IW_OK)
        error = picture_make(context, picture);
    return error == IW_OK ? driver->decode(context, data, size, limits, picture) : error;
}
