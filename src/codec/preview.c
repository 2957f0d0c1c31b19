/*
 * Replaces the EXIF thumbnail by one of the result, in the same place and with the quantisers
 * and sampling of the old thumbnail. If the new one does not fit, the thumbnail is removed.
 */
#include "codec/preview.h"

#include <stdio.h>
#include <jpeglib.h>

#include <stdlib.h>
#include <string.h>

#include "codec/driver.h"
#include "codec/metadata/exif.h"
#include "codec/thumbnail.h"

/* EXIF says 160 x 120; some writers exceed that. */
enum { thumbnail_side_max_px = 1024 };

/*
 * Decodes the thumbnail of the file to learn its encoding, once: it is overwritten later. False if it
 * cannot be replaced.
 */
static bool thumbnail_learn(struct keep_thumbnail *thumbnail)
{
    static const struct codec_limits limits = {.side_max_px = thumbnail_side_max_px,
                                               .engine.is_read_only = true};
    struct context context;
    struct codec_picture picture = {.image = {0}};
    if (thumbnail->is_learned)
        return true;
    struct arena *arena = arena_new(0);
    context_init(&context, arena, NULL);
    const unsigned char *data = thumbnail->exif.bytes + thumbnail->place.at;
    if (driver_decode(&context, &jpeg_driver, data, thumbnail->place.room, &limits, &picture) == IW_OK) {
        thumbnail->width_px = picture.header.width_px;
        thumbnail->height_px = picture.header.height_px;
        thumbnail->channels = picture.header.channels;
        thumbnail->jpeg = picture.keep->jpeg;
        thumbnail->is_learned =
            thumbnail->jpeg.color_space == JCS_GRAYSCALE || thumbnail->jpeg.color_space == JCS_YCbCr;
    }
    free(picture.image.pixels);
    keep_free(picture.keep);
    arena_free(arena);
    return thumbnail->is_learned;
}

/* The largest size with the picture's aspect within the old thumbnail. */
static void thumbnail_fit(const struct image *image, uint32_t *width_px, uint32_t *height_px)
{
    uint64_t wide = (uint64_t)image->width_px * *height_px;
    uint64_t tall = (uint64_t)image->height_px * *width_px;
    if (wide > tall)
        *height_px = (uint32_t)((tall + image->width_px / 2) / image->width_px);
    else
        *width_px = (uint32_t)((wide + image->height_px / 2) / image->height_px);
    *width_px += *width_px == 0;
    *height_px += *height_px == 0;
}

/*
 * Encodes into the available room; each attempt increases the quantisers by a quarter. False if
 * it never fits.
 */
static bool preview_encode(struct context *context, struct codec_picture *small,
                           const struct keep_thumbnail *thumbnail)
{
    enum { tries_max = 8, quantiser_max = 255 }; /* finally six times as large; more leaves nothing visible */
    bool is_done = false;
    for (int try = 0; try < tries_max && !is_done; try++) {
        struct codec_bytes bytes = {NULL, 0};
        if (jpeg_driver.encode(context, small, &bytes) != IW_OK) {
            bytes_free(&bytes);
            return false;
        }
        is_done = bytes.size <= thumbnail->place.room;
        if (is_done) {
            memcpy(thumbnail->exif.bytes + thumbnail->place.at, bytes.data, bytes.size);
            exif_thumbnail_set(&thumbnail->exif, &thumbnail->place, bytes.size, small->image.width_px,
                               small->image.height_px);
        }
        bytes_free(&bytes);
        for (int c = 0; c < keep_components_max; c++)
            for (int i = 0; i < keep_quant_entries; i++) {
                unsigned quantiser = small->keep->jpeg.quant[c][i] * 5U / 4U + 1;
                small->keep->jpeg.quant[c][i] =
                    (uint16_t)(quantiser > quantiser_max ? quantiser_max : quantiser);
            }
    }
    return is_done;
}

static bool thumbnail_make(const struct codec_picture *picture, const struct keep_thumbnail *thumbnail)
{
    struct context context;
    struct codec_picture small = {.driver = &jpeg_driver};
    uint32_t width_px = thumbnail->width_px;
    uint32_t height_px = thumbnail->height_px;
    thumbnail_fit(&picture->image, &width_px, &height_px);
    unsigned char *samples = thumbnail_rgb(picture, width_px, height_px);
    if (samples == NULL)
        return false;
    for (size_t i = 0; thumbnail->channels == 1 && i < (size_t)width_px * height_px; i++)
        samples[i] = (unsigned char)((299U * samples[3 * i] + 587U * samples[3 * i + 1] +
                                      114U * samples[3 * i + 2] + 500U) /
                                     1000U);
    small.image = (struct image){
        width_px, height_px, thumbnail->channels, 8, (size_t)width_px * thumbnail->channels, samples};
    small.keep = keep_new();
    small.keep->jpeg = thumbnail->jpeg;
    context_init(&context, small.keep->arena, NULL);
    bool is_done = preview_encode(&context, &small, thumbnail);
    free(samples);
    keep_free(small.keep);
    return is_done;
}

void preview_render(const struct codec_picture *picture)
{
    struct codec_keep *keep = picture->keep;
    struct keep_thumbnail *thumbnail = keep->thumbnail;
    if (thumbnail == NULL || (thumbnail_learn(thumbnail) && thumbnail_make(picture, thumbnail)))
        return;
    /* IFD0 may have lost a field since then. */
    struct exif exif;
    if (exif_open(&exif, thumbnail->exif.bytes, thumbnail->exif.size)) {
        exif_chain_cut(&exif);
        exif_previews_blank(&exif, NULL);
    }
    keep->left_out |= KEEP_LEFT_PREVIEW;
    keep->thumbnail = NULL;
}
