/* Conversion from an ICC profile to sRGB by lcms2. Private to codec_cmyk.c and thumbnail.c. */
#ifndef CODEC_CODEC_CONVERSION_H
#define CODEC_CODEC_CONVERSION_H

#include <lcms2.h>

#include <stdbool.h>
#include <stddef.h>

struct conversion {
    cmsContext lcms;
    cmsHPROFILE from;
    cmsHPROFILE to;          /* sRGB */
    cmsHTRANSFORM transform; /* NULL until the caller creates it */
};

/* Open the profiles. False: the profile is broken, or no memory. Call conversion_close in any case. */
bool conversion_open(struct conversion *conversion, const void *icc, size_t size);

/* Free the transform, the profiles and the context. */
void conversion_close(struct conversion *conversion);

#endif
