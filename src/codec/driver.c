#include "codec/driver.h"
#include "base/message.h"

#include <stdlib.h>
#include <string.h>

enum iw_error driver_cut(struct context *context, size_t size)
{
    context->reason = "cut";
    return context_fail(context, IW_IMAGE_CORRUPT, message_file_cut, size);
}

enum iw_error driver_damaged(struct context *context, enum format format)
{
    return context_fail(context, IW_IMAGE_CORRUPT, message_picture_damaged, format_title(format));
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
    picture->driver = driver;
    enum iw_error error = driver->probe(context, data, size, limits, &picture->header);
    if (error == IW_OK)
        error = picture_make(context, picture);
    return error == IW_OK ? driver->decode(context, data, size, limits, picture) : error;
}

const unsigned char *driver_icc(struct arena *arena, const struct codec_picture *picture, size_t *size)
{
    return picture->driver->icc == NULL ? NULL : picture->driver->icc(arena, picture->keep, size);
}

unsigned driver_orientation(const struct codec_picture *picture)
{
    struct exif exif;
    if (picture->keep->orientation != 0)
        return picture->keep->orientation;
    const struct keep_chunk *chunk =
        keep_find(picture->keep, picture->driver->exif.tag, exif_prefix, picture->driver->exif.prefix_bytes);
    return chunk != NULL && exif_open(&exif, chunk->data, chunk->size) ? exif_orientation(&exif) : 1;
}
