/* The parts that all codecs share: checks of a header, kept pieces, growing bytes, memory of a picture. */
#include "codec/codec_keep.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct picture_load load_of(const struct codec_header *header)
{
    enum { inks = 4 };
    uint64_t pixels = (uint64_t)header->width_px * header->height_px;
    unsigned bytes_px = header->channels * (header->depth_bits / 8) + (header->is_cmyk ? inks : 0);
    return (struct picture_load){header->width_px, header->height_px, pixels * bytes_px,
                                 header->decode_memory_bytes, header->encode_memory_bytes};
}

void codec_memory(struct codec_header *header)
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

bool codec_fits(const struct codec_limits *limits, const struct codec_header *header)
{
    const struct picture_load load = load_of(header);
    return limits->memory_max_bytes == 0 ||
           picture_work_bytes(&load, &limits->engine) <= limits->memory_max_bytes;
}

enum iw_error codec_check_animation(struct context *context, const struct codec_limits *limits,
                                    const struct codec_header *header)
{
    if (header->is_animated && !limits->engine.is_read_only)
        return context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED,
                            "The image is an animation of %" PRIu32 " frame%s, which is not supported. Save "
                            "each frame that you need as a still image and upload these.",
                            header->frame_count, header->frame_count == 1 ? "" : "s");
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
    const struct picture_load load = load_of(header);
    return picture_check_memory(context, &load, &limits->engine, limits->memory_max_bytes);
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

bool keep_starts_with(const struct keep_chunk *chunk, const void *bytes, size_t size)
{
    return chunk->size >= size && memcmp(chunk->data, bytes, size) == 0;
}

struct codec_keep *keep_new(void)
{
    struct arena *arena = arena_new((size_t)8 * codec_metadata_max_bytes);
    struct codec_keep *keep = arena_alloc(arena, sizeof *keep);
    keep->arena = arena;
    return keep;
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

void keep_sweep(struct codec_keep *keep)
{
    keep->last = NULL;
    for (struct keep_chunk **at = &keep->first; *at != NULL;) {
        if ((*at)->tag == 0) {
            *at = (*at)->next;
            continue;
        }
        keep->last = *at;
        at = &(*at)->next;
    }
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

void codec_bytes_free(struct codec_bytes *bytes)
{
    free(bytes->data);
    bytes->data = NULL;
    bytes->size = 0;
}
