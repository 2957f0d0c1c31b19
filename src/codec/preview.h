/* The thumbnail in the EXIF block. */
#ifndef CODEC_PREVIEW_H
#define CODEC_PREVIEW_H

#include "codec/codec.h"
#include "codec/metadata/keep.h"

struct exif;

/*
 * Remove the previews of an EXIF block. If is_kept and the keep has none yet, a replaceable
 * thumbnail stays and is recorded in the keep.
 */
void preview_clean(struct codec_keep *keep, struct exif *exif, bool is_kept);

/* Replace the recorded thumbnail by one of the current pixels. */
void preview_render(const struct codec_picture *picture);

#endif
