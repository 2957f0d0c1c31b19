#include "codec/codec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "codec/driver.h"
#include "codec/metadata/clean.h"
#include "codec/metadata/packets.h"
#include "codec/palette.h"
#include "codec/preview.h"
#include "codec/transfer.h"
#include "model/sniff.h"

#define DRIVER_ROW(format, row) [format] = &row,
static const struct codec_driver *const drivers[FORMAT_COUNT] = {DRIVERS(DRIVER_ROW)};
#undef DRIVER_ROW

static enum iw_error driver_of(struct context *context, const void *data, size_t size,
                               const struct codec_limits *limits, const struct codec_driver **driver)
{
    enum format format = sniff_format(data, size);
    bool is_read = format_is_picture(format) ||
                   (limits->engine.is_read_only && format_is_in(format, limits->formats_more));
    *driver = is_read ? drivers[format] : NULL;
    return *driver == NULL ? context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED, "%s",
                                          sniff_advice(context->arena, data, size))
                           : IW_OK;
}

void codec_open(unsigned formats)
{
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (format_is_in((enum format)i, formats) && drivers[i] != NULL && drivers[i]->prepare != NULL)
            drivers[i]->prepare();
}

bool codec_reads_rows(const struct codec_picture *picture)
{
    return picture->driver->decode_rows != NULL;
}

enum iw_error codec_probe(struct context *context, const void *data, size_t size,
                          const struct codec_limits *limits, struct codec_header *header)
{
    const struct codec_driver *driver;
    memset(header, 0, sizeof *header);
    enum iw_error error = driver_of(context, data, size, limits, &driver);
    return error != IW_OK ? error : driver->probe(context, data, size, limits, header);
}

/* The number of colours, or 0 if a palette does not hold them. */
static unsigned colors_count(const struct image *image)
{
    struct palette palette;
    return palette_collect(image, &palette) ? palette.count : 0;
}

/*
 * The watermark costs at most 10.4 bits a pixel on drawings (tests/bench/watermark_growth). A file of a third
 * of it would more than triple.
 */
static const double small_bits_px = 10.4 / 3;

static bool is_small(const struct codec_header *header, size_t size)
{
    return !header->is_lossy && 8 * (double)size < small_bits_px * header->width_px * header->height_px;
}

/* Ends the picture after the last readable row, with a note. IMAGE_CORRUPT if too few rows are readable. */
static enum iw_error rows_crop(struct context *context, size_t size, struct codec_picture *picture)
{
    const struct keep_loss *loss = &picture->keep->loss;
    uint32_t height_px = picture->header.height_px;
    if (loss->rows_px < height_px && loss->rows_px < codec_partial_rows_least)
        return driver_cut(context, size);
    unsigned percent = (unsigned)((uint64_t)loss->rows_px * 100 / height_px);
    if (loss->rows_px < height_px)
        context_note(context, "IMAGE_INCOMPLETE", loss->is_coarse ? message_rows_cut_part : message_rows_cut,
                     percent);
    else if (loss->is_coarse)
        context_note(context, "IMAGE_INCOMPLETE", message_rows_part);
    picture->header.height_px = loss->rows_px;
    picture->image.height_px = loss->rows_px;
    return IW_OK;
}

enum iw_error codec_decode(struct context *context, const void *data, size_t size,
                           const struct codec_limits *limits, struct codec_picture *picture)
{
    const struct codec_driver *driver;
    memset(picture, 0, sizeof *picture);
    enum iw_error error = driver_of(context, data, size, limits, &driver);
    if (error == IW_OK && driver->compressed != NULL) {
        const struct transfer_bytes bytes = driver->compressed(data, size);
        error = transfer_check(context, &bytes, format_title(sniff_format(data, size)));
    }
    if (error == IW_OK)
        error = driver_decode(context, driver, data, size, limits, picture);
    if (error == IW_OK && limits->is_partial_allowed)
        error = rows_crop(context, size, picture);
    if (error == IW_OK && !limits->engine.is_read_only) {
        driver->clean(picture->keep, data, size);
        packets_clean(picture->keep, driver->xmp);
    }
    if (error == IW_OK)
        picture->header.is_small = is_small(&picture->header, size);
    if (error != IW_OK)
        codec_picture_free(picture);
    else if (!picture->header.is_lossy && !limits->engine.is_read_only)
        picture->keep->color_count = colors_count(&picture->image);
    return error;
}

