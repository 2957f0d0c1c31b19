/* The meaning of the kept pieces. */
#ifndef CODEC_METADATA_META_H
#define CODEC_METADATA_META_H

#include "codec/codec.h"
#include "codec/metadata/keep.h"

/* The ICC profile, in the arena. NULL: none, or it is broken; not of formats that are only read. */
const unsigned char *meta_icc(struct arena *arena, const struct codec_picture *picture, size_t *size);

/* The EXIF orientation, 1..8; 1: unknown. */
unsigned meta_orientation(const struct codec_picture *picture);

/* True: the segment of a JPEG begins like an EXIF block. */
bool meta_is_exif(const struct keep_chunk *chunk);

#endif
