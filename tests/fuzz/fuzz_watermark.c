/*
 * Runs the watermark extractor on arbitrary pixels. The first bytes are the picture's size and the
 * method that turns the rest into pixels. An unmarked picture must never give a watermark.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/watermark/watermark.h"
#include "targets.h"

enum { head_bytes = 8, side_most_more = 64 };

static const uint8_t key[WATERMARK_KEY_BYTES] = {1, 2, 3, 4, 5, 6, 7, 8};

/* A hash of position and seed, so that a few bytes fill a picture. */
static unsigned noise(uint32_t x, uint32_t y, uint32_t channel, unsigned seed)
{
    uint32_t mixed = (x * 0x9E3779B1U) ^ (y * 0x85EBCA77U) ^ (channel * 0xC2B2AE3DU) ^ (seed * 0x27D4EB2FU);
    mixed ^= mixed >> 15;
    return (mixed * 0x2545F491U) >> 24;
}

static unsigned sample(const unsigned char *data, size_t size, uint32_t x, uint32_t y, uint32_t channel)
{
    const unsigned char *rest = data + head_bytes;
    size_t count = size - head_bytes;
    unsigned tile = 1U + data[4] % 64U;
    size_t at = ((size_t)(y / tile) * 37 + x / tile * 3 + channel) % (count == 0 ? 1 : count);
    unsigned base = count == 0 ? data[5] : rest[at];
    return (base + (noise(x, y, channel, data[5]) * (data[6] % 16U)) / 16U) & 0xFF;
}

static void image_fill(struct image *image, const unsigned char *data, size_t size)
{
    unsigned char *bytes = image->pixels;
    for (uint32_t y = 0; y < image->height_px; y++)
        for (uint32_t x = 0; x < image->width_px; x++)
            for (uint32_t c = 0; c < image->channels; c++) {
                unsigned value = sample(data, size, x, y, c);
                unsigned char *place = bytes + y * image->stride_bytes +
                                       ((size_t)x * image->channels + c) * (image->depth_bits / 8);
                if (image->depth_bits == 16)
                    memcpy(place, &(uint16_t){(uint16_t)(value << 8 | data[7])}, 2);
                else
                    *place = (unsigned char)value;
            }
}

static struct image image_make(const unsigned char *data, size_t size, unsigned more_px)
{
    struct image image = {.width_px = 240 + data[0] % (16U + side_most_more) + more_px,
                          .height_px = 240 + data[1] % (16U + side_most_more),
                          .channels = 1 + data[2] % 4U,
                          .depth_bits = data[3] % 2 == 0 ? 8 : 16};
    image.stride_bytes = (size_t)image.width_px * image.channels * (image.depth_bits / 8);
    image.pixels = malloc(image.stride_bytes * image.height_px);
    if (image.pixels == NULL)
        abort();
    image_fill(&image, data, size);
    return image;
}

int fuzz_watermark(const unsigned char *data, size_t size)
{
    struct watermark_numbers numbers;
    if (size < head_bytes)
        return 0;
    struct image image = image_make(data, size, 0);
    enum iw_error error;
    if (data[3] % 4 < 3) {
        error = watermark_extract(&image, NULL, key, NULL, &numbers, NULL);
    } else {
        struct image original = image_make(data, size, data[7] % 5U);
        error = watermark_extract(&image, &original, key, NULL, &numbers, NULL);
        free(original.pixels);
    }
    if (error == IW_OK)
        abort();
    free(image.pixels);
    return 0;
}
