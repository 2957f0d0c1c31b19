/* Thumbnails: area average, conversion to sRGB, orientation, WebP. */
#include "codec/thumbnail.h"

#include <webp/encode.h>

#include <stdlib.h>
#include <string.h>

#include "codec/conversion.h"
#include "codec/driver.h"

static const float thumbnail_quality = 80;

/* 8-bit RGBA; pixels are allocated with malloc. */
struct thumbnail {
    uint32_t width_px;
    uint32_t height_px;
    unsigned char *pixels;
};

static unsigned sample_8(const struct image *image, const unsigned char *row, size_t index)
{
    if (image->depth_bits == 8)
        return row[index];
    uint16_t sample;
    memcpy(&sample, row + 2 * index, sizeof sample);
    return sample >> 8;
}

/* Mean of every step-th pixel and row of x0..x1, y0..y1. Colours are weighted by alpha. */
static void box_mean(const struct image *image, const uint32_t x[2], const uint32_t y[2], uint32_t step,
                     unsigned char rgba[4])
{
    uint64_t count = 0;
    uint64_t sum[4] = {0, 0, 0, 0};
    bool has_alpha = image_has_alpha(image);
    for (uint32_t row = y[0]; row < y[1]; row += step) {
        const unsigned char *samples = (const unsigned char *)image->pixels + row * image->stride_bytes;
        for (size_t i = (size_t)x[0] * image->channels; i < (size_t)x[1] * image->channels;
             i += (size_t)step * image->channels) {
            count++;
            unsigned alpha = has_alpha ? sample_8(image, samples, i + image->channels - 1) : 255;
            for (uint32_t c = 0; c < 3; c++)
                sum[c] += (uint64_t)alpha * sample_8(image, samples, i + (image_has_color(image) ? c : 0));
            sum[3] += alpha;
        }
    }
    for (int c = 0; c < 3; c++)
        rgba[c] = (unsigned char)(sum[3] == 0 ? 0 : (sum[c] + sum[3] / 2) / sum[3]);
    rgba[3] = (unsigned char)((sum[3] + count / 2) / count);
}

/* Reduces to the thumbnail's size. False if there is no memory. */
static bool thumbnail_shrink_to(const struct image *image, uint32_t step, struct thumbnail *thumbnail)
{
    thumbnail->pixels = malloc((size_t)thumbnail->width_px * thumbnail->height_px * 4);
    if (thumbnail->pixels == NULL)
        return false;
    unsigned char *rgba = thumbnail->pixels;
    for (uint32_t y = 0; y < thumbnail->height_px; y++)
        for (uint32_t x = 0; x < thumbnail->width_px; x++, rgba += 4) {
            uint32_t columns[2] = {(uint32_t)((uint64_t)x * image->width_px / thumbnail->width_px),
                                   (uint32_t)((uint64_t)(x + 1) * image->width_px / thumbnail->width_px)};
            uint32_t rows[2] = {(uint32_t)((uint64_t)y * image->height_px / thumbnail->height_px),
                                (uint32_t)((uint64_t)(y + 1) * image->height_px / thumbnail->height_px)};
            columns[1] += columns[1] == columns[0];
            rows[1] += rows[1] == rows[0];
            box_mean(image, columns, rows, step, rgba);
        }
    return true;
}

static bool thumbnail_shrink(const struct image *image, uint32_t side_px, struct thumbnail *thumbnail)
{
    uint32_t longer = image->width_px > image->height_px ? image->width_px : image->height_px;
    uint32_t wanted = longer > side_px ? side_px : longer;
    uint32_t width = (uint32_t)(((uint64_t)image->width_px * wanted + longer / 2) / longer);
    uint32_t height = (uint32_t)(((uint64_t)image->height_px * wanted + longer / 2) / longer);
    thumbnail->width_px = width == 0 ? 1 : width;
    thumbnail->height_px = height == 0 ? 1 : height;
    return thumbnail_shrink_to(image, 1, thumbnail);
}

/* A grey profile takes one channel; a grey thumbnail's channels are equal. */
static void thumbnail_to_srgb(struct thumbnail *thumbnail, const struct codec_picture *picture,
                              struct arena *arena)
{
    struct conversion conversion;
    bool is_open = conversion_open_picture(&conversion, picture, arena);
    bool is_grey = is_open && cmsGetColorSpace(conversion.from) == cmsSigGrayData;
    cmsUInt32Number layout =
        is_grey ? (COLORSPACE_SH(PT_GRAY) | CHANNELS_SH(1) | EXTRA_SH(3) | BYTES_SH(1)) : TYPE_RGBA_8;
    if (is_open)
        conversion.transform = cmsCreateTransformTHR(conversion.lcms, conversion.from, layout, conversion.to,
                                                     TYPE_RGBA_8, INTENT_PERCEPTUAL, cmsFLAGS_NOCACHE);
    size_t count = (size_t)thumbnail->width_px * thumbnail->height_px;
    unsigned char *out = conversion.transform == NULL ? NULL : calloc(count, 4);
    if (out != NULL) {
        cmsDoTransform(conversion.transform, thumbnail->pixels, out, (cmsUInt32Number)count);
        for (size_t i = 0; i < count; i++)
            memcpy(thumbnail->pixels + 4 * i, out + 4 * i, 3);
    }
    free(out);
    conversion_close(&conversion);
}