enum iw_error codec_decode_rows(struct context *context, const void *data, size_t size,
                                const struct codec_limits *limits, codec_rows_taker *taker, void *user)
{
    const struct codec_driver *driver;
    enum iw_error error = driver_of(context, data, size, limits, &driver);
    if (error == IW_OK && driver->decode_rows != NULL)
        return driver->decode_rows(context, data, size, limits, taker, user);
    struct codec_picture picture;
    if (error == IW_OK)
        error = codec_decode(context, data, size, limits, &picture);
    if (error != IW_OK)
        return error;
    error = taker(user, 0, &picture.image);
    codec_picture_free(&picture);
    return error;
}

/* A lossless file of few colours is small because of them. A note says if the result has too many. */
static void growth_note(struct context *context, const struct codec_picture *picture)
{
    if (picture->keep->color_count == 0 || colors_count(&picture->image) != 0)
        return;
    context_note(context, "PALETTE_EXPANDED", message_palette_full, picture->keep->color_count,
                 (int)palette_colors_max);
}

enum iw_error codec_encode(struct context *context, const struct codec_picture *picture,
                           struct codec_bytes *bytes)
{
    memset(bytes, 0, sizeof *bytes);
    preview_render(picture);
    clean_note(context, picture->keep);
    enum iw_error error = picture->driver->encode(context, picture, bytes);
    if (error != IW_OK)
        bytes_free(bytes);
    else
        growth_note(context, picture);
    return error;
}

size_t codec_file_bytes(const struct codec_picture *picture)
{
    return picture->keep->end;
}

bool codec_carries(const struct codec_picture *picture, unsigned finer, const struct codec_limits *limits)
{
    const struct codec_driver *driver = picture->driver;
    struct codec_header header = picture->header;
    header.encode_memory_bytes = driver->change_bytes != NULL ? driver->change_bytes(picture, finer) : 0;
    return header.encode_memory_bytes != 0 && limits_fit(limits, &header);
}

void codec_preview(const struct codec_picture *picture)
{
    preview_render(picture);
}

enum iw_error codec_encode_change(struct context *context, const struct codec_picture *picture,
                                  struct codec_change *change, struct codec_bytes *bytes)
{
    memset(bytes, 0, sizeof *bytes);
    clean_note(context, picture->keep);
    enum iw_error error = picture->driver->encode_change(context, picture, change, bytes);
    if (error != IW_OK)
        bytes_free(bytes);
    return error;
}

enum iw_error codec_stripes(struct context *context, const struct codec_picture *picture,
                            const struct image_stripes *stripes, const struct codec_change *change,
                            struct codec_bytes *bytes, double *part)
{
    memset(bytes, 0, sizeof *bytes);
    enum iw_error error = picture->driver->encode_stripes(context, picture, stripes, change, bytes, part);
    if (error != IW_OK)
        bytes_free(bytes);
    return error;
}

size_t codec_metadata_bytes(const struct codec_picture *picture)
{
    return picture->keep->chunk_bytes;
}

bool codec_finer(struct codec_picture *picture, unsigned level, const struct codec_limits *limits)
{
    return picture->driver->finer != NULL && picture->driver->finer(picture, level) &&
           (limits->memory_max_bytes == 0 || picture->header.encode_memory_bytes <= limits->memory_max_bytes);
}

float *codec_quality(struct codec_picture *picture)
{
    return picture->driver->quality != NULL ? picture->driver->quality(picture) : NULL;
}

enum iw_error codec_opt_out(struct context *context, struct codec_picture *picture)
{
    return packets_opt_out(context, picture->keep, picture->driver->xmp);
}

void codec_picture_free(struct codec_picture *picture)
{
    free(picture->image.pixels);
    keep_free(picture->keep);
    memset(picture, 0, sizeof *picture);
}
