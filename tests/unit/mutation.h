/*
 * Makes damaged copies of pictures, reproducible by number. Bits and bytes are changed, pieces
 * moved and ends removed, mostly in headers.
 */
#ifndef UNIT_MUTATION_H
#define UNIT_MUTATION_H

#include "codec/codec.h"

/* A copy with one to six damages in an exact allocation; freed by bytes_free. */
struct codec_bytes mutation_make(const struct codec_bytes *file, enum format format, unsigned seed);

#endif
