#include "codec/codec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "service/sniff.h"
#include "codec/codec_keep.h"

static const struct codec_driver *const drivers[FORMAT_COUNT] = {
    [FORMAT_JPEG] = &codec_jpeg_driver,
    [FORMAT_PNG] = &codec_png_driver,
    [FORMAT_WEBP] = &codec_webp_driver,
};

/* ---- for the drivers ---- */

static enum iw_error codec_check_memory(struct context *context, const struct codec_limits *limits,
                                        const struct codec_header *header)
{
    uint64_t pixels = (uint64_t)header->width_px * header->height_px;
    uint64_t pixel_bytes = pixels * header->channels * (header->depth_bits / 8);
    uint64_t needed_bytes = limits->is_read_only ? pixel_bytes : header->encode_memory_bytes;
    uint64_t rows = header->height_px < 4 * (uint64_t)header->width_px ? header->height_px
                                                                       : 4 * (uint64_t)header->width_px;
    needed_bytes += pixels * limits->engine_bytes_px + rows * limits->engine_bytes_row;
    if (needed_bytes < header->decode_memory_bytes)
        needed_bytes = header->decode_memory_bytes;
    if (limits->memory_max_bytes == 0 || needed_bytes <= limits->memory_max_bytes)
        return IW_OK;
    context->reason = "memory_estimate";
    return context_fail(context, IW_IMAGE_TOO_LARGE,
                        "The image needs about %" PRIu64 " MiB to be processed; %" PRIu64 " MiB are allowed.",
                        needed_bytes >> 20, limits->memory_max_bytes >> 20);
}

enum iw_error codec_check_animation(struct context *context, const struct codec_limits *limits,
                                    const struct codec_header *header)
{
    if (header->is_animated && !limits->is_read_only)
        return context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED,
                            "The image is an animation of %" PRIu32 " frames, which is not supported. Save "
                            "each frame that you need as a still image and upload these.",
                            header->frame_count);
    if (header->width_px == 0 || header->height_px == 0)
        return context_fail(context, IW_IMAGE_CORRUPT,
                            "The image has no pixels. Export it again and upload it.");
    return IW_OK;
}

enum iw_error codec_check(struct context *context, const struct codec_limits *limits,
                          const struct codec_header *header)
{
    uint32_t longer = header->width_px > header->height_px ? header->width_px : header->height_px;
    uint32_t shorter = header->width_px > header->height_px ? header->height_px : header->width_px;
    uint64_t pixels = (uint64_t)header->width_px * header->height_px;
    if (codec_check_animation(context, limits, header) != IW_OK)
        return context->error;
    if (limits->side_max_px != 0 && longer > limits->side_max_px)
        return context_fail(context, IW_IMAGE_TOO_LARGE,
                            "The image is %" PRIu32 " x %" PRIu32 " px; at most %" PRIu32
                            " px a side are allowed.",
                            header->width_px, header->height_px, limits->side_max_px);
    if (limits->pixels_max != 0 && pixels > limits->pixels_max)
        return context_fail(context, IW_IMAGE_TOO_LARGE,
                            "The image has %" PRIu64 " pixels; at most %" PRIu64 " are allowed.", pixels,
                            limits->pixels_max);
    if (shorter < limits->side_min_px)
        return context_fail(context, IW_IMAGE_TOO_SMALL,
                            "The image is %" PRIu32 " x %" PRIu32 " px; at least %" PRIu32
                            " px a side are needed.",
                            header->width_px, header->height_px, limits->side_min_px);
    return codec_check_memory(context, limits, header);
}

enum iw_error codec_cut(struct context *context, size_t size)
{
    context->reason = "cut";
    return context_fail(context, IW_IMAGE_CORRUPT, "The file is cut off after %zu bytes; upload it again.",
                        size);
}

enum iw_error codec_damaged(struct context *context, const char *format)
{
    return context_fail(context, IW_IMAGE_CORRUPT,
                        "The %s image is damaged and cannot be decoded. Export it again and upload the new "
                        "file.",
                        format);
}

struct codec_keep *keep_new(void)
{
    struct arena *arena = arena_new((size_t)8 * codec_metadata_max_bytes);
    struct codec_keep *keep = arena_alloc(arena, sizeof *keep);
    keep->arena = arena;
    return keep;
}

static enum iw_error codec_picture_make(struct context *context, struct codec_picture *picture)
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

void keep_insert(struct codec_keep *keep, struct keep_chunk *behind, uint32_t tag, const void *data,
                 size_t size)
{
    struct keep_chunk *chunk = arena_alloc(keep->arena, sizeof *chunk);
    chunk->tag = tag;
    chunk->size = size;
    chunk->data = (unsigned char *)arena_text_n(keep->arena, data, size);
    chunk->next = behind == NULL ? keep->first : behind->next;
    *(behind == NULL ? &keep->first : &behind->next) = chunk;
    if (keep->last == behind)
        keep->last = chunk;
    keep->chunk_bytes += size;
}

enum iw_error keep_add(struct context *context, struct codec_keep *keep, uint32_t tag, bool is_after_pixels,
                       const void *data, size_t size)
{
    /* Small pieces cost memory too. */
    enum { piece_cost_bytes = 64 };
    if (size > codec_metadata_max_bytes - keep->chunk_bytes ||
        codec_metadata_max_bytes - keep->chunk_bytes - size < piece_cost_bytes)
        return context_fail(context, IW_IMAGE_TOO_LARGE,
                            "The metadata of the image takes more than %zu bytes; at most %d are allowed.",
                            keep->chunk_bytes + size, (int)codec_metadata_max_bytes);
    keep->chunk_bytes += piece_cost_bytes;
    keep_insert(keep, keep->last, tag, data, size);
    keep->last->is_after_pixels = is_after_pixels;
    return IW_OK;
}

