/* The colour space that a file declares. */
#ifndef CODEC_SPACE_H
#define CODEC_SPACE_H

#include <lcms2.h>

#include "codec/picture.h"

/* The colour space that the file declares, as a profile of grey or RGB. NULL if it declares none, or sRGB. */
cmsHPROFILE space_open(cmsContext lcms, const struct codec_picture *picture, struct arena *arena);

#endif
