/* A grey picture as a picture of colours, for marks that grey cannot hold. */
#ifndef CODEC_COLOR_H
#define CODEC_COLOR_H

#include "codec/picture.h"

/*
 * Gives a grey picture, as decoded, three equal colours. Samples with a grey profile are converted
 * to sRGB, and the profile is dropped.
 *
 * False if it needs more memory than the limits allow. The picture is then unchanged.
 */
bool color_expand(struct codec_picture *picture, const struct codec_limits *limits);

#endif
