/* The thumbnail in the EXIF block. */
#ifndef CODEC_PREVIEW_H
#define CODEC_PREVIEW_H

#include "codec/picture.h"

/* Replaces the thumbnail that metadata/clean.c recorded by one of the current pixels, or removes it. */
void preview_render(const struct codec_picture *picture);

#endif
