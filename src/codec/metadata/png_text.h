/* The text chunks of a PNG: tEXt, zTXt, iTXt, and the profiles that programs store in them. */
#ifndef CODEC_METADATA_PNG_TEXT_H
#define CODEC_METADATA_PNG_TEXT_H

#include "codec/metadata/keep.h"

/* Inflates at most size_max bytes into the arena. NULL if they are broken or inflate to more. */
unsigned char *png_text_inflate(struct arena *arena, const unsigned char *data, size_t size, size_t size_max,
                                size_t *size_out);

/* True if the chunk has one of the three kinds. */
bool png_text_is(const struct keep_chunk *chunk);

/* The text of a chunk, at most max bytes. NULL if it is unavailable. */
const unsigned char *png_text_read(struct arena *arena, const struct keep_chunk *chunk, size_t max,
                                   size_t *size);

/* The raw profile in the hexadecimal digits of a PNG text chunk, in the arena. NULL if there is none. */
unsigned char *png_text_profile(struct arena *arena, const struct keep_chunk *chunk, size_t *size);

/* Stores these bytes in the chunk as a raw profile of the same name. */
void png_text_profile_put(struct codec_keep *keep, struct keep_chunk *chunk, const unsigned char *data,
                          size_t size);

#endif
