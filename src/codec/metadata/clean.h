/* Removes metadata that is not true of the result. */
#ifndef CODEC_METADATA_CLEAN_H
#define CODEC_METADATA_CLEAN_H

#include "codec/codec.h"
#include "codec/metadata/keep.h"

/* Remove metadata that is not true of the result. data: the whole file. */
void clean_picture(struct codec_picture *picture, const unsigned char *data, size_t size);

/* Note the removed metadata. */
void clean_note(struct context *context, const struct codec_keep *keep);

#endif
