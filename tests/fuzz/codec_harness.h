/*
 * Decodes bytes as a picture of one format with small limits, watermarks it, encodes it and
 * decodes it again. Each target includes this file once and defines its format.
 */
#ifndef FUZZ_CODEC_HARNESS_H
#define FUZZ_CODEC_HARNESS_H

#include <stddef.h>

#include "codec/codec.h"

/* Bytes of another format are ignored: each target tests its codec only. */
void harness_picture(enum format format, const unsigned char *data, size_t size);

/* Bytes of JPEG, PNG and WebP are ignored. */
void harness_reading(const unsigned char *data, size_t size);

#endif
