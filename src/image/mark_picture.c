#include "image/mark_picture.h"

#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "codec/color.h"

/* The strongest mark within the visibility limit: every picture keeps 40 dB, also after encoding. */
static const double psnr_strongest_db = 40.4;

/*
 * Limit on the size of a result of higher quality: four times that at the file's own quality,
 * or a small size that covers lossless drawings.
 */
enum { growth_most = 4, growth_free_bytes = 256 * 1024 };

/*
 * The attempts in order. The mark of a grey picture has no underlay, so its texture can hide the mark at any
 * strength: it gets colours, which cost less than a higher quality.
 */
static const struct
try {
    bool is_compact; /* only for small files */
    bool is_strongest;
    bool is_colored; /* a grey picture gets colours */
    bool is_of_grey; /* for grey pictures only */
    unsigned finer;  /* level of codec_finer; 0: the file's quality */
}
tries[] = {
    {.is_compact = true},
    {.is_compact = true, .is_colored = true, .is_of_grey = true},
    {.is_compact = false},
    {.is_strongest = true},
    {.is_colored = true, .is_of_grey = true},
    {.is_strongest = true, .is_colored = true, .is_of_grey = true},
    {.is_strongest = true, .is_colored = true, .finer = 1},
    {.is_strongest = true, .is_colored = true, .finer = 2},
    {.is_strongest = true, .is_colored = true, .finer = 3},
};

enum { tries_count = sizeof tries / sizeof tries[0] };

/* State shared by the attempts. */
struct marking {
    struct context *context;
    const struct mark_order *order;
    struct codec_picture *picture;
    struct codec_bytes *bytes;
    struct watermark_report *report;
    size_t own_bytes; /* size of the result at the file's quality */
    bool is_grey;     /* the source */
    bool is_small;    /* the source, see limits.h */
    bool is_tried;    /* the picture is no longer as decoded */
    bool reads;
    bool is_over; /* no higher quality is available */
};

/* ---- reading back ---- */

/*
 * For a large JPEG the first quarter of the rows is decoded and read first, because decoding
 * takes most of the time. It counts only with twice the correlation that a reading needs (17: 2
 * dB a bit). The whole picture then reads even if the other three quarters are noise.
 */
enum { top_share = 4 };

static const uint64_t top_from_px = 2000000;
static const double top_correlation_least = 2 * 17.0;

/* The top rows of the encoded picture. */
struct top {
    struct image image;
    bool is_full;
};

static enum iw_error top_take(void *user, uint32_t first_row_px, const struct image *strip)
{
    struct top *top = user;
    uint32_t left = top->image.height_px - first_row_px;
    uint32_t rows = strip->height_px < left ? strip->height_px : left;
    memcpy((unsigned char *)top->image.pixels + first_row_px * top->image.stride_bytes, strip->pixels,
           rows * top->image.stride_bytes);
    top->is_full = rows == left;
    return top->is_full ? IW_TWIN_EXISTS : IW_OK; /* any error ends the decoding */
}

static enum iw_error taken(struct marking *marking, enum iw_error error, const struct watermark_report *seen)
{
    marking->reads = error == IW_OK;
    marking->report->correlation = seen->correlation;
    marking->report->attempts += seen->attempts;
    return error == IW_OK || error == IW_WATERMARK_NOT_FOUND ? IW_OK
                                                             : context_fail(marking->context, error, NULL);
}

static enum iw_error top_read_back(struct marking *marking)
{
    const struct mark_order *order = marking->order;
    const struct image *image = &marking->picture->image;
    struct top top = {.image = *image};
    struct watermark_report seen = {0};
    const struct codec_header *header = &marking->picture->header;
    if (!codec_reads_rows(marking->picture) || (uint64_t)header->width_px * header->height_px < top_from_px)
        return IW_OK;
    top.image.height_px = image->height_px / top_share;
    top.image.pixels = malloc(top.image.height_px * image->stride_bytes);
    if (top.image.pixels == NULL)
        return context_fail(marking->context, IW_NO_MEMORY, NULL);
    enum iw_error error = codec_decode_rows(marking->context, marking->bytes->data, marking->bytes->size,
                                            order->limits, top_take, &top);
    if (top.is_full)
        error = taken(marking,
                      watermark_verify(&top.image, image->height_px, order->key, order->number,
                                       top_correlation_least, &seen),
                      &seen);
    free(top.image.pixels);
    return error;
}

/* Decodes the encoded bytes into the picture, so that only one picture is in memory. */
static enum iw_error whole_read_back(struct marking *marking)
{
    const struct mark_order *order = marking->order;
    struct codec_picture *picture = marking->picture;
    struct codec_limits limits = *order->limits;
    struct watermark_report seen = {0};
    limits.engine.is_read_only = true;
    codec_picture_free(picture);
    enum iw_error error =
        codec_decode(marking->context, marking->bytes->data, marking->bytes->size, &limits, picture);
    if (error != IW_OK)
        return error;
    return taken(
        marking,
        watermark_verify(&picture->image, picture->image.height_px, order->key, order->number, 0, &seen),
        &seen);
}

