/* Removes metadata that is not true of the result: a function for each format that is changed. */
#ifndef CODEC_METADATA_CLEAN_H
#define CODEC_METADATA_CLEAN_H

#include "codec/metadata/keep.h"

/* Removes it from the keep. data: the whole file. XMP packets follow in packets_clean. */
void clean_jpeg(struct codec_keep *keep, const unsigned char *data, size_t size);
void clean_png(struct codec_keep *keep, const unsigned char *data, size_t size);
void clean_webp(struct codec_keep *keep, const unsigned char *data, size_t size);

/* Notes the removed metadata. */
void clean_note(struct context *context, const struct codec_keep *keep);

#endif
