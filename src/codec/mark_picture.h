/*
 * A picture's bytes through the watermark engine to encoded bytes that carry
 * the mark for certain: the encoded bytes are decoded and read before they
 * count.  Used by the image process and by imgwardctl.  Opens no file; knows no
 * orders and no jobs.
 */
#ifndef CODEC_MARK_PICTURE_H
#define CODEC_MARK_PICTURE_H

#include <imgward/watermark.h>

#include "codec/codec.h"

struct mark_order {
    const void *data; /* the picture as it came */
    size_t size;
    const struct codec_limits *limits; /* those that it was decoded with */
    const uint8_t *key;                /* WATERMARK_KEY_BYTES */
    uint64_t number;
};

/*
 * Marks the decoded picture, encodes it and reads the number from the encoded
 * bytes.  When it does not read, tries again: first stronger, then at higher
 * qualities, which a note ENCODED_FINER on the result tells.  Each try begins
 * with order->data; picture is decoded from it at the start.
 *
 * On success picture is the result, as marked or as decoded from the bytes, and
 * the caller owns the bytes.  WATERMARK_NOT_EMBEDDABLE when no try reads; else the errors of the
 * codecs.  Never holds two pictures at once, only a quarter beside one.
 */
enum iw_error mark_picture(struct context *context, const struct mark_order *order,
                           struct codec_picture *picture, struct codec_bytes *bytes,
                           struct watermark_report *report) IW_MUST_USE;

#endif
