/*
 * Reads BMP: uncompressed, of 1, 4, 8, 16, 24 and 32 bits, bottom-up and top-down.
 *
 * Source: Microsoft, "Bitmap Storage" (BITMAPFILEHEADER, BITMAPCOREHEADER, BITMAPINFOHEADER, BITMAPV5HEADER).
 */
#include <stdlib.h>
#include <string.h>

#include "codec/driver.h"

enum {
    file_head_bytes = 14,
    core_bytes = 12,
    info_bytes = 40,
    masks_at = file_head_bytes + info_bytes,
    with_alpha_bytes = 56, /* a header of this size has four masks */
    bits_most = 32
};

enum { compression_none = 0, compression_masks = 3, compression_alpha_masks = 6 };

struct bmp {
    bool is_top_down;
    unsigned bits; /* of a pixel */
    size_t used_bytes;
    size_t row_bytes; /* with padding to four bytes */
    size_t pixels_at;
    const unsigned char *palette;
    size_t palette_count;
    unsigned palette_step;
    uint32_t masks[4]; /* red, green, blue, alpha; 0 if there is none */
};

static uint32_t little(const unsigned char *bytes, int count)
{
    uint32_t value = 0;
    for (int i = count - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

/* Bits that are a multiple of bytes or fit them; RLE, JPEG and PNG inside a BMP have another compression. */
static enum iw_error kind_check(struct context *context, unsigned bits, uint32_t compression)
{
    static const char known[bits_most + 1] = {[1] = 1, [4] = 1, [8] = 1, [16] = 1, [24] = 1, [32] = 1};
    bool has_masks = compression == compression_masks || compression == compression_alpha_masks;
    if (bits <= bits_most && known[bits] && (compression == compression_none || (has_masks && bits >= 16)))
        return IW_OK;
    return context_fail(
        context, IW_IMAGE_FORMAT_UNSUPPORTED,
        "This is a compressed BMP file, or one of %u bits. Save it as PNG and upload it again.", bits);
}

static void masks_read(const unsigned char *data, uint32_t head_bytes, uint32_t compression, struct bmp *bmp)
{
    static const uint32_t of_16[4] = {0x7C00, 0x3E0, 0x1F, 0}, of_32[4] = {0xFF0000, 0xFF00, 0xFF, 0};
    memcpy(bmp->masks, bmp->bits == 16 ? of_16 : of_32, sizeof bmp->masks);
    if (compression == compression_none)
        return;
    bool has_alpha = head_bytes >= with_alpha_bytes || compression == compression_alpha_masks;
    for (int i = 0; i < (has_alpha ? 4 : 3); i++)
        bmp->masks[i] = little(data + masks_at + 4 * i, 4);
}

static enum iw_error head_read(struct context *context, const unsigned char *data, size_t size,
                               struct bmp *bmp, struct codec_header *header)
{
    enum { masks_bytes = 16 };
    if (size < masks_at + masks_bytes)
        return driver_cut(context, size);
    uint32_t head_bytes = little(data + file_head_bytes, 4);
    bool is_core = head_bytes == core_bytes;
    if (!is_core && head_bytes < info_bytes)
        return driver_damaged(context, FORMAT_BMP);
    uint32_t compression = is_core ? 0 : little(data + 30, 4);
    int32_t height = (int32_t)little(data + (is_core ? 20 : 22), is_core ? 2 : 4);
    *bmp = (struct bmp){.is_top_down = height < 0,
                        .bits = little(data + (is_core ? 24 : 28), 2),
                        .pixels_at = little(data + 10, 4),
                        .palette = data,
                        .palette_step = is_core ? 3 : 4};
    header->format = FORMAT_BMP;
    header->width_px = little(data + 18, is_core ? 2 : 4);
    header->height_px = height < 0 ? 0 - (uint32_t)height : (uint32_t)height;
    header->depth_bits = 8;
    if (kind_check(context, bmp->bits, compression) != IW_OK)
        return context->error;
    masks_read(data, head_bytes, compression, bmp);
    header->channels = bmp->bits >= 16 && bmp->masks[3] != 0 ? 4 : 3;
    bmp->used_bytes = ((size_t)header->width_px * bmp->bits + 7) / 8;
    bmp->row_bytes = (bmp->used_bytes + 3) / 4 * 4;
    size_t palette_at = (size_t)file_head_bytes + head_bytes;
    size_t palette_end = bmp->pixels_at < size ? bmp->pixels_at : size;
    if (palette_at < palette_end) {
        bmp->palette = data + palette_at;
        bmp->palette_count = (palette_end - palette_at) / bmp->palette_step;
    }
    return IW_OK;
}

static enum iw_error bmp_probe(struct context *context, const unsigned char *data, size_t size,
                               const struct codec_limits *limits, struct codec_header *header)
{
    struct bmp bmp;
    enum iw_error error = head_read(context, data, size, &bmp, header);
    if (error != IW_OK)
        return error;
    limits_estimate(header);
    return limits_check(context, limits, header);
}

/* A sample of any number of bits, scaled to eight bits. Without a mask the sample is full. */
static unsigned char sample(uint32_t value, uint32_t mask)
{
    if (mask == 0)
        return 255;
    int shift = __builtin_ctz(mask);
    uint64_t most = mask >> shift;
    return (unsigned char)(((uint64_t)(value & mask) >> shift) * 255 / most);
}

/* Up to eight bits: an index into the palette. A colour that the palette lacks is black. */
static void palette_row_read(const struct bmp *bmp, const unsigned char *row, uint32_t width_px,
                             unsigned char *rgb)
{
    for (uint32_t x = 0; x < width_px; x++, rgb += 3) {
        size_t bit = (size_t)x * bmp->bits;
        unsigned byte = row[bit / 8], index = byte >> (8 - bmp->bits - bit % 8) & ((1U << bmp->bits) - 1);
        const unsigned char *color = bmp->palette + (size_t)index * bmp->palette_step;
        for (int c = 0; c < 3; c++)
            rgb[c] = index < bmp->palette_count ? color[2 - c] : 0;
    }
}

static void color_row_read(const struct bmp *bmp, const unsigned char *row, const struct image *image,
                           unsigned char *samples)
{
    unsigned step = bmp->bits / 8;
    for (uint32_t x = 0; x < image->width_px; x++, row += step)
        for (uint32_t c = 0; c < image->channels; c++)
            *samples++ = sample(little(row, (int)step), bmp->masks[c]);
}

/* The rows that the file has, from the top. A cut bottom-up file lacks the upper rows. */
static enum iw_error bmp_decode(struct context *context, const unsigned char *data, size_t size,
                                const struct codec_limits *limits, struct codec_picture *picture)
{
    struct bmp bmp;
    struct image *image = &picture->image;
    enum iw_error error = head_read(context, data, size, &bmp, &picture->header);
    if (error != IW_OK)
        return error;
    /* The last row may lack the padding. */
    size_t left = bmp.pixels_at < size ? size - bmp.pixels_at + bmp.row_bytes - bmp.used_bytes : 0;
    uint32_t rows =
        left / bmp.row_bytes < image->height_px ? (uint32_t)(left / bmp.row_bytes) : image->height_px;
    if (rows < image->height_px && !limits->is_partial_allowed)
        return driver_cut(context, size);
    picture->keep->loss.rows_px = rows;
    for (uint32_t i = 0; i < rows; i++) {
        const unsigned char *row = data + bmp.pixels_at + i * bmp.row_bytes;
        unsigned char *samples =
            (unsigned char *)image->pixels + (bmp.is_top_down ? i : rows - 1 - i) * image->stride_bytes;
        if (bmp.bits <= 8)
            palette_row_read(&bmp, row, image->width_px, samples);
        else
            color_row_read(&bmp, row, image, samples);
    }
    return IW_OK;
}

const struct codec_driver bmp_driver = {.probe = bmp_probe, .decode = bmp_decode};
