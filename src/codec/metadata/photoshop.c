/*
 * Removes thumbnails from Photoshop's image resource blocks (Adobe Photoshop File Formats,
 * "Image Resource Blocks"). All else stays.
 */
#include "codec/metadata/photoshop.h"

#include <string.h>

#include "codec/metadata/exif.h"

enum {
    resource_thumbnail_old = 0x0409, /* Photoshop 4: BGR */
    resource_thumbnail = 0x040C
};

static const char segment_name[] = "Photoshop 3.0";

struct resource {
    unsigned number;
    size_t size; /* of the whole block, padded */
};

/* Parses the block at data. False if there is no block. */
static bool resource_read(const unsigned char *data, size_t size, struct resource *resource)
{
    enum { head_bytes = 6 };
    if (size < head_bytes + 2 || memcmp(data, "8BIM", 4) != 0)
        return false;
    size_t name_bytes = ((size_t)data[head_bytes] + 2) & ~(size_t)1;
    size_t at = head_bytes + name_bytes;
    if (size < at + 4)
        return false;
    size_t length = keep_number(data + at);
    if (length > size - at - 4)
        return false;
    resource->number = (unsigned)data[4] << 8 | data[5];
    size_t whole = at + 4 + length + (length & 1);
    resource->size = whole > size ? size : whole;
    return true;
}

size_t photoshop_clean(unsigned char *data, size_t size, bool *is_changed)
{
    size_t at = 0;
    size_t used = 0;
    struct resource resource;
    *is_changed = false;
    while (resource_read(data + at, size - at, &resource)) {
        if (resource.number == resource_thumbnail || resource.number == resource_thumbnail_old) {
            *is_changed = true;
        } else {
            memmove(data + used, data + at, resource.size);
            used += resource.size;
        }
        at += resource.size;
    }
    memmove(data + used, data + at, size - at);
    used += size - at;
    /* Blocks with other signatures and a broken rest are only searched for previews. */
    *is_changed |= exif_jpegs_blank(data, used);
    return used;
}

static bool is_segment(const struct keep_chunk *chunk)
{
    return chunk->tag == keep_app0 + 13 && keep_starts_with(chunk, segment_name, sizeof segment_name);
}

/* Blocks may span segments: join them and split them again. */
void photoshop_segments_clean(struct codec_keep *keep)
{
    size_t size = 0;
    for (const struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        size += is_segment(chunk) ? chunk->size - sizeof segment_name : 0;
    if (size == 0)
        return;
    unsigned char *data = arena_alloc(keep->arena, size);
    size_t used = 0;
    for (const struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        if (is_segment(chunk)) {
            memcpy(data + used, chunk->data + sizeof segment_name, chunk->size - sizeof segment_name);
            used += chunk->size - sizeof segment_name;
        }
    bool is_changed = false;
    size_t left = photoshop_clean(data, size, &is_changed);
    if (!is_changed)
        return;
    keep->left_out |= KEEP_LEFT_PREVIEW;
    /* The result is not longer, so it fits the segments. */
    size_t at = 0;
    for (struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next) {
        if (!is_segment(chunk))
            continue;
        size_t room = keep_segment_bytes - sizeof segment_name;
        size_t bytes = left - at < room ? left - at : room;
        if (bytes == 0) {
            chunk->tag = 0;
            continue;
        }
        unsigned char *segment = arena_alloc(keep->arena, sizeof segment_name + bytes);
        memcpy(segment, segment_name, sizeof segment_name);
        memcpy(segment + sizeof segment_name, data + at, bytes);
        chunk->data = segment;
        chunk->size = sizeof segment_name + bytes;
        at += bytes;
    }
}
