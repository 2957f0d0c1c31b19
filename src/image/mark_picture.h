/*
 * Embeds the watermark in a picture and encodes it. The encoded bytes are decoded and read
 * back, so the mark is verified. Used by the image process and imgwardctl. Opens no files.
 */
#ifndef IMAGE_MARK_PICTURE_H
#define IMAGE_MARK_PICTURE_H

#include "codec/codec.h"
#include "engine/watermark/watermark.h"

struct mark_order {
    const void *data; /* the original file */
    size_t size;
    const struct codec_limits *limits; /* limits of decoding */
    const uint8_t *key;                /* WATERMARK_KEY_BYTES */
    uint64_t number;
};

/*
 * Marks the decoded picture, encodes it and reads the number from the encoded bytes. If it does
 * not read, the next attempt follows: first stronger, then a grey picture with colours (note GREY_EXPANDED),
 * then at higher qualities (note ENCODED_FINER). Each attempt decodes order->data again; picture holds it at
 * the start.
 *
 * On success picture is the result, as marked or as decoded from the bytes, and the caller owns
 * the bytes. WATERMARK_NOT_EMBEDDABLE if no attempt reads. Otherwise the codecs' errors. Memory:
 * one picture and a quarter.
 */
enum iw_error mark_picture(struct context *context, const struct mark_order *order,
                           struct codec_picture *picture, struct codec_bytes *bytes,
                           struct watermark_report *report) IW_MUST_USE;

#endif
