#include "codec/conversion.h"

#include "codec/space.h"

bool conversion_open(struct conversion *conversion, const void *icc, size_t size)
{
    cmsContext lcms = cmsCreateContext(NULL, NULL);
    *conversion = (struct conversion){
        .lcms = lcms,
        .from = cmsOpenProfileFromMemTHR(lcms, icc, (cmsUInt32Number)size),
        .to = cmsCreate_sRGBProfileTHR(lcms),
    };
    return conversion->from != NULL && conversion->to != NULL;
}

bool conversion_open_picture(struct conversion *conversion, const struct codec_picture *picture,
                             struct arena *arena)
{
    cmsContext lcms = cmsCreateContext(NULL, NULL);
    *conversion = (struct conversion){
        .lcms = lcms,
        .from = space_open(lcms, picture, arena),
        .to = cmsCreate_sRGBProfileTHR(lcms),
    };
    return conversion->from != NULL && conversion->to != NULL;
}

void conversion_close(struct conversion *conversion)
{
    if (conversion->transform != NULL)
        cmsDeleteTransform(conversion->transform);
    if (conversion->from != NULL)
        cmsCloseProfile(conversion->from);
    if (conversion->to != NULL)
        cmsCloseProfile(conversion->to);
    cmsDeleteContext(conversion->lcms);
}
