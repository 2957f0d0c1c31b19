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

/* Opens the profiles. False if the profile is broken or there is no memory. conversion_close follows in any
 * case. */
bool conversion_open(struct conversion *conversion, const void *icc, size_t size);

/* The same from the colour space of a picture. False if it is sRGB, also by default, or there is no memory.
 */
bool conversion_open_picture(struct conversion *conversion, const struct codec_picture *picture,
                             struct arena *arena);

/* Frees the transform, the profiles and the context. */
void conversion_close(struct conversion *conversion);

#endif