/* EXIF orientations: swap the axes first, then mirror. */
static const struct {
    bool is_swapped;
    bool is_mirrored_x;
    bool is_mirrored_y;
} turns[9] = {[2] = {false, true, false}, [3] = {false, true, true}, [4] = {false, false, true},
              [5] = {true, false, false}, [6] = {true, true, false}, [7] = {true, true, true},
              [8] = {true, false, true}};

static bool thumbnail_turn(struct thumbnail *thumbnail, unsigned orientation)
{
    uint32_t width = turns[orientation].is_swapped ? thumbnail->height_px : thumbnail->width_px;
    uint32_t height = turns[orientation].is_swapped ? thumbnail->width_px : thumbnail->height_px;
    unsigned char *out = malloc((size_t)width * height * 4);
    if (out == NULL)
        return false;
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            uint32_t across = turns[orientation].is_mirrored_x ? width - 1 - x : x;
            uint32_t down = turns[orientation].is_mirrored_y ? height - 1 - y : y;
            uint32_t from_x = turns[orientation].is_swapped ? down : across;
            uint32_t from_y = turns[orientation].is_swapped ? across : down;
            memcpy(out + 4 * ((size_t)y * width + x),
                   thumbnail->pixels + 4 * ((size_t)from_y * thumbnail->width_px + from_x), 4);
        }
    free(thumbnail->pixels);
    *thumbnail = (struct thumbnail){width, height, out};
    return true;
}

struct thumbnail_sink {
    struct codec_bytes *bytes;
    size_t capacity;
};

static int thumbnail_append(const uint8_t *data, size_t size, const WebPPicture *webp)
{
    struct thumbnail_sink *sink = webp->custom_ptr;
    return bytes_append(sink->bytes, &sink->capacity, data, size);
}

static bool thumbnail_encode(const struct thumbnail *thumbnail, struct codec_bytes *bytes)
{
    WebPConfig config;
    WebPPicture webp;
    struct thumbnail_sink sink = {bytes, 0};
    if (!WebPConfigPreset(&config, WEBP_PRESET_PHOTO, thumbnail_quality) || !WebPPictureInit(&webp))
        return false;
    webp.width = (int)thumbnail->width_px;
    webp.height = (int)thumbnail->height_px;
    webp.writer = thumbnail_append;
    webp.custom_ptr = &sink;
    bool is_done = WebPPictureImportRGBA(&webp, thumbnail->pixels, 4 * (int)thumbnail->width_px) &&
                   WebPEncode(&config, &webp);
    WebPPictureFree(&webp);
    return is_done;
}

unsigned char *thumbnail_rgb(const struct codec_picture *picture, uint32_t width_px, uint32_t height_px)
{
    struct thumbnail thumbnail = {width_px, height_px, NULL};
    /* So many samples suffice at this size; all of them would take a tenth of an embedding's time. */
    enum { samples_a_side = 8 };
    uint32_t step = picture->image.width_px / width_px / samples_a_side;
    if (!thumbnail_shrink_to(&picture->image, step == 0 ? 1 : step, &thumbnail))
        return NULL;
    struct arena *arena = arena_new(0);
    thumbnail_to_srgb(&thumbnail, picture, arena);
    arena_free(arena);
    size_t count = (size_t)width_px * height_px;
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < 3; c++) {
            const unsigned char *rgba = thumbnail.pixels + 4 * i;
            unsigned sample = ((unsigned)rgba[c] * rgba[3] + 255U * (255U - rgba[3]) + 127U) / 255U;
            thumbnail.pixels[3 * i + c] = (unsigned char)sample;
        }
    return thumbnail.pixels;
}

enum iw_error thumbnail_webp(struct context *context, const struct codec_picture *picture, uint32_t side_px,
                             struct codec_bytes *bytes)
{
    struct thumbnail thumbnail = {0, 0, NULL};
    memset(bytes, 0, sizeof *bytes);
    bool is_done = thumbnail_shrink(&picture->image, side_px, &thumbnail);
    if (is_done)
        thumbnail_to_srgb(&thumbnail, picture, context->arena);
    is_done = is_done && thumbnail_turn(&thumbnail, driver_orientation(picture)) &&
              thumbnail_encode(&thumbnail, bytes);
    free(thumbnail.pixels);
    if (!is_done)
        bytes_free(bytes);
    return is_done ? IW_OK : context_fail(context, IW_NO_MEMORY, NULL);
}
