/*
 * Bytes that claim to be a picture of one format: decoded under tight limits,
 * marked, encoded, decoded again.  A target includes this once and names its
 * format.
 */
#ifndef FUZZ_CODEC_HARNESS_H
#define FUZZ_CODEC_HARNESS_H

#include <stddef.h>

#include "codec/codec.h"

/* Bytes of another format are not looked at: each target keeps to its own codec. */
void harness_picture(enum format format, const unsigned char *data, size_t size);

#endif
