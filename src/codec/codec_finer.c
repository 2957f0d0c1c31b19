/* Encoder settings with a higher quality than the file's. */
#include <string.h>

#include "codec/codec.h"
#include "codec/metadata/keep.h"

/* Divisors of the quantisers per level; the last level has steps of 1. */
static const unsigned jpeg_divisors[] = {2, 4, UINT16_MAX};

/* Share of the distance from the file's quality to 100; above 1: lossless. */
static const float webp_ways[] = {0.5F, 0.85F, 2.0F};

/*
 * Memory of libwebp's lossless encoder in addition to the picture, bytes per pixel; measured,
 * see codec_webp.c.
 */
enum { webp_lossless_bytes_px = 28 };

static bool jpeg_finer(struct codec_picture *picture, unsigned level)
{
    struct keep_jpeg *keep = &picture->keep->jpeg;
    uint64_t width = picture->header.width_px + 16, height = picture->header.height_px + 16;
    if (level > sizeof jpeg_divisors / sizeof jpeg_divisors[0])
        return false;
    for (int c = 0; c < keep->component_count; c++) {
        keep->h_sampling[c] = keep->v_sampling[c] = 1;
        for (int i = 0; i < keep_quant_entries; i++) {
            unsigned finer = keep->quant[c][i] / jpeg_divisors[level - 1];
            keep->quant[c][i] = (uint16_t)(finer < 1 ? 1 : finer);
        }
    }
    keep->coefficient_bytes = width * height * (unsigned)keep->component_count * sizeof(int16_t);
    keep->is_unoptimised = false;
    unsigned inks = picture->header.is_cmyk ? 4 : 0;
    picture->header.encode_memory_bytes =
        (uint64_t)picture->header.width_px * picture->header.height_px * (picture->header.channels + inks) +
        keep->coefficient_bytes;
    return true;
}

static bool webp_finer(struct codec_picture *picture, unsigned level)
{
    float *quality = &picture->keep->webp.quality;
    if (level > sizeof webp_ways / sizeof webp_ways[0] || !picture->header.is_lossy)
        return false;
    if (webp_ways[level - 1] <= 1) {
        *quality += webp_ways[level - 1] * (100 - *quality);
        return true;
    }
    picture->header.is_lossy = false;
    picture->header.encode_memory_bytes = (uint64_t)picture->header.width_px * picture->header.height_px *
                                          (picture->header.channels + webp_lossless_bytes_px);
    return true;
}

static bool (*const finers[])(struct codec_picture *picture, unsigned level) = {
    [FORMAT_JPEG] = jpeg_finer, [FORMAT_PNG] = NULL, [FORMAT_WEBP] = webp_finer};

bool codec_finer(struct codec_picture *picture, unsigned level, const struct codec_limits *limits)
{
    bool (*finer)(struct codec_picture *, unsigned) = finers[picture->header.format];
    return finer != NULL && finer(picture, level) &&
           (limits->memory_max_bytes == 0 || picture->header.encode_memory_bytes <= limits->memory_max_bytes);
}
