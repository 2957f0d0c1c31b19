#include "codec_harness.h"

#include <stdlib.h>
#include <string.h>

#include "codec/thumbnail.h"
#include "model/sniff.h"
#include "service/files/header.h"

static const struct codec_limits limits = {
    .pixels_max = 1 << 18, .side_max_px = 2048, .side_min_px = 1, .memory_max_bytes = (uint64_t)64 << 20};

static const struct codec_limits partial = {.pixels_max = 1 << 18,
                                            .side_max_px = 2048,
                                            .side_min_px = 1,
                                            .memory_max_bytes = (uint64_t)64 << 20,
                                            .engine.is_read_only = true,
                                            .formats_more = ~0U,
                                            .is_partial_allowed = true};

/* Aborts unless our encoder's output decodes to the same shape. */
static void again(struct context *context, struct codec_picture *picture)
{
    struct codec_bytes bytes = {0};
    struct codec_picture second = {0};
    if (codec_encode(context, picture, &bytes) != IW_OK)
        return;
    if (codec_decode(context, bytes.data, bytes.size, &limits, &second) != IW_OK)
        abort();
    if (second.image.width_px != picture->image.width_px ||
        second.image.height_px != picture->image.height_px ||
        second.image.channels != picture->image.channels ||
        second.image.depth_bits != picture->image.depth_bits)
        abort();
    codec_picture_free(&second);
    bytes_free(&bytes);
}

static void thumbnail(struct context *context, struct codec_picture *picture)
{
    struct codec_bytes bytes = {0};
    if (thumbnail_webp(context, picture, 16, &bytes) == IW_OK)
        bytes_free(&bytes);
    context_clear(context);
}

/* A global sum, so that the compiler keeps the reads. */
static volatile unsigned rows_sum;

/* Sums all bytes of the rows, so that a sanitizer detects missing rows. */
static enum iw_error rows_take(void *user, uint32_t first_row_px, const struct image *strip)
{
    unsigned *sum = user;
    (void)first_row_px;
    for (uint32_t y = 0; y < strip->height_px; y++)
        *sum += ((const unsigned char *)strip->pixels)[(y + 1) * strip->stride_bytes - 1];
    return IW_OK;
}

/* The header that the pool reads must not need more memory than the codec; otherwise a good upload is
 * refused. */
static void header_compare(const struct codec_header *wanted, const unsigned char *data, size_t size)
{
    struct header header = {.form.format = sniff_format(data, size)};
    if (!header_add(&header, data, size))
        return;
    const struct picture_load load = picture_load(&header.form);
    if (header.form.width_px != wanted->width_px || header.form.height_px != wanted->height_px ||
        load.decode_bytes > wanted->decode_memory_bytes)
        abort();
}

void harness_picture(enum format format, const unsigned char *data, size_t size)
{
    struct context context;
    struct codec_header header;
    struct codec_picture picture = {0};
    unsigned sum = 0;
    struct arena *arena = arena_new(0);
    context_init(&context, arena, NULL);
    bool is_ours = codec_probe(&context, data, size, &limits, &header) == IW_OK && header.format == format;
    context_clear(&context);
    if (is_ours && codec_decode(&context, data, size, &limits, &picture) == IW_OK) {
        header_compare(&header, data, size);
        thumbnail(&context, &picture);
        if (codec_opt_out(&context, &picture) == IW_OK)
            again(&context, &picture);
        codec_picture_free(&picture);
        context_clear(&context);
        if (codec_decode_rows(&context, data, size, &limits, rows_take, &sum) != IW_OK)
            context_clear(&context);
    }
    if (is_ours && codec_decode(&context, data, size, &partial, &picture) == IW_OK) {
        rows_take(&sum, 0, &picture.image);
        thumbnail(&context, &picture);
        codec_picture_free(&picture);
    }
    rows_sum = sum;
    arena_free(arena);
}

void harness_reading(const unsigned char *data, size_t size)
{
    struct context context;
    struct codec_picture picture = {0};
    unsigned sum = 0;
    enum format format = sniff_format(data, size);
    struct arena *arena = arena_new(0);
    context_init(&context, arena, NULL);
    bool is_ours = format != FORMAT_NONE && !format_is_picture(format);
    if (is_ours && codec_decode(&context, data, size, &partial, &picture) == IW_OK) {
        rows_take(&sum, 0, &picture.image);
        thumbnail(&context, &picture);
        codec_picture_free(&picture);
    }
    rows_sum = sum;
    arena_free(arena);
}