bool codec_bytes_append(struct codec_bytes *bytes, size_t *capacity, const void *data, size_t size)
{
    enum { first_bytes = 64 * 1024 };
    if (size > *capacity - bytes->size) {
        size_t wanted = *capacity + *capacity / 2 + first_bytes;
        if (wanted < bytes->size + size)
            wanted = bytes->size + size;
        unsigned char *grown = realloc(bytes->data, wanted);
        if (grown == NULL)
            return false;
        bytes->data = grown;
        *capacity = wanted;
    }
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    return true;
}

/* ---- public ---- */

static enum iw_error driver_of(struct context *context, const void *data, size_t size,
                               const struct codec_driver **driver)
{
    *driver = drivers[sniff_format(data, size)];
    return *driver == NULL
               ? context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED, "%s", sniff_advice(data, size))
               : IW_OK;
}

enum iw_error codec_probe(struct context *context, const void *data, size_t size,
                          const struct codec_limits *limits, struct codec_header *header)
{
    const struct codec_driver *driver;
    memset(header, 0, sizeof *header);
    enum iw_error error = driver_of(context, data, size, &driver);
    return error != IW_OK ? error : driver->probe(context, data, size, limits, header);
}

/* 0: more than a palette holds. */
static unsigned colors_count(const struct image *image)
{
    struct palette palette;
    return palette_collect(image, &palette) ? palette.count : 0;
}

/* End the picture after its last readable row, with a note. IMAGE_CORRUPT: it has too few. */
static enum iw_error rows_crop(struct context *context, size_t size, struct codec_picture *picture)
{
    const struct keep_loss *loss = &picture->keep->loss;
    uint32_t height_px = picture->header.height_px;
    if (loss->rows_px < height_px && loss->rows_px < codec_partial_rows_least)
        return codec_cut(context, size);
    unsigned percent = (unsigned)((uint64_t)loss->rows_px * 100 / height_px);
    if (loss->rows_px < height_px)
        context_note(context, "IMAGE_INCOMPLETE", "The file is cut short: %u %% of its rows could be read%s.",
                     percent, loss->is_coarse ? ", some of them only in part" : "");
    else if (loss->is_coarse)
        context_note(context, "IMAGE_INCOMPLETE",
                     "The file is cut short or damaged: some of its rows could be read only in part.");
    picture->header.height_px = loss->rows_px;
    picture->image.height_px = loss->rows_px;
    return IW_OK;
}

enum iw_error codec_decode(struct context *context, const void *data, size_t size,
                           const struct codec_limits *limits, struct codec_picture *picture)
{
    const struct codec_driver *driver;
    memset(picture, 0, sizeof *picture);
    enum iw_error error = driver_of(context, data, size, &driver);
    if (error == IW_OK)
        error = driver->probe(context, data, size, limits, &picture->header);
    if (error == IW_OK)
        error = codec_picture_make(context, picture);
    if (error == IW_OK)
        error = driver->decode(context, data, size, limits, picture);
    if (error == IW_OK && limits->is_partial_allowed)
        error = rows_crop(context, size, picture);
    if (error == IW_OK && !limits->is_read_only)
        clean_picture(picture, data, size);
    if (error != IW_OK)
        codec_picture_free(picture);
    else if (!picture->header.is_lossy && !limits->is_read_only)
        picture->keep->color_count = colors_count(&picture->image);
    return error;
}

enum iw_error codec_decode_rows(struct context *context, const void *data, size_t size,
                                const struct codec_limits *limits, codec_rows_taker *taker, void *user)
{
    const struct codec_driver *driver;
    enum iw_error error = driver_of(context, data, size, &driver);
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

/* A lossless file of few colours is small because of them. Note it when the result has too many. */
static void growth_note(struct context *context, const struct codec_picture *picture)
{
    if (picture->keep->color_count == 0 || colors_count(&picture->image) != 0)
        return;
    context_note(context, "PALETTE_EXPANDED",
                 "The image had %u colours; the result has more than %d, the limit of a palette, so the file "
                 "is larger.",
                 picture->keep->color_count, (int)palette_colors_max);
}

enum iw_error codec_encode(struct context *context, const struct codec_picture *picture,
                           struct codec_bytes *bytes)
{
    memset(bytes, 0, sizeof *bytes);
    preview_render(picture);
    clean_note(context, picture->keep);
    enum iw_error error = drivers[picture->header.format]->encode(context, picture, bytes);
    if (error != IW_OK)
        codec_bytes_free(bytes);
    else
        growth_note(context, picture);
    return error;
}

enum iw_error codec_opt_out(struct context *context, struct codec_picture *picture)
{
    return packets_opt_out(context, picture);
}

void codec_picture_free(struct codec_picture *picture)
{
    free(picture->image.pixels);
    if (picture->keep != NULL) {
        free(picture->keep->jpeg.inks);
        free(picture->keep->jpeg.grid);
        arena_free(picture->keep->arena);
    }
    memset(picture, 0, sizeof *picture);
}

void codec_bytes_free(struct codec_bytes *bytes)
{
    free(bytes->data);
    bytes->data = NULL;
    bytes->size = 0;
}
