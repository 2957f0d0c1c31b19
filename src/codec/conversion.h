/* Conversion to sRGB by lcms2. */
#ifndef CODEC_CONVERSION_H
#define CODEC_CONVERSION_H

#include <lcms2.h>

#include <stdbool.h>
#include <stddef.h>

#include "codec/picture.h"

struct conversion {
    cmsContext lcms;
    cmsHPROFILE from;
    cmsHPROFILE to;          /* sRGB */
    cmsHTRANSFORM transform; /* NULL until the caller creates it */
};

/* Open the profiles. False: the profile is broken, or no memory. Call conversion_close in any case. */
bool conversion_open(struct conversion *conversion, const void *icc, size_t size);

/* The same from the colour space of a picture. False: it is sRGB, also by default, or no memory. */
bool conversion_open_picture(struct conversion *conversion, const struct codec_picture *picture,
                             struct arena *arena);

/* Free the transform, the profiles and the context. */
void conversion_close(struct conversion *conversion);

#endif
