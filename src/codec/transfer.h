/* Finds a JPEG or WebP that was transferred or read as text. */
#ifndef CODEC_TRANSFER_H
#define CODEC_TRANSFER_H

#include <stddef.h>

#include "base/context.h"

/* IMAGE_CORRUPT when the compressed bytes show it. */
enum iw_error transfer_check(struct context *context, const unsigned char *data, size_t size) IW_MUST_USE;

#endif
