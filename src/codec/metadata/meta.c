/* The meaning of the kept pieces: ICC profile and orientation in every format. */
#include "codec/metadata/meta.h"

#include <stdlib.h>
#include <string.h>

#include "codec/metadata/exif.h"
#include "codec/metadata/png_text.h"

enum { icc_max_bytes = 4 * 1024 * 1024 };

static const char icc_name[] = "ICC_PROFILE";

static struct keep_chunk *chunk_by_tag(const struct codec_keep *keep, uint32_t tag, const void *head,
                                       size_t size)
{
    for (struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        if (chunk->tag == tag && keep_starts_with(chunk, head, size))
            return chunk;
    return NULL;
}

bool meta_is_exif(const struct keep_chunk *chunk)
{
    return chunk->tag == keep_app0 + 1 && keep_starts_with(chunk, exif_prefix, exif_prefix_bytes);
}

/* ---- ICC ---- */

/* Segments have a number from 1 and a total; they are joined in that order. */
static const unsigned char *jpeg_icc(struct arena *arena, const struct codec_keep *keep, size_t *size)
{
    enum { head_bytes = sizeof icc_name + 2 };
    const struct keep_chunk *parts[256] = {NULL};
    *size = 0;
    for (const struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        if (chunk->tag == keep_app0 + 2 && chunk->size > head_bytes &&
            keep_starts_with(chunk, icc_name, sizeof icc_name) &&
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
    return png_text_inflate(arena, end + 2, (size_t)(chunk->data + chunk->size - end - 2), icc_max_bytes,
                            size);
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
        [FORMAT_JPEG] = jpeg_icc, [FORMAT_PNG] = png_icc, [FORMAT_WEBP] = webp_icc};
    if (!format_is_picture(picture->header.format))
        return NULL;
    return readers[picture->header.format](arena, picture->keep, size);
}

/* ---- orientation ---- */

/* EXIF 2.32, section 4.6.4. The standard requires SHORT; some phones write LONG or BYTE. */
unsigned meta_orientation(const struct codec_picture *picture)
{
    enum { tag_orientation = 0x0112 };
    static const struct {
        uint32_t tag;
        size_t prefix_bytes;
    } places[FORMAT_COUNT] = {
        [FORMAT_JPEG] = {keep_app0 + 1, exif_prefix_bytes},
        [FORMAT_PNG] = {KEEP_TAG('e', 'X', 'I', 'f'), 0},
        [FORMAT_WEBP] = {KEEP_TAG('E', 'X', 'I', 'F'), 0},
    };
    struct exif exif;
    const struct keep_chunk *chunk = chunk_by_tag(picture->keep, places[picture->header.format].tag,
                                                  exif_prefix, places[picture->header.format].prefix_bytes);
    uint32_t value =
        chunk != NULL && exif_open(&exif, chunk->data, chunk->size) ? exif_number(&exif, tag_orientation) : 0;
    return value >= 1 && value <= 8 ? value : 1;
}
