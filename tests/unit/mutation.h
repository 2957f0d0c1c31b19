/*
 * Makes damaged copies of pictures. The number of a copy determines the damage: changed bits and
 * bytes, moved pieces, removed ends, mostly in headers.
 */
#ifndef UNIT_MUTATION_H
#define UNIT_MUTATION_H

#include "codec/codec.h"

/* Returns a copy with one to six damages in an exact allocation; free it with bytes_free. */
struct codec_bytes mutation_make(const struct codec_bytes *file, enum format format, unsigned seed);

#endif
