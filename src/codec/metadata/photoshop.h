/* Thumbnails of Photoshop's image resource blocks. */
#ifndef CODEC_METADATA_PHOTOSHOP_H
#define CODEC_METADATA_PHOTOSHOP_H

#include "codec/metadata/keep.h"

/* Removes thumbnails from image resource blocks. Returns the remaining size. is_changed is set if there was a
 * thumbnail. */
size_t photoshop_clean(unsigned char *data, size_t size, bool *is_changed);

/* The same for the APP13 segments of a JPEG, which split the blocks. */
void photoshop_segments_clean(struct codec_keep *keep);

#endif
