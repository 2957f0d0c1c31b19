/*
 * Damaged copies of pictures, the same for the same number: bits and bytes
 * changed, pieces moved, ends cut off, headers before all.
 */
#ifndef UNIT_MUTATION_H
#define UNIT_MUTATION_H

#include "codec/codec.h"

/* A copy with one to six damages, in memory of its own size; freed by codec_bytes_free. */
struct codec_bytes mutation_make(const struct codec_bytes *file, enum codec_format format, unsigned seed);

#endif
