/* The meaning of the kept pieces: ICC profile and orientation in every format. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "codec/codec_keep.h"

enum { marker_app1 = 0xE1, marker_app2 = 0xE2, icc_max_bytes = 4 * 1024 * 1024 };

static const char exif_name[meta_exif_head_bytes] = "Exif\0";
static const char icc_name[] = "ICC_PROFILE";

static bool chunk_starts_with(const struct keep_chunk *chunk, const void *bytes, size_t size)
{
    return chunk->size >= size && memcmp(chunk->data, bytes, size) == 0;
}

static struct keep_chunk *chunk_by_tag(const struct codec_keep *keep, uint32_t tag, const void *head,
                                       size_t size)
{
    for (struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        if (chunk->tag == tag && chunk_starts_with(chunk, head, size))
            return chunk;
    return NULL;
}

bool meta_is_exif_head(const unsigned char *data, size_t size)
{
    return size >= sizeof exif_name && memcmp(data, exif_name, sizeof exif_name) == 0;
}

unsigned char *meta_inflate(struct arena *arena, const unsigned char *data, size_t size, size_t size_max,
                            size_t *size_out)
{
    unsigned char *out = malloc(size_max);
    unsigned char *kept = NULL;
    uLongf got = (uLongf)size_max;
    if (out != NULL && uncompress(out, &got, data, (uLong)size) == Z_OK) {
        kept = (unsigned char *)arena_text_n(arena, (const char *)out, got);
        *size_out = got;
    }
    free(out);
    return kept;
}

/* ---- ICC ---- */

/* Segments have a number from 1 and a total; they are joined in that order. */
static const unsigned char *jpeg_icc(struct arena *arena, const struct codec_keep *keep, size_t *size)
{
    enum { head_bytes = sizeof icc_name + 2 };
    const struct keep_chunk *parts[256] = {NULL};
    *size = 0;
    for (const struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        if (chunk->tag == marker_app2 && chunk->size > head_bytes &&
            chunk_starts_with(chunk, icc_name, sizeof icc_name) &&
            parts[chunk->data[sizeof icc_name]] == NULL) {
            parts[chunk->data[sizeof icc_name]] = chunk;
            *size += chunk->size - head_bytes;
        }
    if (*size == 0 || *size > icc_max_bytes)
        return NULL;
    unsigned char *profile = arena_alloc(arena, *size);
    size_t used = 0;
    for (int i = 0; i < 256; i++)
        if (parts[i] != NULL) {
            memcpy(profile + used, parts[i]->data + head_bytes, parts[i]->size - head_bytes);
            used += parts[i]->size - head_bytes;
        }
    return profile;
}

static const unsigned char *png_icc(struct arena *arena, const struct codec_keep *keep, size_t *size)
{
    const struct keep_chunk *chunk = chunk_by_tag(keep, KEEP_TAG('i', 'C', 'C', 'P'), "", 0);
    const unsigned char *end = chunk == NULL ? NULL : memchr(chunk->data, 0, chunk->size);
    if (end == NULL || end + 2 > chunk->data + chunk->size)
        return NULL;
    return meta_inflate(arena, end + 2, (size_t)(chunk->data + chunk->size - end - 2), icc_max_bytes, size);
}

static const unsigned char *webp_icc(struct arena *arena, const struct codec_keep *keep, size_t *size)
{
    (void)arena;
    const struct keep_chunk *chunk = chunk_by_tag(keep, KEEP_TAG('I', 'C', 'C', 'P'), "", 0);
    if (chunk == NULL || chunk->size > icc_max_bytes)
        return NULL;
    *size = chunk->size;
    return chunk->data;
}

const unsigned char *meta_icc(struct arena *arena, const struct codec_picture *picture, size_t *size)
{
    static const unsigned char *(*const readers[])(struct arena *, const struct codec_keep *, size_t *) = {
        [CODEC_JPEG] = jpeg_icc, [CODEC_PNG] = png_icc, [CODEC_WEBP] = webp_icc};
    return readers[picture->header.format](arena, picture->keep, size);
}

/* ---- orientation ---- */

static unsigned exif_16(const unsigned char *bytes, bool is_little)
{
    return is_little ? bytes[0] | (unsigned)bytes[1] << 8 : (unsigned)bytes[0] << 8 | bytes[1];
}

static uint32_t exif_32(const unsigned char *bytes, bool is_little)
{
    return is_little ? KEEP_TAG(bytes[3], bytes[2], bytes[1], bytes[0])
                     : KEEP_TAG(bytes[0], bytes[1], bytes[2], bytes[3]);
}

/* Read an entry with one unsigned number; 0: another type. */
static uint32_t exif_number(const unsigned char *entry, bool is_little)
{
    enum { type_byte = 1, type_short = 3, type_long = 4, value_at = 8 };
    switch (exif_16(entry + 2, is_little)) {
    case type_byte:
        return entry[value_at];
    case type_short:
        return exif_16(entry + value_at, is_little);
    case type_long:
        return exif_32(entry + value_at, is_little);
    default:
        return 0;
    }
}

/*
 * Read the orientation in the first directory of a TIFF block (EXIF 2.32, section 4.6.4). The
 * standard requires SHORT; some phones write LONG or BYTE, which all readers accept.
 */
static unsigned exif_orientation(const unsigned char *tiff, size_t size)
{
    enum { entry_bytes = 12, tag_orientation = 0x0112 };
    if (size < 10)
        return 1;
    bool is_little = tiff[0] == 'I';
    size_t offset = exif_32(tiff + 4, is_little);
    if (offset > size - 2)
        return 1;
    unsigned count = exif_16(tiff + offset, is_little);
    for (offset += 2; count > 0 && size - offset >= entry_bytes; count--, offset += entry_bytes) {
        uint32_t value = exif_number(tiff + offset, is_little);
        if (exif_16(tiff + offset, is_little) == tag_orientation && value >= 1 && value <= 8)
            return (unsigned)value;
    }
    return 1;
}

unsigned meta_orientation(const struct codec_picture *picture)
{
    static const struct {
        uint32_t tag;
        size_t head_bytes;
    } places[] = {
        [CODEC_JPEG] = {marker_app1, sizeof exif_name},
        [CODEC_PNG] = {KEEP_TAG('e', 'X', 'I', 'f'), 0},
        [CODEC_WEBP] = {KEEP_TAG('E', 'X', 'I', 'F'), 0},
    };
    size_t head_bytes = places[picture->header.format].head_bytes;
    const struct keep_chunk *chunk =
        chunk_by_tag(picture->keep, places[picture->header.format].tag, exif_name, head_bytes);
    if (chunk == NULL)
        return 1;
    /* Some writers put JPEG's prefix into PNG and WebP as well. */
    if (chunk_starts_with(chunk, exif_name, sizeof exif_name))
        head_bytes = sizeof exif_name;
    return exif_orientation(chunk->data + head_bytes, chunk->size - head_bytes);
}
