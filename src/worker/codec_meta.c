/* What the kept pieces mean: ICC profile, orientation and XMP, each wherever its format has it. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "worker/codec_keep.h"

enum {
    marker_app0 = 0xE0,
    marker_app1 = 0xE1,
    marker_app2 = 0xE2,
    segment_max_bytes = 65533,
    icc_max_bytes = 4 * 1024 * 1024,
    xmp_max_bytes = codec_metadata_max_bytes
};

#define TAG_ITXT KEEP_TAG('i', 'T', 'X', 't')

/* What stands before the packet in a JPEG segment, its closing zero included. */
static const char xmp_name[] = "http://ns.adobe.com/xap/1.0/";
static const char exif_name[6] = "Exif\0";
static const char icc_name[] = "ICC_PROFILE";

/* Keyword, no compression, no language, no translated keyword. */
static const char png_xmp_head[] = "XML:com.adobe.xmp\0\0\0\0";

static bool starts_with(const struct keep_chunk *chunk, const void *bytes, size_t size)
{
    return chunk->size >= size && memcmp(chunk->data, bytes, size) == 0;
}

static struct keep_chunk *chunk_by_tag(const struct codec_keep *keep, uint32_t tag, const void *head,
                                       size_t size)
{
    for (struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        if (chunk->tag == tag && starts_with(chunk, head, size))
            return chunk;
    return NULL;
}

/* Inflates at most size_max bytes into the arena; NULL when broken or larger. */
static unsigned char *meta_inflate(struct arena *arena, const unsigned char *data, size_t size,
                                   size_t size_max, size_t *size_out)
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

/* Segments say which of how many they are, from 1; they are joined in that order. */
static const unsigned char *jpeg_icc(struct arena *arena, const struct codec_keep *keep, size_t *size)
{
    enum { head_bytes = sizeof icc_name + 2 };
    const struct keep_chunk *parts[256] = {NULL};
    *size = 0;
    for (const struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        if (chunk->tag == marker_app2 && chunk->size > head_bytes &&
            starts_with(chunk, icc_name, sizeof icc_name) && parts[chunk->data[sizeof icc_name]] == NULL) {
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

/* The number in a directory's entry when it is one unsigned number; 0 for other types. */
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

/* The orientation in the first directory of a TIFF block (EXIF 2.32, section 4.6.4), which says SHORT.  Some
 * phones write LONG or BYTE, and every reader takes these. */
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
    /* Some writers put the JPEG head into PNG and WebP as well. */
    if (starts_with(chunk, exif_name, sizeof exif_name))
        head_bytes = sizeof exif_name;
    return exif_orientation(chunk->data + head_bytes, chunk->size - head_bytes);
}

/* ---- XMP ---- */

/* Skips keyword, flags, language and translated keyword; the offset of the text, 0 when they do not fit. */
static size_t png_text_offset(const struct keep_chunk *chunk, bool *is_compressed)
{
    size_t offset = sizeof "XML:com.adobe.xmp";
    if (chunk->size < offset + 2)
        return 0;
    *is_compressed = chunk->data[offset] != 0;
    offset += 2;
    for (int i = 0; i < 2; i++) {
        const unsigned char *zero = memchr(chunk->data + offset, 0, chunk->size - offset);
        if (zero == NULL)
            return 0;
        offset = (size_t)(zero - chunk->data) + 1;
    }
    return offset;
}

static const char *png_xmp(struct arena *arena, const struct keep_chunk *chunk, size_t *size)
{
    bool is_compressed = false;
    size_t offset = png_text_offset(chunk, &is_compressed);
    if (offset == 0)
        return NULL;
    *size = chunk->size - offset;
    if (!is_compressed)
        return (const char *)chunk->data + offset;
    return (const char *)meta_inflate(arena, chunk->data + offset, *size, xmp_max_bytes, size);
}

/* Where each format has its XMP, and what stands before the packet. */
static const struct xmp_place {
    uint32_t tag;
    const char *name; /* the chunk begins with it */
    size_t name_bytes;
    const char *head; /* written before a packet */
    size_t head_bytes;
    size_t packet_max_bytes;
} xmp_places[] = {
    [CODEC_JPEG] = {marker_app1, xmp_name, sizeof xmp_name, xmp_name, sizeof xmp_name,
                    segment_max_bytes - sizeof xmp_name},
    [CODEC_PNG] = {TAG_ITXT, png_xmp_head, sizeof "XML:com.adobe.xmp", png_xmp_head, sizeof png_xmp_head,
                   xmp_max_bytes},
    [CODEC_WEBP] = {KEEP_TAG('X', 'M', 'P', ' '), "", 0, "", 0, xmp_max_bytes},
};

static struct keep_chunk *xmp_chunk(const struct codec_picture *picture)
{
    const struct xmp_place *place = &xmp_places[picture->header.format];
    return chunk_by_tag(picture->keep, place->tag, place->name, place->name_bytes);
}

const char *meta_xmp(struct arena *arena, const struct codec_picture *picture, size_t *size)
{
    const struct xmp_place *place = &xmp_places[picture->header.format];
    const struct keep_chunk *chunk = xmp_chunk(picture);
    if (chunk == NULL)
        return NULL;
    if (picture->header.format == CODEC_PNG)
        return png_xmp(arena, chunk, size);
    *size = chunk->size - place->name_bytes;
    return (const char *)chunk->data + place->name_bytes;
}

/* A new JPEG segment goes behind JFIF and EXIF, which readers want first; anything else at the front. */
static struct keep_chunk *insertion_point(const struct codec_picture *picture)
{
    struct keep_chunk *point = NULL;
    if (picture->header.format != CODEC_JPEG)
        return NULL;
    for (struct keep_chunk *chunk = picture->keep->first; chunk != NULL; chunk = chunk->next) {
        bool is_exif = chunk->tag == marker_app1 && starts_with(chunk, exif_name, sizeof exif_name);
        if (chunk->tag != marker_app0 && !is_exif)
            break;
        point = chunk;
    }
    return point;
}

enum iw_error meta_xmp_replace(struct context *context, struct codec_picture *picture, const char *packet,
                               size_t size)
{
    const struct xmp_place *place = &xmp_places[picture->header.format];
    if (size > place->packet_max_bytes)
        return context_fail(
            context, IW_IMAGE_TOO_LARGE,
            "The XMP of the image would take %zu bytes with the opt-out; at most %zu are allowed.", size,
            place->packet_max_bytes);
    size_t whole = place->head_bytes + size;
    char *data = arena_alloc(picture->keep->arena, whole + 1);
    memcpy(data, place->head, place->head_bytes);
    memcpy(data + place->head_bytes, packet, size);
    struct keep_chunk *chunk = xmp_chunk(picture);
    if (chunk == NULL) {
        keep_insert(picture->keep, insertion_point(picture), place->tag, data, whole);
    } else {
        chunk->data = (const unsigned char *)data;
        chunk->size = whole;
    }
    return IW_OK;
}