/* ---- one attempt ---- */

static enum iw_error transparent_fail(struct context *context)
{
    return context_fail(context, IW_WATERMARK_NOT_EMBEDDABLE,
                        "The visible part of the picture is too small for a readable watermark; use a larger "
                        "picture or one with less transparency.");
}

static enum iw_error marked(struct marking *marking, const struct try *try)
{
    const struct image *image = &marking->picture->image;
    double bits_px = 8 * (double)marking->order->size / ((double)image->width_px * image->height_px);
    const struct watermark_embed_options options = {.psnr_db = try->is_strongest ? psnr_strongest_db : 0,
                                                    .file_bits_px = try->is_compact ? bits_px : 0};
    enum iw_error error = watermark_embed(&marking->picture->image, marking->order->key,
                                          marking->order->number, &options, marking->report);
    if (error == IW_WATERMARK_NOT_EMBEDDABLE && marking->is_grey && !try->is_colored)
        return error; /* not the last attempt */
    if (error == IW_WATERMARK_NOT_EMBEDDABLE)
        return transparent_fail(marking->context);
    return error == IW_OK ? IW_OK : context_fail(marking->context, error, NULL);
}

static enum iw_error tried(struct marking *marking, const struct try *try)
{
    const struct mark_order *order = marking->order;
    enum iw_error error = IW_OK;
    if (marking->is_tried) {
        codec_picture_free(marking->picture);
        error = codec_decode(marking->context, order->data, order->size, order->limits, marking->picture);
    }
    marking->is_tried = true;
    bool is_expanded = try->is_colored && marking->is_grey;
    if (error == IW_OK && is_expanded && !color_expand(marking->picture, order->limits)) {
        marking->is_over = !try->is_compact;
        return IW_OK;
    }
    if (error == IW_OK && try->finer > 0 && !codec_finer(marking->picture, try->finer, order->limits)) {
        marking->is_over = true;
        return IW_OK;
    }
    if (error == IW_OK)
        error = marked(marking, try);
    if (error == IW_WATERMARK_NOT_EMBEDDABLE && marking->context->error == IW_OK)
        return IW_OK;
    struct context_note **notes_end = &marking->context->notes;
    while (*notes_end != NULL)
        notes_end = &(*notes_end)->next;
    if (error == IW_OK)
        error = codec_encode(marking->context, marking->picture, marking->bytes);
    if (error != IW_OK)
        return error;
    if (try->finer == 0)
        marking->own_bytes = marking->bytes->size;
    bool is_grown =
        marking->bytes->size > growth_free_bytes && marking->bytes->size > growth_most * marking->own_bytes;
    if (!is_grown)
        error = top_read_back(marking);
    if (!is_grown && error == IW_OK && !marking->reads)
        error = whole_read_back(marking);
    if (error != IW_OK || !marking->reads) {
        bytes_free(marking->bytes);
        *notes_end = NULL; /* they are about a result that is not delivered */
    }
    return error;
}

static enum iw_error unreadable(struct marking *marking)
{
    if (image_has_alpha(&marking->picture->image))
        return transparent_fail(marking->context);
    const char *help = !marking->picture->header.is_lossy
                           ? "use a larger picture or one with more detail."
                           : "use a larger picture, one with more detail, or the same picture as PNG.";
    return context_fail(marking->context, IW_WATERMARK_NOT_EMBEDDABLE,
                        "The watermark cannot be read back from the encoded picture; %s", help);
}

enum iw_error mark_picture(struct context *context, const struct mark_order *order,
                           struct codec_picture *picture, struct codec_bytes *bytes,
                           struct watermark_report *report)
{
    struct marking marking = {.context = context,
                              .order = order,
                              .picture = picture,
                              .bytes = bytes,
                              .is_grey = picture->header.channels < 3,
                              .is_small = picture->header.is_small,
                              .report = report};
    enum iw_error error = IW_OK;
    unsigned try;
    memset(bytes, 0, sizeof *bytes);
    for (try = 0; try < tries_count && error == IW_OK && !marking.reads && !marking.is_over; try++)
        if ((marking.is_grey || !tries[try].is_of_grey) && (marking.is_small || !tries[try].is_compact))
            error = tried(&marking, &tries[try]);
    if (error != IW_OK)
        return error;
    if (!marking.reads)
        return unreadable(&marking);
    if (tries[try - 1].is_colored && marking.is_grey)
        context_note(context, "GREY_EXPANDED", message_grey_coloured);
    if (tries[try - 1].finer > 0)
        context_note(context, "ENCODED_FINER", message_encoded_finer, bytes->size, marking.own_bytes);
    return IW_OK;
}
