#include "service/files/cutoff.h"

#include <string.h>

enum {
    png_signature_bytes = 8,
    png_crc_bytes = 4,
    riff_head_bytes = 12,
    chunk_head_bytes = 8, /* of a chunk, in both formats */
    /*
     * The most bytes that a zlib stream can have after the last pixel: the end-of-block code (2 bytes at
     * most), the empty stored block of a flush (5), an empty last block (2), Adler-32 (4).
     */
    zlib_end_bytes = 13
};

static const uint8_t png_end[] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xAE, 0x42, 0x60, 0x82};

static uint32_t little_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

/*
 * Handles a complete chunk header. A length over 31 bits is invalid. Bytes after IEND are ignored. The first
 * chunk is IHDR with 13 bytes, or CgBI in Apple's variant.
 */
static void png_chunk(struct cutoff *cutoff)
{
    const uint8_t *head = cutoff->head;
    bool is_header =
        memcmp(head, "\0\0\0\x0dIHDR", chunk_head_bytes) == 0 || memcmp(head + 4, "CgBI", 4) == 0;
    cutoff->is_in_pixels = memcmp(head + 4, "IDAT", 4) == 0;
    cutoff->has_pixels |= cutoff->is_in_pixels;
    uint32_t length = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
    cutoff->left_bytes = (uint64_t)length + png_crc_bytes;
    cutoff->is_judged =
        (head[0] & 0x80) != 0 || memcmp(head + 4, "IEND", 4) == 0 || (cutoff->heads == 1 && !is_header);
}

static bool png_is_cut(const struct cutoff *cutoff)
{
    if (memcmp(cutoff->tail, png_end, sizeof png_end) == 0)
        return false;
    return !cutoff->has_pixels ||
           (cutoff->is_in_pixels && cutoff->left_bytes > png_crc_bytes + zlib_end_bytes);
}

static void webp_chunk(struct cutoff *cutoff)
{
    const uint8_t *head = cutoff->head;
    uint32_t size = little_endian(head + 4);
    cutoff->is_in_pixels =
        memcmp(head, "VP8 ", 4) == 0 || memcmp(head, "VP8L", 4) == 0 || memcmp(head, "ANMF", 4) == 0;
    cutoff->has_pixels |= cutoff->is_in_pixels;
    cutoff->left_bytes = (uint64_t)size + (size & 1);
}

/*
 * The file is cut off if both the file header and the chunk with the pixels announce more bytes. The padding
 * byte of an odd chunk is not counted.
 */
static bool webp_is_cut(const struct cutoff *cutoff)
{
    bool is_picture_whole = cutoff->has_pixels && !(cutoff->is_in_pixels && cutoff->left_bytes > 1);
    return cutoff->named_bytes > cutoff->size_bytes && !is_picture_whole;
}

static const struct {
    size_t signature_bytes;
    void (*chunk)(struct cutoff *cutoff);
    bool (*is_cut)(const struct cutoff *cutoff);
} formats[FORMAT_COUNT] = {
    [FORMAT_PNG] = {png_signature_bytes, png_chunk, png_is_cut},
    [FORMAT_WEBP] = {riff_head_bytes, webp_chunk, webp_is_cut},
};

/* Reads bytes of the signature or of a chunk header, at least one. Returns the number of bytes read. */
static size_t head_take(struct cutoff *cutoff, const uint8_t *bytes, size_t size)
{
    size_t wanted = cutoff->heads == 0 ? formats[cutoff->format].signature_bytes : chunk_head_bytes;
    size_t count = size < wanted - cutoff->head_count ? size : wanted - cutoff->head_count;
    memcpy(cutoff->head + cutoff->head_count, bytes, count);
    cutoff->head_count += count;
    if (cutoff->head_count < wanted)
        return count;
    if (cutoff->heads == 0)
        cutoff->named_bytes = (uint64_t)little_endian(cutoff->head + 4) + chunk_head_bytes;
    else
        formats[cutoff->format].chunk(cutoff);
    cutoff->head_count = 0;
    cutoff->heads += cutoff->heads < 2;
    return count;
}

void cutoff_add(struct cutoff *cutoff, const void *bytes, size_t size)
{
    const uint8_t *at = bytes, *end = at + size;
    if (size == 0 || formats[cutoff->format].chunk == NULL)
        return;
    /* Keeps the last bytes so far, which only PNG needs. */
    size_t kept = size < sizeof cutoff->tail ? size : sizeof cutoff->tail;
    memmove(cutoff->tail, cutoff->tail + kept, sizeof cutoff->tail - kept);
    memcpy(cutoff->tail + sizeof cutoff->tail - kept, end - kept, kept);
    cutoff->size_bytes += size;
    while (at < end && !cutoff->is_judged) {
        uint64_t rest = (uint64_t)(end - at);
        uint64_t passed = cutoff->left_bytes < rest ? cutoff->left_bytes : rest;
        cutoff->left_bytes -= passed;
        at += passed;
        if (at < end)
            at += head_take(cutoff, at, (size_t)(end - at));
    }
}

bool cutoff_is_cut(const struct cutoff *cutoff)
{
    return formats[cutoff->format].chunk != NULL && !cutoff->is_judged &&
           formats[cutoff->format].is_cut(cutoff);
}
