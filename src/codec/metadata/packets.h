/* Every XMP packet of a picture. */
#ifndef CODEC_METADATA_PACKETS_H
#define CODEC_METADATA_PACKETS_H

#include "codec/codec.h"
#include "codec/metadata/keep.h"

/* Remove entries that refer to dropped data. */
void packets_clean(struct codec_picture *picture);

/* Set the opt-out in all packets. IMAGE_TOO_LARGE: a JPEG segment cannot hold it. */
enum iw_error packets_opt_out(struct context *context, struct codec_picture *picture) IW_MUST_USE;

#endif
