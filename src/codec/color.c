/* A grey picture as a picture of colours, for marks that grey cannot hold. */
#include "codec/color.h"

#include <stdlib.h>
#include <string.h>

#include "codec/driver.h"
#include "codec/space.h"

/* Copies grey into three channels, and alpha into the last. The samples have 8 or 16 bits. */
static void samples_copy(const struct image *grey, const struct image *color)
{
    size_t count = (size_t)grey->width_px * grey->height_px, bytes = grey->depth_bits / 8;
    const unsigned char *from = grey->pixels;
    unsigned char *to = color->pixels;
    for (; count > 0; count--, from += grey->channels * bytes, to += color->channels * bytes) {
        for (size_t c = 0; c < 3; c++)
            memcpy(to + c * bytes, from, bytes);
        memcpy(to + 3 * bytes, from + bytes, (color->channels - 3) * bytes);
    }
}

/* Converts the samples by a grey profile, which a picture of colours cannot have. */
static bool samples_convert(const struct image *grey, const struct image *color, cmsHPROFILE profile,
                            cmsContext lcms)
{
    cmsHPROFILE srgb = cmsCreate_sRGBProfileTHR(lcms);
    cmsUInt32Number shared = EXTRA_SH(grey->channels - 1) | BYTES_SH(grey->depth_bits / 8);
    cmsHTRANSFORM transform = cmsCreateTransformTHR(
        lcms, profile, (cmsUInt32Number)(COLORSPACE_SH(PT_GRAY) | CHANNELS_SH(1)) | shared, srgb,
        (cmsUInt32Number)(COLORSPACE_SH(PT_RGB) | CHANNELS_SH(3)) | shared, INTENT_PERCEPTUAL,
        cmsFLAGS_COPY_ALPHA);
    for (uint32_t y = 0; transform != NULL && y < grey->height_px; y++)
        cmsDoTransform(transform, (unsigned char *)grey->pixels + y * grey->stride_bytes,
                       (unsigned char *)color->pixels + y * color->stride_bytes, grey->width_px);
    if (transform != NULL)
        cmsDeleteTransform(transform);
    cmsCloseProfile(srgb);
    return transform != NULL;
}

/* Removes what describes grey samples, or is not true of sRGB. */
static void chunks_drop(struct codec_keep *keep, bool is_converted)
{
    static const struct {
        uint32_t tag;
        bool is_space; /* true of the unconverted samples */
    } dropped[] = {
        {KEEP_TAG('b', 'K', 'G', 'D'), false}, {KEEP_TAG('s', 'B', 'I', 'T'), false},
        {KEEP_TAG('i', 'C', 'C', 'P'), true},  {KEEP_TAG('g', 'A', 'M', 'A'), true},
        {KEEP_TAG('c', 'H', 'R', 'M'), true},  {keep_app0 + 2, true},
    };
    for (struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        for (size_t i = 0; i < sizeof dropped / sizeof dropped[0]; i++)
            if (chunk->tag == dropped[i].tag && (is_converted || !dropped[i].is_space))
                chunk->tag = 0;
    keep_sweep(keep);
}

/* Fills the samples of the colour picture. False if there is no memory. */
static bool samples_expand(const struct codec_picture *picture, const struct image *color, bool *is_converted)
{
    cmsContext lcms = cmsCreateContext(NULL, NULL);
    struct arena *arena = arena_new(0);
    cmsHPROFILE space = space_open(lcms, picture, arena);
    *is_converted = space != NULL && cmsGetColorSpace(space) == cmsSigGrayData;
    bool is_done = !*is_converted || samples_convert(&picture->image, color, space, lcms);
    if (!*is_converted)
        samples_copy(&picture->image, color);
    if (space != NULL)
        cmsCloseProfile(space);
    cmsDeleteContext(lcms);
    arena_free(arena);
    return is_done;
}

bool color_expand(struct codec_picture *picture, const struct codec_limits *limits)
{
    struct image *image = &picture->image;
    struct image color = *image;
    bool is_converted = false;
    uint64_t needed_bytes = 3 * picture->header.encode_memory_bytes +
                            (uint64_t)image->width_px * image->height_px * limits->engine.bytes_px;
    color.channels += 2;
    color.stride_bytes = image->stride_bytes / image->channels * color.channels;
    if (limits->memory_max_bytes != 0 && needed_bytes > limits->memory_max_bytes)
        return false;
    color.pixels = malloc(color.stride_bytes * color.height_px);
    if (color.pixels == NULL || !samples_expand(picture, &color, &is_converted)) {
        free(color.pixels);
        return false;
    }
    free(image->pixels);
    *image = color;
    picture->header.channels = color.channels;
    picture->header.encode_memory_bytes *= 3;
    chunks_drop(picture->keep, is_converted);
    if (picture->driver->color != NULL)
        picture->driver->color(picture->keep);
    return true;
}
