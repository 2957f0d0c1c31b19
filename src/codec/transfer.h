/* Finds a JPEG or WebP that was transferred or read as text. */
#ifndef CODEC_TRANSFER_H
#define CODEC_TRANSFER_H

#include <stddef.h>

#include "base/context.h"

/* The compressed bytes of a file; empty: there are none. */
struct transfer_bytes {
    const unsigned char *data;
    size_t size;
};

/* IMAGE_CORRUPT if the compressed bytes show it. title: "JPEG" and so on. */
enum iw_error transfer_check(struct context *context, const struct transfer_bytes *bytes,
                             const char *title) IW_MUST_USE;

#endif
