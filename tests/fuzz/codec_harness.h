/*
 * Decodes bytes as a picture of one format with small limits, watermarks it, encodes it and
 * decodes it again. Each target includes this file once and defines its format.
 */
#ifndef FUZZ_CODEC_HARNESS_H
#define FUZZ_CODEC_HARNESS_H

#include <stddef.h>

#include "codec/codec.h"

/* Ignores bytes of another format, because each target tests one codec only. */
void harness_picture(enum format format, const unsigned char *data, size_t size);

/* Ignores bytes of JPEG, PNG and WebP. */
void harness_reading(const unsigned char *data, size_t size);

#endif
