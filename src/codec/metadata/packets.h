/* Every XMP packet of a picture. */
#ifndef CODEC_METADATA_PACKETS_H
#define CODEC_METADATA_PACKETS_H

#include "codec/metadata/keep.h"

/* Where a format has XMP. */
struct packets_place;
extern const struct packets_place packets_jpeg;
extern const struct packets_place packets_png;
extern const struct packets_place packets_webp;

/* Removes entries that refer to dropped data. */
void packets_clean(struct codec_keep *keep, const struct packets_place *place);

/* Sets the opt-out in all packets. IMAGE_TOO_LARGE if a JPEG segment cannot hold a packet. */
enum iw_error packets_opt_out(struct context *context, struct codec_keep *keep,
                              const struct packets_place *place) IW_MUST_USE;

#endif
