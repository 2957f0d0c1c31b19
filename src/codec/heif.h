/* The decoders of HEIC and AVIF. */
#ifndef CODEC_HEIF_H
#define CODEC_HEIF_H

/*
 * Load the decoders of HEIC and AVIF, which are plugins of libheif. A process calls it before it is sealed;
 * otherwise the first such picture does it.
 */
void heif_prepare(void);

#endif
